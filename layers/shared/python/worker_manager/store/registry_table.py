"""The registry's table: what was seen, what was declared, and who is quarantined.

=============================  ==================================  ============================
partition                      sort key                            what
=============================  ==================================  ============================
``provisioners``               ``<provisioner id>``                seen, declared
``types``                      ``<task queue id>``                 seen, declared
``<task queue id>#groups``     ``<worker group>``                  seen
``<task queue id>#workers``    ``<group>#<worker id>``             JSON text, by version
``<task queue id>#metadata``   ``metadata``                        JSON text
``<task queue id>#changes``    ``<group>#<worker id>#<time>#<n>``  a change of a quarantine
``quarantined``                ``<until>#<task queue id>#<name>``  quarantines by their end
``taken``                      ``<name>#<minute>``                 what a minute allows, counted
=============================  ==================================  ============================

Sightings touch nothing but when something was seen, declarations nothing but what was declared,
so neither overwrites the other.  A quarantine is written in one with its line in the list, the
change for the worker's history and the event that tells of it.  What it all means is decided in
``worker_manager.registry``.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

from pynamodb.attributes import BooleanAttribute, NumberAttribute, UnicodeAttribute
from pynamodb.exceptions import DoesNotExist, PutError, UpdateError
from pynamodb.models import Model

from worker_manager.core.errors import ConflictError
from worker_manager.core.model import WorkerKey, canonical_json
from worker_manager.core.moments import from_wire, to_wire
from worker_manager.store.attributes import CompactJson, MomentAttribute
from worker_manager.store.outbox_items import outbox_item
from worker_manager.store.registry_rows import Quarantined, StoredName, StoredWorker
from worker_manager.store.tables import bind
from worker_manager.store.transactions import commit, is_condition_failure

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pynamodb.expressions.condition import Condition
    from pynamodb.expressions.update import Action
    from pynamodb.transactions import TransactWrite

    from worker_manager.core.model import Json
    from worker_manager.store.tables import Tables
    from worker_manager.store.transactions import Writes

PROVISIONERS = "provisioners"
TYPES = "types"
QUARANTINED = "quarantined"
METADATA = "metadata"
TAKEN = "taken"
GROUP_KEPT = timedelta(days=30)
"""How long a worker group is remembered after its last sighting."""
CHANGES_KEPT = 100
"""How many changes of one worker's quarantine are kept."""


class RegistryItem(Model):
    """Table ``registry``; keys and what is under them as in the module's docstring."""

    class Meta:
        """Bound by ``RegistryTable.bind``."""

        table_name = "registry"

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    ttl = NumberAttribute(null=True)
    version = NumberAttribute(null=True)
    # a worker, metadata, a change
    body = UnicodeAttribute(null=True)
    # a provisioner, type or group
    created = MomentAttribute(null=True)
    first_seen = MomentAttribute(null=True)
    last_seen = MomentAttribute(null=True)
    declared = CompactJson(null=True)
    has_metadata = BooleanAttribute(null=True)
    # what was taken within a minute
    taken = NumberAttribute(null=True)


class RegistryTable:
    """The verbs of the registry's table."""

    def __init__(self, items: type[RegistryItem], tables: Tables) -> None:
        """Over the model bound to its table; ``tables`` have the outbox."""
        self._items = items
        self._tables = tables

    @classmethod
    def bind(cls, table_name: str, tables: Tables) -> RegistryTable:
        """The table called ``table_name``, over the connection of ``tables``."""
        return cls(bind(RegistryItem, table_name, tables.connection), tables)

    # What was seen and declared

    def name(self, partition: str, name: str) -> StoredName | None:
        """One provisioner, type or group, strongly consistent; ``None`` if there is none."""
        try:
            return _to_name(self._items.get(partition, name, consistent_read=True))
        except DoesNotExist:
            return None

    def names(self, partition: str, *, prefix: str = "", after: str = "") -> Iterator[StoredName]:
        """Those of a partition in order, from the one that follows ``after``; read as needed."""
        condition: Condition | None = self._items.sk.startswith(prefix) if prefix else None
        if after and after >= prefix:
            # A key condition has one comparison: the end of the prefix is found in passing.
            condition = self._items.sk > after
        for item in self._items.query(partition, condition, consistent_read=True):
            if not item.sk.startswith(prefix):
                return
            yield _to_name(item)

    def sighted(self, partition: str, name: str, at: datetime, *, unless_since: datetime) -> bool:
        """Note that it was seen ``at``, ``unless`` it was seen ``since``; whether it was noted."""
        model = self._items
        actions: list[Action] = [
            model.last_seen.set(at),
            model.first_seen.set(model.first_seen | at),
            model.created.set(model.created | at),
        ]
        if partition.endswith("#groups"):
            actions.append(model.ttl.set(_epoch(at + GROUP_KEPT)))
        due = model.last_seen.does_not_exist() | (model.last_seen <= unless_since)
        try:
            model(partition, name).update(actions, condition=due)
        except UpdateError as error:
            if is_condition_failure(error):
                return False
            raise
        return True

    def declare(self, partition: str, before: StoredName, declared: Json) -> StoredName:
        """Replace what was declared of ``before``; ``ConflictError`` if that has changed."""
        model = self._items
        actions: list[Action] = [
            model.declared.set(dict(declared)),
            model.created.set(model.created | before.created),
            model.version.set(before.version + 1),
        ]
        item = model(partition, before.name)
        try:
            item.update(actions, condition=_unchanged(model, before.version))
        except UpdateError as error:
            if is_condition_failure(error):
                raise ConflictError(f"{before.name} changed meanwhile") from error
            raise
        return _to_name(item)

    def forget(self, partition: str, before: StoredName) -> bool:
        """Remove it, unless it was seen or spoken of since ``before`` was read."""
        model = self._items
        unchanged = _unchanged(model, before.version)
        if before.last_seen is None:
            unchanged &= model.last_seen.does_not_exist()
        else:
            unchanged &= model.last_seen == before.last_seen

        def fill(write: TransactWrite) -> None:
            write.delete(model(partition, before.name), condition=unchanged)
            if partition == TYPES:
                write.delete(model(f"{before.name}#metadata", METADATA))

        try:
            commit(self._tables.connection, fill)
        except ConflictError:
            return False
        return True

    def remove(self, partition: str, name: str) -> None:
        """Remove it, whatever it is by now; removing it twice is fine."""
        self._items(partition, name).delete()

    def remove_type(self, queue_id: str) -> None:
        """Remove a worker type and its metadata."""

        def fill(write: TransactWrite) -> None:
            write.delete(self._items(TYPES, queue_id))
            write.delete(self._items(f"{queue_id}#metadata", METADATA))

        commit(self._tables.connection, fill)

    # Metadata

    def metadata(self, queue_id: str) -> Json | None:
        """The metadata of a worker type, if it has any."""
        try:
            item = self._items.get(f"{queue_id}#metadata", METADATA, consistent_read=True)
        except DoesNotExist:
            return None
        found: Json = json.loads(str(item.body))
        return found

    def put_metadata(self, queue_id: str, metadata: Json | None, *, now: datetime) -> None:
        """Set a worker type's metadata, or with ``None`` remove it; the type need not be known."""
        model = self._items

        def fill(write: TransactWrite) -> None:
            item = model(f"{queue_id}#metadata", METADATA)
            if metadata is None:
                write.delete(item)
            else:
                item.body = canonical_json(metadata)
                write.save(item)
            write.update(
                model(TYPES, queue_id),
                [
                    model.has_metadata.set(metadata is not None),
                    model.created.set(model.created | now),
                    model.version.set((model.version | 0) + 1),
                ],
            )

        commit(self._tables.connection, fill)

    # Workers

    def worker(self, key: WorkerKey) -> StoredWorker | None:
        """One worker, strongly consistent; ``None`` if nothing is known of it."""
        try:
            item = self._items.get(f"{key.pool_id}#workers", _name(key), consistent_read=True)
        except DoesNotExist:
            return None
        return _to_worker(key.pool_id, item)

    def workers_named(self, keys: Sequence[WorkerKey]) -> list[StoredWorker]:
        """Those of these workers that are known, in any order, strongly consistent."""
        names = [(f"{key.pool_id}#workers", _name(key)) for key in keys]
        found = self._items.batch_get(names, consistent_read=True) if names else ()
        return [_to_worker(item.pk.partition("#")[0], item) for item in found]

    def workers(self, queue_id: str, *, limit: int, after: str = "") -> list[StoredWorker]:
        """At most ``limit`` workers by group and id, from the one that follows ``after``."""
        beyond = self._items.sk > after if after else None
        found = self._items.query(
            f"{queue_id}#workers", beyond, consistent_read=True, page_size=limit
        )
        return [_to_worker(queue_id, item) for item in islice(found, limit)]

    def save_worker(self, worker: StoredWorker) -> None:
        """Write a worker over ``worker.version``; ``ConflictError`` if that has changed."""
        try:
            self._worker(worker).save(condition=_unchanged(self._items, worker.version))
        except PutError as error:
            if is_condition_failure(error):
                raise ConflictError(f"worker {_name(worker.key)} changed meanwhile") from error
            raise

    def worker_writes(self, worker: StoredWorker) -> Writes:
        """The same as part of a transaction, which then fails where this would."""

        def fill(write: TransactWrite) -> None:
            write.save(self._worker(worker), condition=_unchanged(self._items, worker.version))

        return fill

    def remove_worker(self, worker: StoredWorker, quarantine: Quarantined | None) -> None:
        """Remove a worker and its line in the list of quarantines; its history goes with time."""

        def fill(write: TransactWrite) -> None:
            write.delete(self._worker(worker))
            if quarantine is not None:
                write.delete(self._items(QUARANTINED, line_of(quarantine)))

        commit(self._tables.connection, fill)

    # Quarantines

    def quarantine(
        self,
        worker: StoredWorker,
        *,
        before: Quarantined | None,
        after: Quarantined | None,
        change: Json | None,
        events: Sequence[Json],
        at: datetime,
    ) -> None:
        """Write a worker whose quarantine changes, over ``worker.version``, and what tells of it.

        ``before`` and ``after`` are its lines in the list of quarantines.  Raises
        ``ConflictError`` if the worker has changed.
        """
        model = self._items

        def fill(write: TransactWrite) -> None:
            self.worker_writes(worker)(write)
            if before is not None and before != after:
                write.delete(model(QUARANTINED, line_of(before)))
            if after is not None:
                write.save(model(QUARANTINED, line_of(after)))
            if change is not None:
                order = f"{_name(worker.key)}#{to_wire(at)}#{worker.version:09d}"
                write.save(
                    model(
                        f"{worker.key.pool_id}#changes",
                        order,
                        body=canonical_json(change),
                        ttl=_epoch(worker.kept),
                    )
                )
            if events:
                write.save(outbox_item(self._tables.providers, events, at))

        commit(self._tables.connection, fill)

    def changes(self, key: WorkerKey, *, limit: int) -> list[Json]:
        """The latest changes of a worker's quarantine, the newest first."""
        return [json.loads(str(item.body)) for item in self._changes(key, limit=limit)]

    def trim_changes(self, key: WorkerKey) -> None:
        """Drop all but the latest ``CHANGES_KEPT`` changes of a worker's quarantine."""
        for item in list(self._changes(key))[CHANGES_KEPT:]:
            item.delete()

    def drop_quarantined(self, line: Quarantined) -> None:
        """Remove a line of the list that its worker does not know of."""
        self._items(QUARANTINED, line_of(line)).delete()

    def quarantined(
        self, *, after: str = "", due: datetime | None = None, limit: int
    ) -> list[Quarantined]:
        """Quarantines by when they end: those ``due`` by then, or beyond the line ``after``."""
        beyond: Condition | None = self._items.sk > after if after else None
        if due is not None:
            beyond = self._items.sk < f"{to_wire(due)}$"
        found = self._items.query(QUARANTINED, beyond, consistent_read=True, limit=limit)
        return [_to_quarantined(item.sk) for item in found]

    # What is allowed within a minute

    def take(self, name: str, minute: datetime, number: int, *, most: int) -> bool:
        """Take so many of the ``most`` that a minute allows; false if fewer are left.

        Exact however many callers take at once; ``number`` itself is never more than ``most``.
        """
        model = self._items
        item = model(TAKEN, f"{name}#{to_wire(minute)}")
        left = model.taken.does_not_exist() | (model.taken <= most - number)
        actions: list[Action] = [
            model.taken.add(number),
            model.ttl.set(_epoch(minute + timedelta(hours=1))),
        ]
        try:
            item.update(actions, condition=left)
        except UpdateError as error:
            if is_condition_failure(error):
                return False
            raise
        return True

    def _changes(self, key: WorkerKey, limit: int | None = None) -> Iterator[RegistryItem]:
        found: Iterator[RegistryItem] = self._items.query(
            f"{key.pool_id}#changes",
            self._items.sk.startswith(f"{_name(key)}#"),
            consistent_read=True,
            scan_index_forward=False,
            limit=limit,
        )
        return found

    def _worker(self, worker: StoredWorker) -> RegistryItem:
        return self._items(
            f"{worker.key.pool_id}#workers",
            _name(worker.key),
            body=worker.body,
            ttl=_epoch(worker.kept),
            version=worker.version + 1,
        )


def _unchanged(model: type[RegistryItem], version: int) -> Any:
    return model.version == version if version else model.version.does_not_exist()


def line_of(quarantine: Quarantined) -> str:
    """Its place in the list of quarantines, for ``quarantined``'s ``after``."""
    key = quarantine.key
    return f"{to_wire(quarantine.until)}#{key.pool_id}#{_name(key)}"


def _to_quarantined(line: str) -> Quarantined:
    until, pool_id, group, worker_id = line.split("#")
    return Quarantined(WorkerKey(pool_id, group, worker_id), from_wire(until))


def _name(key: WorkerKey) -> str:
    """A worker's name in its queue's list.

    No id has a character that sorts before the one between: the list is by group, then by id.
    """
    return f"{key.group}#{key.worker_id}"


def _epoch(moment: datetime) -> int:
    return int(moment.timestamp())


def _to_worker(queue_id: str, item: RegistryItem) -> StoredWorker:
    group, _, worker_id = item.sk.partition("#")
    return StoredWorker(
        key=WorkerKey(queue_id, group, worker_id),
        body=str(item.body),
        kept=datetime.fromtimestamp(int(item.ttl or 0), UTC),
        version=int(item.version or 0),
    )


def _to_name(item: RegistryItem) -> StoredName:
    return StoredName(
        name=item.sk,
        created=item.created,
        first_seen=item.first_seen,
        last_seen=item.last_seen,
        declared=item.declared,
        has_metadata=bool(item.has_metadata),
        version=int(item.version or 0),
    )
