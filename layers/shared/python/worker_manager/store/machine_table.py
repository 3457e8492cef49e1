"""What is remembered of the health of machines, in the registry's table.

==============================  ==========================  ===================================
partition                       sort key                    what
==============================  ==========================  ===================================
``<task queue id>#machines``    ``<group>#<worker id>``     a verdict as text, by version
``machine-policies``            ``<task queue id>``         a pool's policy, JSON, by version
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

from pynamodb.exceptions import DoesNotExist, PutError

from worker_manager.core.errors import ConflictError
from worker_manager.core.model import canonical_json
from worker_manager.store.outbox_items import outbox_item
from worker_manager.store.registry_items import epoch, name_of, to_worker, unchanged
from worker_manager.store.transactions import commit, is_condition_failure

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

    def policy(self, queue_id: str) -> tuple[Json, int] | None:
        """A pool's policy and its version; ``None`` if there is none."""
        return self._named(POLICIES, queue_id)

    def policies(self) -> Iterator[tuple[str, Json, int]]:
        """All of them, by task queue."""
        for item in self._items.query(POLICIES, consistent_read=True):
            yield item.sk, _body(item), int(item.version or 0)

    def put_policy(self, queue_id: str, policy: Json, *, version: int) -> None:
        """Write a policy over that version; ``ConflictError`` if it has changed."""
        item = self._items(
            POLICIES, queue_id, body=canonical_json(dict(policy)), version=version + 1
        )
        try:
            item.save(condition=unchanged(self._items, version))
        except PutError as error:
            if is_condition_failure(error):
                raise ConflictError(f"the policy of {queue_id} changed meanwhile") from error
            raise

    def watch(self, queue_id: str) -> tuple[Json, int] | None:
        """What is remembered of a pool, and its version; ``None`` if nothing is."""
        return self._named(WATCHES, queue_id)

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
                version=version + 1,
                ttl=epoch(at + KEPT),
            )
            write.save(item, condition=unchanged(self._items, version))
            if events:
                write.save(outbox_item(self._tables.providers, events, at))
            if also is not None:
                also(write)

        commit(self._tables.connection, fill)

    def watched(self, *, after: str = "", limit: int) -> list[str]:
        """Pools of which something is remembered, in order, from the one that follows ``after``."""
        beyond = self._items.sk > after if after else None
        found = self._items.query(WATCHES, beyond, consistent_read=True, page_size=limit)
        return [item.sk for item in islice(found, limit)]

    def _named(self, partition: str, name: str) -> tuple[Json, int] | None:
        try:
            item = self._items.get(partition, name, consistent_read=True)
        except DoesNotExist:
            return None
        return _body(item), int(item.version or 0)

    def _row(self, row: StoredWorker, at: datetime) -> RegistryItem:
        return self._items(
            _verdicts(row.key.pool_id),
            name_of(row.key),
            body=row.body,
            ttl=epoch(at + KEPT),
            version=row.version + 1,
        )


def _verdicts(queue_id: str) -> str:
    return f"{queue_id}#machines"


def _body(item: RegistryItem) -> Json:
    found: Json = json.loads(str(item.body))
    return found
