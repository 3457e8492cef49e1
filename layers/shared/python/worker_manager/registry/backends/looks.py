"""One look at a task queue elsewhere, and what of it is news to the registry.

Pure: what both sides say goes in, observations come out.  Read next: ``remote``, which looks.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from worker_manager.core.model import WorkerKey
from worker_manager.registry.observations import UNKNOWN, Kind, Observation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime, timedelta

    from worker_manager.core.activity import SeenWorker
    from worker_manager.registry.entities import RegistryWorker
    from worker_manager.taskcluster.observed_queue import RunEnd, SeenClaim

Run = tuple[WorkerKey, str, int]
"""A run of a task, and whose it is."""


@dataclass(frozen=True)
class Look:
    """What the queue says of one task queue, and what the registry said just before."""

    queue_id: str
    known: Mapping[WorkerKey, RegistryWorker]
    workers: Sequence[SeenWorker]
    claims: Sequence[SeenClaim]

    def key_of(self, seen: SeenWorker | SeenClaim) -> WorkerKey:
        """A worker's full name."""
        return WorkerKey(self.queue_id, seen.group, seen.worker_id)

    def news(self, *, interval: timedelta) -> Iterator[Observation]:
        """Calls and claims that the registry does not know, or only from an interval ago."""
        for claim in self.claims:
            run = (self.key_of(claim), claim.task_id, claim.run_id)
            if not self._is_known(run):
                yield _claimed(run, claim.claimed)
        for seen in self.workers:
            yield from self._calls(seen, interval)
        # When it was is told twice an hour only; how it ended tells it exactly.
        yield from (_claimed(run, at) for run, at in self._taken_meanwhile())

    def over(self) -> list[Run]:
        """Runs that are not known to have ended, and that nobody holds any more."""
        known = [
            (key, *claim.run)
            for key, worker in self.known.items()
            for claim in worker.claims
            if claim.state is None and claim.run not in self._held
        ]
        return [*known, *(run for run, _ in self._taken_meanwhile())]

    def _calls(self, seen: SeenWorker, interval: timedelta) -> Iterator[Observation]:
        key = self.key_of(seen)
        known = self.known.get(key)
        first, last = seen.activity.first_claim, seen.activity.last_active
        if first is not None and (known is None or known.first_claim is None):
            yield Observation(key, Kind.IDLE, first)
        noted = known.last_seen if known else None
        if last is not None and (noted is None or last >= noted + interval):
            yield Observation(key, Kind.IDLE, last)

    def _taken_meanwhile(self) -> Iterator[tuple[Run, datetime]]:
        """Runs that were taken, and were over, since the last look; roughly when."""
        for seen in self.workers:
            latest = seen.latest_task
            at = seen.activity.last_active or seen.activity.first_claim
            if latest is None or at is None:
                continue
            run = (self.key_of(seen), latest["taskId"], latest["runId"])
            if run[1:] not in self._held and not self._is_known(run):
                yield run, at

    @cached_property
    def _held(self) -> frozenset[tuple[str, int]]:
        return frozenset((claim.task_id, claim.run_id) for claim in self.claims)

    def _is_known(self, run: Run) -> bool:
        worker = self.known.get(run[0])
        return worker is not None and any(claim.run == run[1:] for claim in worker.claims)


def ended(run: Run, end: RunEnd) -> Observation:
    """A run ended, as the queue tells it."""
    return Observation(
        run[0],
        Kind.RESOLVE,
        end.at,
        task_id=run[1],
        run_id=run[2],
        state=end.state,
        reason=end.reason,
        began=end.began,
    )


def forgotten(run: Run, at: datetime) -> Observation:
    """A run of which the queue knows nothing at ``at``; it will not tell how it ended."""
    return Observation(run[0], Kind.RESOLVE, at, task_id=run[1], run_id=run[2], state=UNKNOWN)


def _claimed(run: Run, at: datetime) -> Observation:
    return Observation(run[0], Kind.CLAIM, at, task_id=run[1], run_id=run[2])
