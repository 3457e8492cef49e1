"""What is remembered of the health of machines, in the registry's table.

==============================  ==========================  ===================================
partition                       sort key                    what
==============================  ==========================  ===================================
``<task queue id>#machines``    ``<group>#<worker id>``     a verdict as text, by version
``machine-policies``            ``<task queue id>``         a pool's policy, JSON
``machine-watches``             ``<task queue id>``         what is remembered of a pool, JSON
==============================  ==========================  ===================================

Only machines with which something is, or was lately, wrong have a row.  What it all means is
decided in ``worker_manager.machines``.
"""

from __future__ import annotations

import json
from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING

from pynamodb.exceptions import DoesNotExist

from worker_manager.core.model import canonical_json
from worker_manager.store.outbox_items import outbox_item
from worker_manager.store.registry_items import (
    epoch,
    name_of,
    to_worker,
    unchanged,
    version_after,
)
from worker_manager.store.transactions import commit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from pynamodb.transactions import TransactWrite

    from worker_manager.core.model import Json, WorkerKey
    from worker_manager.store.registry_items import RegistryItem
    from worker_manager.store.registry_rows import StoredWorker
    from worker_manager.store.registry_table import RegistryTable
    from worker_manager.store.transactions import Writes

POLICIES = "machine-policies"
WATCHES = "machine-watches"
KEPT = timedelta(days=400)
"""For how long a row stays that nobody looks at any more: who looks removes what is over."""
TOGETHER = 40
"""Verdicts that are written in one; a transaction takes a hundred items, an item 400 KB."""


class MachineTable:
    """Verdicts, policies and watches."""

    def __init__(self, registry: RegistryTable) -> None:
        """In the registry's table."""
        self._items = registry.items
        self._tables = registry.tables

    # Verdicts

    def verdicts(self, queue_id: str, *, after: str = "") -> Iterator[StoredWorker]:
        """Those of a pool by group and id, from the one that follows ``after``; read as needed."""
        beyond = self._items.sk > after if after else None
        for item in self._items.query(_verdicts(queue_id), beyond, consistent_read=True):
            yield to_worker(queue_id, item)

    def verdicts_named(self, keys: Sequence[WorkerKey]) -> list[StoredWorker]:
        """Those on these machines of which there is one, in any order."""
        names = [(_verdicts(key.pool_id), name_of(key)) for key in keys]
        found = self._items.batch_get(names, consistent_read=True) if names else ()
        return [to_worker(item.pk.partition("#")[0], item) for item in found]

    def write_verdicts(
        self,
        rows: Sequence[StoredWorker],
        removed: Sequence[StoredWorker],
        *,
        events: Sequence[Json],
        at: datetime,
        also: Writes | None = None,
    ) -> None:
        """Write at most ``TOGETHER`` rows over their versions, or remove them, with their events.

        ``ConflictError``, and nothing written, if any has changed, or a condition of ``also``
        failed.
        """

        def fill(write: TransactWrite) -> None:
            for row in rows:
                write.save(self._row(row, at), condition=unchanged(self._items, row.version))
            for row in removed:
                write.delete(
                    self._items(_verdicts(row.key.pool_id), name_of(row.key)),
                    condition=unchanged(self._items, row.version),
                )
            if events:
                write.save(outbox_item(self._tables.providers, events, at))
            if also is not None:
                also(write)

        commit(self._tables.connection, fill)

    # What is said and remembered of pools

    def policy(self, queue_id: str) -> Json | None:
        """A pool's policy; ``None`` if there is none."""
        item = self._named(POLICIES, queue_id)
        return _body(item) if item is not None else None

    def policies(self) -> Iterator[tuple[str, Json]]:
        """All of them, by task queue."""
        for item in self._items.query(POLICIES, consistent_read=True):
            yield item.sk, _body(item)

    def put_policy(self, queue_id: str, policy: Json) -> None:
        """Write a policy, the whole of it: what was said last holds."""
        self._items(POLICIES, queue_id, body=canonical_json(dict(policy))).save()

    def watch(self, queue_id: str) -> tuple[Json, int] | None:
        """What is remembered of a pool, and its version; ``None`` if nothing is."""
        item = self._named(WATCHES, queue_id)
        return (_body(item), int(item.version or 0)) if item is not None else None

    def put_watch(
        self,
        queue_id: str,
        watch: Json,
        *,
        version: int,
        events: Sequence[Json],
        at: datetime,
        also: Writes | None = None,
    ) -> None:
        """Write over that version, with events; ``ConflictError`` as for verdicts."""

        def fill(write: TransactWrite) -> None:
            item = self._items(
                WATCHES,
                queue_id,
                body=canonical_json(dict(watch)),
                version=version_after(version),
                ttl=epoch(at + KEPT),
            )
            write.save(item, condition=unchanged(self._items, version))
            if events:
                write.save(outbox_item(self._tables.providers, events, at))
            if also is not None:
                also(write)

        commit(self._tables.connection, fill)

    def drop_watch(self, queue_id: str, *, version: int) -> None:
        """Remember nothing more of a pool; ``ConflictError`` as for verdicts."""

        def fill(write: TransactWrite) -> None:
            item = self._items(WATCHES, queue_id)
            write.delete(item, condition=unchanged(self._items, version))

        commit(self._tables.connection, fill)

    def watched(self, *, after: str = "", limit: int | None = None) -> list[str]:
        """Pools of which something is remembered, in order, from the one that follows ``after``."""
        beyond = self._items.sk > after if after else None
        found = self._items.query(WATCHES, beyond, consistent_read=True, page_size=limit)
        return [item.sk for item in islice(found, limit)]

    def _named(self, partition: str, name: str) -> RegistryItem | None:
        try:
            return self._items.get(partition, name, consistent_read=True)
        except DoesNotExist:
            return None

    def _row(self, row: StoredWorker, at: datetime) -> RegistryItem:
        return self._items(
            _verdicts(row.key.pool_id),
            name_of(row.key),
            body=row.body,
            ttl=epoch(at + KEPT),
            version=version_after(row.version),
        )


def _verdicts(queue_id: str) -> str:
    return f"{queue_id}#machines"


def _body(item: RegistryItem) -> Json:
    found: Json = json.loads(str(item.body))
    return found
