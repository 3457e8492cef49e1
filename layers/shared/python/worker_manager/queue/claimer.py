"""A worker that asks for tasks, with its row in the registry.

The row is written in one with each claim, over the version that was read: so a claim is either
before a quarantine, which then lets it finish, or it is not made.  Read next: ``ledger``, which
claims for it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from worker_manager.core.model import WorkerKey
from worker_manager.registry import changes
from worker_manager.registry.entities import Claim

if TYPE_CHECKING:
    from datetime import datetime

    from worker_manager.queue.tasks import Task
    from worker_manager.registry.entities import RegistryWorker
    from worker_manager.registry.registry import Registry
    from worker_manager.store.transactions import Writes


class Claimer:
    """One call of one worker; ``barred_until`` is since it was last found that it may not."""

    def __init__(
        self, registry: Registry, queue_id: str, group: str, worker_id: str, *, now: datetime
    ) -> None:
        """Read what is known of the worker, and note that it called."""
        self._registry = registry
        self.key = WorkerKey(queue_id, group, worker_id)
        self._now = now
        self.barred_until: datetime | None = None
        known = registry.worker(self.key)
        self._worker = registry.sighted(self.key, known, now=now, calls=True)
        self._look(self._worker)

    @property
    def is_barred(self) -> bool:
        """Whether it gets no tasks: it is quarantined, or its type has none to give."""
        return self.barred_until is not None

    def check_type(self) -> None:
        """See whether its whole type gets no tasks; worth a read only if there are any."""
        worker_type = self._registry.worker_type(self.key.pool_id)
        downtime = worker_type.downtime_at(self._now) if worker_type is not None else None
        if downtime is not None:
            self.barred_until = downtime.until

    def along(self, task: Task, at: datetime) -> Writes:
        """What is written in one with the claim of the task's last run."""
        claim = Claim(task.task_id, task.last.run_id, claimed=at)
        seen = changes.seen(self._worker, at, calls=True)
        self._worker = changes.took(seen, [claim])
        return self._registry.writes(self._worker)

    def won(self) -> None:
        """The claim was written, and with it the row."""
        known = self._worker.version
        if known:
            self._worker = replace(self._worker, version=known + 1)
        else:  # by chance, as of every new row
            self._worker = self._registry.worker(self.key) or self._worker

    def lost(self) -> bool:
        """The claim was not written: whether that was for what became of the row meanwhile."""
        before = self._worker.version
        now = self._registry.worker(self.key)
        self._worker = now or changes.meet(self.key, self._now)
        self._look(self._worker)
        return self._worker.version != before

    def _look(self, worker: RegistryWorker) -> None:
        self.barred_until = worker.quarantine_until if worker.is_quarantined(self._now) else None
