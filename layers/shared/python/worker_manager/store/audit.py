"""The audit trail of a pool: one item a change, written with it or not at all.

A trail has a partition of its own, which is all that some functions may write to.  It stays when
its pool goes, until each entry's own end.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from worker_manager.core.audit import Difference, Entry
from worker_manager.core.moments import from_wire, to_wire

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import timedelta

    from worker_manager.store.tables import PoolItem, Tables
    from worker_manager.store.transactions import Writes

TRAIL = "#audit"
"""What follows the pool's id in the key of its trail's partition."""


class AuditStore:
    """Table ``pools``, entries of audit trails."""

    def __init__(self, tables: Tables, *, kept: timedelta) -> None:
        """``kept`` is how long entries stay."""
        self._model = tables.pools
        self._kept = kept

    def writes(self, entry: Entry | None) -> Writes:
        """What adds an entry, if there is one, to the transaction of the change it tells of."""
        if entry is None:
            return lambda _: None
        item = self._item(entry)
        return lambda transaction: transaction.save(item)

    def newest_first(
        self, pool_id: str, *, before: str | None = None, at_once: int | None = None
    ) -> Iterator[Entry]:
        """Entries of a pool, newest first, from before position ``before``.

        ``at_once`` is how many are read with one request.
        """
        for item in self._model.query(
            pool_id + TRAIL,
            self._model.sk < before if before else None,
            scan_index_forward=False,
            consistent_read=True,
            page_size=at_once,
        ):
            yield _to_entry(item)

    def _item(self, entry: Entry) -> PoolItem:
        told = {
            "entity": entry.entity,
            "entityId": entry.entity_id,
            "action": entry.action,
            "clientId": entry.client_id,
            "changes": entry.difference.changes,
            "leftOut": entry.difference.left_out,
            "requestId": entry.request_id,
        }
        return self._model(
            entry.pool_id + TRAIL,
            position(entry),
            ttl=int((entry.time + self._kept).timestamp()),
            audit=json.dumps(told, separators=(",", ":"), ensure_ascii=False),
        )


def position(entry: Entry) -> str:
    """Where an entry stands in its pool's trail."""
    return f"{to_wire(entry.time)}#{entry.audit_id}"


def _to_entry(item: PoolItem) -> Entry:
    time, _, audit_id = item.sk.partition("#")
    told = json.loads(item.audit or "{}")
    return Entry(
        audit_id=audit_id,
        pool_id=item.worker_pool_id.removesuffix(TRAIL),
        entity=told["entity"],
        entity_id=told["entityId"],
        action=told["action"],
        client_id=told["clientId"],
        time=from_wire(time),
        difference=Difference(tuple(told["changes"]), left_out=told["leftOut"]),
        request_id=told["requestId"],
    )
