"""Who called the queue and when, over the table: the registry's seed.

Decisions are in ``workers``; here they are read, written under the version read, and repeated
when somebody else was faster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from worker_manager.core.errors import ConflictError, NotFoundError, QueueUnavailableError
from worker_manager.queue import workers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime, timedelta

    from worker_manager.core.model import Json
    from worker_manager.queue.workers import QueueWorker
    from worker_manager.store.queue_table import QueueTable

ATTEMPTS = 8


@dataclass(frozen=True, slots=True)
class Sightings:
    """The workers of all queues.  ``interval``: how exactly their last activity is known."""

    table: QueueTable
    interval: timedelta

    def note_call(self, queue_id: str, group: str, worker_id: str, *, now: datetime) -> QueueWorker:
        """The worker called for work or renewed a claim.  Mostly one read, no write."""

        def called(worker: QueueWorker | None) -> QueueWorker:
            if worker is None:
                return workers.meet(queue_id, group, worker_id, now)
            return workers.heard_of(worker, now, interval=self.interval)

        return self._change(queue_id, group, worker_id, called)

    def note_tasks(
        self, queue_id: str, group: str, worker_id: str, *, taken: Sequence[Json], now: datetime
    ) -> None:
        """The worker got these tasks (``{taskId, runId}``)."""

        def took(worker: QueueWorker | None) -> QueueWorker:
            known = worker or workers.meet(queue_id, group, worker_id, now)
            return workers.took(known, taken, now)

        self._change(queue_id, group, worker_id, took)

    def quarantine(
        self,
        queue_id: str,
        group: str,
        worker_id: str,
        *,
        until: datetime,
        info: str,
        client_id: str,
        now: datetime,
    ) -> dict[str, Any]:
        """Set or lift a quarantine; ``NotFoundError`` for a worker that never called."""

        def put_aside(worker: QueueWorker | None) -> QueueWorker:
            known = _known(worker, f"{queue_id}/{group}/{worker_id}", now)
            return workers.quarantine(known, until, info=info, client_id=client_id, now=now)

        return workers.to_details(self._change(queue_id, group, worker_id, put_aside))

    def details(
        self, queue_id: str, group: str, worker_id: str, *, now: datetime
    ) -> dict[str, Any]:
        """One worker; ``NotFoundError`` if it never called or is forgotten."""
        worker = self._read(queue_id, group, worker_id)
        return workers.to_details(_known(worker, f"{queue_id}/{group}/{worker_id}", now))

    def page(
        self, queue_id: str, *, quarantined: bool | None, limit: int, after: str, now: datetime
    ) -> dict[str, Any]:
        """``limit`` workers by group and id from beyond ``after``, less those not asked for.

        The continuation token is the name of the last one read.
        """
        stored = self.table.workers(queue_id, limit=limit, after=after)
        listed = [workers.from_stored(one) for one in stored]
        answer: dict[str, Any] = {
            "workers": [
                workers.to_list_item(worker, now)
                for worker in listed
                if worker.is_listed(now) and quarantined in (None, worker.is_quarantined(now))
            ]
        }
        return answer | {"continuationToken": stored[-1].worker} if len(stored) == limit else answer

    def _read(self, queue_id: str, group: str, worker_id: str) -> QueueWorker | None:
        stored = self.table.worker(queue_id, workers.name_of(group, worker_id))
        return workers.from_stored(stored) if stored is not None else None

    def _change(
        self,
        queue_id: str,
        group: str,
        worker_id: str,
        change: Callable[[QueueWorker | None], QueueWorker],
    ) -> QueueWorker:
        for _ in range(ATTEMPTS):
            before = self._read(queue_id, group, worker_id)
            after = change(before)
            if after == before:
                return after
            try:
                self.table.save_worker(workers.to_stored(after))
            except ConflictError:
                continue
            return after
        raise QueueUnavailableError(f"worker {group}/{worker_id} is changed too often at once")


def _known(worker: QueueWorker | None, name: str, now: datetime) -> QueueWorker:
    if worker is None or not worker.is_listed(now):
        raise NotFoundError(f"worker {name} is not known to the queue")
    return worker
