"""A Taskcluster queue elsewhere: looked at every few minutes, and told of quarantines at once.

The queue is right about what it saw, and about who is quarantined once it has seen the worker.  One
that it has never seen cannot be quarantined there; it is as soon as the queue has.  Nothing is
written for a worker of which nothing is new.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker_manager.core.errors import InputInvalidError, QueueUnavailableError
from worker_manager.core.model import WorkerKey
from worker_manager.registry.observations import Kind, Observation
from worker_manager.registry.registry import PAGE
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from worker_manager.core.activity import SeenWorker
    from worker_manager.registry.entities import RegistryWorker
    from worker_manager.registry.quarantines import Quarantines
    from worker_manager.registry.registry import Registry
    from worker_manager.taskcluster.observed_queue import ObservedQueue, SeenClaim

SIDE_BY_SIDE = 8
"""Task queues that are looked at at once."""
ENDS_ASKED = 20
"""Runs of one task queue of whose end the queue is asked in one look; the others in turn."""
ROTATION_SECONDS = 300
"""How often another task queue, or run, comes first: a lack of time is shared by all."""
ITSELF = "task-queue"
"""Who changed a quarantine that was changed there."""


@dataclass(frozen=True, slots=True)
class _Look:
    """One look at a task queue: what it says, and what the registry says."""

    workers: Sequence[SeenWorker]
    claims: Sequence[SeenClaim]
    known: Mapping[WorkerKey, RegistryWorker]


class RemoteBackend:
    """A Taskcluster queue, in the name of our own client."""

    def __init__(
        self,
        registry: Registry,
        quarantines: Quarantines,
        queue: ObservedQueue,
        now: Callable[[], datetime],
    ) -> None:
        self._registry = registry
        self._quarantines = quarantines
        self._queue = queue
        self._now = now

    def refresh(self, is_late: Callable[[], bool]) -> Mapping[str, int]:
        """As of ``QueueBackend``; a task queue that does not answer stops no other."""
        names = sorted(self._queue.task_queues())
        first = int(self._now().timestamp() // ROTATION_SECONDS) % max(1, len(names))
        total: Counter[str] = Counter(queues=0, failed=0, left=0, workers=0, observed=0)

        def look(queue_id: str) -> Counter[str]:
            if is_late():
                return Counter(left=1)
            try:
                return self._refresh_one(queue_id)
            except QueueUnavailableError as error:
                logger.warning("a task queue was not observed", pool=queue_id, error=str(error))
            except Exception:
                logger.exception("a task queue could not be observed", pool=queue_id)
            return Counter(failed=1)

        with ThreadPoolExecutor(SIDE_BY_SIDE) as threads:
            for found in threads.map(look, [*names[first:], *names[:first]]):
                total.update(found)
        return dict(total)

    def quarantine(self, key: WorkerKey, until: datetime, *, info: str) -> None:
        """Told at once; of a worker that the queue has never seen, when it has."""
        self._queue.quarantine(key.pool_id, key.group, key.worker_id, until, info=info)

    def outcome(self, key: WorkerKey, task_id: str, run_id: int) -> Observation | None:
        """The queue is asked for the task's status."""
        end = self._queue.run_end(task_id, run_id)
        if end is None:
            return None
        return Observation(
            key,
            Kind.RESOLVE,
            end.at,
            task_id=task_id,
            run_id=run_id,
            state=end.state,
            reason=end.reason,
        )

    def close(self, queue_id: str, until: datetime) -> None:
        """It has no such thing."""
        raise InputInvalidError("taskQueueId", f"{queue_id} is not a queue of ours")

    def _refresh_one(self, queue_id: str) -> Counter[str]:
        # Here first: a quarantine that is written meanwhile is then newer than what we know of it,
        # and is not taken for one that was lifted there.
        known = dict(self._known(queue_id))
        look = _Look(
            workers=self._queue.workers(queue_id),
            claims=self._queue.claims(queue_id),
            known=known,
        )
        # Before it is noted that they called: a quarantine that was not told is told the next time.
        for seen in look.workers:
            key = WorkerKey(queue_id, seen.group, seen.worker_id)
            self._agree(key, seen.activity.quarantine_until, known.get(key))
        observations = [*self._sightings(queue_id, look), *self._ends(queue_id, look)]
        self._registry.observe(observations)
        return Counter(queues=1, workers=len(look.workers), observed=len(observations))

    def _known(self, queue_id: str) -> Iterator[tuple[WorkerKey, RegistryWorker]]:
        after: str | None = ""
        while after is not None:
            workers, after = self._registry.workers(queue_id, limit=PAGE, after=after)
            yield from ((worker.key, worker) for worker in workers)

    def _sightings(self, queue_id: str, look: _Look) -> Iterator[Observation]:
        """What is new of calls and claims."""
        held = {(claim.task_id, claim.run_id) for claim in look.claims}
        for claim in look.claims:
            key = WorkerKey(queue_id, claim.group, claim.worker_id)
            if not _has(look.known.get(key), claim.task_id, claim.run_id):
                yield _claim(key, claim.task_id, claim.run_id, claim.claimed)
        for seen in look.workers:
            key = WorkerKey(queue_id, seen.group, seen.worker_id)
            known = look.known.get(key)
            yield from self._calls(key, seen, known)
            latest = seen.latest_task
            at = seen.activity.last_active or seen.activity.first_claim
            if latest is None or at is None:
                continue
            run = (latest["taskId"], latest["runId"])
            if run not in held and not _has(known, *run):
                # It was taken, and is over, since the last look; when exactly is not told.
                yield _claim(key, *run, at)

    def _calls(
        self, key: WorkerKey, seen: SeenWorker, known: RegistryWorker | None
    ) -> Iterator[Observation]:
        first, last = seen.activity.first_claim, seen.activity.last_active
        if first is not None and (known is None or known.first_claim is None):
            yield Observation(key, Kind.IDLE, first)
        noted = known.last_seen if known else None
        if last is not None and (noted is None or last >= noted + self._registry.interval):
            yield Observation(key, Kind.IDLE, last)

    def _ends(self, queue_id: str, look: _Look) -> Iterator[Observation]:
        """How runs ended that are claimed no more."""
        held = {(claim.task_id, claim.run_id) for claim in look.claims}
        over = [
            (worker.key, claim)
            for worker in look.known.values()
            for claim in worker.claims
            if claim.state is None and claim.run not in held
        ]
        turn = int(self._now().timestamp() // ROTATION_SECONDS) * ENDS_ASKED % max(1, len(over))
        for key, claim in [*over[turn:], *over[:turn]][:ENDS_ASKED]:
            end = self.outcome(key, *claim.run)
            if end is not None:
                yield end

    def _agree(self, key: WorkerKey, there: datetime | None, known: RegistryWorker | None) -> None:
        """Let both sides say the same of a quarantine."""
        now = self._now()
        here = known.quarantine_until if known and known.is_quarantined(now) else None
        there = there if there is not None and there > now else None
        if here == there:
            return
        if known is not None and known.first_claim is None and here is not None:
            self.quarantine(key, here, info=known.quarantine_info)
            return
        current = self._registry.worker(key)
        before = known.quarantine_until if known else None
        if current is not None and known is not None and current.quarantine_until != before:
            return  # somebody changed it since we looked
        self._quarantines.change(
            key, there or now, info="changed at the task queue", client_id=ITSELF, now=now
        )


def _has(worker: RegistryWorker | None, task_id: str, run_id: int) -> bool:
    return worker is not None and any(claim.run == (task_id, run_id) for claim in worker.claims)


def _claim(key: WorkerKey, task_id: str, run_id: int, at: datetime) -> Observation:
    return Observation(key, Kind.CLAIM, at, task_id=task_id, run_id=run_id)
