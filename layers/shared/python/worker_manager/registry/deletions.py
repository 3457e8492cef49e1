"""Forgetting workers, worker types and provisioners because somebody asks for it.

Workers go first, those without a quarantine many at once; the others one by one, as the end of each
quarantine takes hold where tasks are given out, and is told.  Whoever is interrupted, or out of
time, has deleted some, and may ask for the same again.  Read next: ``quarantines``.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker_manager.core.errors import NotFoundError, QueueUnavailableError
from worker_manager.registry.registry import full_name
from worker_manager.store.registry_table import PROVISIONERS
from worker_manager.store.transactions import LARGEST

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from worker_manager.core.model import WorkerKey
    from worker_manager.registry.backends.protocol import QueueBackend
    from worker_manager.registry.downtimes import Downtimes
    from worker_manager.registry.entities import RegistryWorker
    from worker_manager.registry.quarantines import Quarantines
    from worker_manager.registry.registry import Registry
    from worker_manager.store.deletion_table import Versioned


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """What one caller deletes; ``is_late`` says when to stop.

    Raises ``NotFoundError`` for what is not known, and ``QueueUnavailableError`` where the task
    queue does not answer, or there was no time for all of it.
    """

    registry: Registry
    quarantines: Quarantines
    downtimes: Downtimes
    backend: QueueBackend
    by: str
    now: datetime
    is_late: Callable[[], bool]

    def worker(self, key: WorkerKey) -> None:
        """Forget a worker; if it is in quarantine, that ends."""
        known = self.registry.worker(key)
        if known is None:
            raise NotFoundError(f"worker {full_name(key)} is not known")
        if known.is_quarantined(self.now):
            self.backend.quarantine(key, self.now, info=f"deleted by {self.by}")
        self.quarantines.delete_worker(key, client_id=self.by, now=self.now)

    def worker_type(self, queue_id: str) -> None:
        """Forget a worker type with its workers and groups; if it is closed, that ends.

        Those that call for work meanwhile are new ones, and stay.
        """
        known = self.registry.worker_type(queue_id)
        if known is None:
            raise NotFoundError(f"worker type {queue_id} is not known")
        after: str | None = ""
        while after is not None:
            workers, after = self.registry.workers(queue_id, limit=LARGEST, after=after)
            self._workers(workers)
        if known.downtime_at(self.now):
            info = f"deleted by {self.by}"
            self.downtimes.change(queue_id, self.now, info=info, client_id=self.by, now=self.now)
        deletions = self.registry.deletions
        for group in self.registry.groups(queue_id):
            self._in_time()
            deletions.remove(f"{queue_id}#groups", group.group)
        deletions.remove_type(queue_id)
        self.registry.forget_noted()

    def provisioner(self, provisioner_id: str) -> None:
        """Forget a provisioner with all its worker types."""
        types = self.registry.worker_types(provisioner_id=provisioner_id)
        if not types and self.registry.provisioner(provisioner_id) is None:
            raise NotFoundError(f"provisioner {provisioner_id} is not known")
        for worker_type in types:
            with suppress(NotFoundError):  # somebody else deletes it too
                self.worker_type(worker_type.queue_id)
        self.registry.deletions.remove(PROVISIONERS, provisioner_id)
        self.registry.forget_noted()

    def _workers(self, workers: list[RegistryWorker]) -> None:
        plain: list[Versioned] = [one for one in workers if one.quarantine_until is None]
        self._in_time()
        self.registry.deletions.remove_workers(plain, alone=self._alone)
        for worker in workers:
            if worker.quarantine_until is not None:
                self._alone(worker)

    def _alone(self, worker: Versioned) -> bool:
        self._in_time()
        with suppress(NotFoundError):  # somebody else deletes them too
            self.worker(worker.key)
        return True

    def _in_time(self) -> None:
        if self.is_late():
            raise QueueUnavailableError("there was no time to delete everything: ask again")
