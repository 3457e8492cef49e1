"""Runs as they were last written, by id and in lists.

Nothing here changes one.  Read next: ``ledger``, which does; ``records``, how they are written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from worker_manager.actions import records
from worker_manager.core.errors import NotFoundError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from worker_manager.actions.entities import Run, Target
    from worker_manager.core.model import WorkerKey
    from worker_manager.registry.entities import RegistryWorker
    from worker_manager.store.action_rows import Listed
    from worker_manager.store.action_table import ActionTable


class Sightings(Protocol):
    """What runs need of the registry."""

    def worker(self, key: WorkerKey) -> RegistryWorker | None:
        """A worker as it was last seen."""
        ...

    def watch(self, key: WorkerKey, *, until: datetime) -> None:
        """Note nearly every call of a worker until then."""
        ...


class KnownRuns:
    """All runs of a deployment, and when their workers were last heard of."""

    def __init__(self, table: ActionTable, registry: Sightings) -> None:
        """``registry`` knows when a worker was last heard of."""
        self.table = table
        self._registry = registry

    def seen(self, key: WorkerKey) -> datetime | None:
        """When a worker was last heard of."""
        worker = self._registry.worker(key)
        return worker.last_seen if worker is not None else None

    def find(self, run_id: str) -> Run | None:
        """A run as it was last written, if there is one."""
        stored = self.table.read(run_id)
        return None if stored is None else records.from_stored(run_id, *stored)

    def get(self, run_id: str) -> Run:
        """A run as it was last written.  ``NotFoundError`` if there is none."""
        found = self.find(run_id)
        if found is None:
            raise NotFoundError(f"run {run_id} is not known")
        return found

    def of_target(
        self, target: Target, *, limit: int, before: str = ""
    ) -> tuple[list[Run], str | None]:
        """A page of a target's runs, the newest first, and where the next page begins."""
        return self._page(self.table.of_target(str(target), limit=limit, before=before), limit)

    def of_queue(
        self, queue_id: str, *, limit: int, before: str = ""
    ) -> tuple[list[Run], str | None]:
        """A page of the runs of a task queue and of its workers, the newest first."""
        return self._page(self.table.of_queue(queue_id, limit=limit, before=before), limit)

    def open(self, *, limit: int, after: str = "") -> tuple[list[Run], str | None]:
        """A page of all runs that are not over, the oldest first."""
        return self._page(self.table.open(limit=limit, after=after), limit)

    def get_many(self, run_ids: Sequence[str]) -> list[Run]:
        """Those of the runs that there are, in the same order."""
        found = self.table.read_many(run_ids)
        return [
            records.from_stored(run_id, *found[run_id]) for run_id in run_ids if run_id in found
        ]

    def is_stopped(self, bulk_id: str) -> bool:
        """Whether a bulk was stopped."""
        noted = self.table.bulk(bulk_id)
        return noted is not None and noted[1]

    def _page(self, lines: list[Listed], limit: int) -> tuple[list[Run], str | None]:
        runs = self.get_many([line.run_id for line in lines])
        return runs, lines[-1].order if len(lines) == limit else None
