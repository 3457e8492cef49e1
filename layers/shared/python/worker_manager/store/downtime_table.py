"""Downtimes of whole worker types in the registry's table, by their end.

A downtime is written in one with the type's row, its line in the list and the event that tells of
it.  Where to read next: ``registry_table``, which has the keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker_manager.core.moments import from_wire, to_wire
from worker_manager.store.outbox_items import outbox_item
from worker_manager.store.registry_items import unchanged
from worker_manager.store.registry_rows import Closed
from worker_manager.store.registry_table import CLOSED, TYPES
from worker_manager.store.transactions import commit

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from pynamodb.transactions import TransactWrite

    from worker_manager.core.model import Json
    from worker_manager.store.registry_rows import StoredName
    from worker_manager.store.registry_table import RegistryTable


class DowntimeTable:
    """The verbs of downtimes."""

    def __init__(self, table: RegistryTable) -> None:
        """Over the registry's table."""
        self._table = table

    def write(
        self,
        stored: StoredName,
        declared: Json,
        *,
        before: Closed | None,
        after: Closed | None,
        events: Sequence[Json],
        at: datetime,
    ) -> None:
        """Replace what was declared of a type as it was read, with what tells of its downtime.

        ``before`` and ``after`` are its lines in the list.  Raises ``ConflictError`` if the type
        has changed.
        """
        model = self._table.items

        def fill(write: TransactWrite) -> None:
            write.update(
                model(TYPES, stored.name),
                self._table.declaring(stored, declared),
                condition=unchanged(model, stored.version),
            )
            if before is not None and before != after:
                write.delete(model(CLOSED, _line_of(before)))
            if after is not None:
                write.save(model(CLOSED, _line_of(after)))
            write.save(outbox_item(self._table.tables.providers, events, at))

        commit(self._table.tables.connection, fill)

    def drop(self, line: Closed) -> None:
        """Remove a line of the list that its type does not know of."""
        self._table.items(CLOSED, _line_of(line)).delete()

    def listed(
        self, *, due: datetime | None = None, beyond: datetime | None = None, limit: int | None
    ) -> list[Closed]:
        """Downtimes by when they end: those ``due`` by then, or those that last ``beyond``."""
        condition = None
        if due is not None:
            condition = self._table.items.sk < f"{to_wire(due)}$"
        elif beyond is not None:
            condition = self._table.items.sk > f"{to_wire(beyond)}$"
        found = self._table.items.query(CLOSED, condition, consistent_read=True, limit=limit)
        return [_to_closed(item.sk) for item in found]


def _line_of(closed: Closed) -> str:
    """Its place in the list."""
    return f"{to_wire(closed.until)}#{closed.queue_id}"


def _to_closed(line: str) -> Closed:
    """Back from its place."""
    until, _, queue_id = line.partition("#")
    return Closed(queue_id, from_wire(until))
