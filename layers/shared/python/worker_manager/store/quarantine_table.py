"""Quarantines in the registry's table: each worker's, its history, and all of them by their end.

A quarantine is written in one with the worker's row, its line in the list, the change for the
history and the event that tells of it.  Where to read next: ``registry_table``, which has the keys.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from worker_manager.core.model import canonical_json
from worker_manager.core.moments import to_wire
from worker_manager.store.outbox_items import outbox_item
from worker_manager.store.registry_items import epoch, line_of, name_of, to_quarantined, unchanged
from worker_manager.store.registry_table import QUARANTINED
from worker_manager.store.transactions import commit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from pynamodb.expressions.condition import Condition
    from pynamodb.transactions import TransactWrite

    from worker_manager.core.model import Json, WorkerKey
    from worker_manager.store.registry_items import RegistryItem
    from worker_manager.store.registry_rows import Quarantined, StoredWorker
    from worker_manager.store.registry_table import RegistryTable
    from worker_manager.store.transactions import Writes

CHANGES_KEPT = 100
"""How many changes of one worker's quarantine are kept."""


class QuarantineTable:
    """The verbs of quarantines."""

    def __init__(self, table: RegistryTable) -> None:
        """Over the registry's table."""
        self._table = table

    def write(
        self,
        worker: StoredWorker,
        *,
        before: Quarantined | None,
        after: Quarantined | None,
        change: Json,
        events: Sequence[Json],
        at: datetime,
    ) -> int:
        """Write a worker whose quarantine changes, over ``worker.version``, and what tells of it.

        Returns the version that it is of then.  ``before`` and ``after`` are its lines in the list
        of quarantines.  Raises ``ConflictError`` if the worker has changed.
        """
        model = self._table.items
        row = self._table.row_of(worker)
        told = self.telling(worker, change, events=events, at=at)

        def fill(write: TransactWrite) -> None:
            write.save(row, condition=unchanged(model, worker.version))
            if before is not None and before != after:
                write.delete(model(QUARANTINED, line_of(before)))
            if after is not None:
                write.save(model(QUARANTINED, line_of(after)))
            told(write)

        commit(self._table.tables.connection, fill)
        return int(row.version)

    def telling(
        self, worker: StoredWorker, change: Json, *, events: Sequence[Json], at: datetime
    ) -> Writes:
        """A change for the worker's history, with events that tell of it."""

        def fill(write: TransactWrite) -> None:
            order = f"{name_of(worker.key)}#{to_wire(at)}#{worker.version:015d}"
            write.save(
                self._table.items(
                    f"{worker.key.pool_id}#changes",
                    order,
                    body=canonical_json(change),
                    ttl=epoch(worker.kept),
                )
            )
            if events:
                write.save(outbox_item(self._table.tables.providers, events, at))

        return fill

    def changes(self, key: WorkerKey, *, limit: int) -> list[Json]:
        """The latest changes of a worker's quarantine, the newest first."""
        return [json.loads(str(item.body)) for item in self._changes(key, limit=limit)]

    def trim(self, key: WorkerKey) -> None:
        """Drop all but the latest ``CHANGES_KEPT`` changes of a worker's quarantine."""
        for item in list(self._changes(key))[CHANGES_KEPT:]:
            item.delete()

    def drop(self, line: Quarantined) -> None:
        """Remove a line of the list that its worker does not know of."""
        self._table.items(QUARANTINED, line_of(line)).delete()

    def listed(
        self, *, after: str = "", due: datetime | None = None, limit: int
    ) -> list[Quarantined]:
        """Quarantines by when they end: those ``due`` by then, or beyond the line ``after``."""
        beyond: Condition | None = self._table.items.sk > after if after else None
        if due is not None:
            beyond = self._table.items.sk < f"{to_wire(due)}$"
        found = self._table.items.query(QUARANTINED, beyond, consistent_read=True, limit=limit)
        return [to_quarantined(item.sk) for item in found]

    def _changes(self, key: WorkerKey, limit: int | None = None) -> Iterator[RegistryItem]:
        found: Iterator[RegistryItem] = self._table.items.query(
            f"{key.pool_id}#changes",
            self._table.items.sk.startswith(f"{name_of(key)}#"),
            consistent_read=True,
            scan_index_forward=False,
            limit=limit,
        )
        return found
