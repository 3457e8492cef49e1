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
``closed``                     ``<until>#<task queue id>``         downtimes of types by their end
``taken``                      ``<name>#<minute>``                 what a minute allows, counted
=============================  ==================================  ============================

Sightings touch nothing but when something was seen, declarations nothing but what was declared,
so neither overwrites the other.  Quarantines are ``quarantine_table``'s, downtimes
``downtime_table``'s.  What it all means is decided in ``worker_manager.registry``.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING

from pynamodb.exceptions import DoesNotExist, PutError, UpdateError

from worker_manager.core.errors import ConflictError
from worker_manager.core.model import WorkerKey, canonical_json
from worker_manager.core.moments import to_wire
from worker_manager.store.registry_items import (
    RegistryItem,
    epoch,
    name_of,
    to_name,
    to_worker,
    unchanged,
    version_after,
)
from worker_manager.store.tables import bind
from worker_manager.store.transactions import commit, is_condition_failure

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pynamodb.expressions.condition import Condition
    from pynamodb.expressions.update import Action
    from pynamodb.transactions import TransactWrite

    from worker_manager.core.model import Json
    from worker_manager.store.registry_rows import StoredName, StoredWorker
    from worker_manager.store.tables import Tables
    from worker_manager.store.transactions import Writes

PROVISIONERS = "provisioners"
TYPES = "types"
QUARANTINED = "quarantined"
CLOSED = "closed"
METADATA = "metadata"
TAKEN = "taken"
GROUP_KEPT = timedelta(days=30)
"""How long a worker group is remembered after its last sighting."""


class RegistryTable:
    """The verbs of the registry's table."""

    def __init__(self, items: type[RegistryItem], tables: Tables) -> None:
        """Over the model bound to its table; ``tables`` have the outbox."""
        self.items = items
        self.tables = tables

    @classmethod
    def bind(cls, table_name: str, tables: Tables) -> RegistryTable:
        """The table called ``table_name``, over the connection of ``tables``."""
        return cls(bind(RegistryItem, table_name, tables.connection), tables)

    # What was seen and declared

    def name(self, partition: str, name: str) -> StoredName | None:
        """One provisioner, type or group, strongly consistent; ``None`` if there is none."""
        try:
            return to_name(self.items.get(partition, name, consistent_read=True))
        except DoesNotExist:
            return None

    def names(self, partition: str, *, prefix: str = "", after: str = "") -> Iterator[StoredName]:
        """Those of a partition in order, from the one that follows ``after``; read as needed."""
        condition: Condition | None = self.items.sk.startswith(prefix) if prefix else None
        if after and after >= prefix:
            # A key condition has one comparison: the end of the prefix is found in passing.
            condition = self.items.sk > after
        for item in self.items.query(partition, condition, consistent_read=True):
            if not item.sk.startswith(prefix):
                return
            yield to_name(item)

    def sighted(self, partition: str, name: str, at: datetime, *, unless_since: datetime) -> bool:
        """Note that it was seen ``at``, ``unless`` it was seen ``since``; whether it was noted."""
        model = self.items
        actions: list[Action] = [
            model.last_seen.set(at),
            model.first_seen.set(model.first_seen | at),
            _since(model, at),
        ]
        if partition.endswith("#groups"):
            actions.append(model.ttl.set(epoch(at + GROUP_KEPT)))
        due = model.last_seen.does_not_exist() | (model.last_seen <= unless_since)
        try:
            model(partition, name).update(actions, condition=due)
        except UpdateError as error:
            if is_condition_failure(error):
                return False
            raise
        return True

    def introduce(self, partition: str, name: str, at: datetime) -> None:
        """Know it from then on, if it is not known yet; nothing was seen or said of it."""
        self.items(partition, name).update([_since(self.items, at)])

    def declare(self, partition: str, before: StoredName, declared: Json) -> StoredName:
        """Replace what was declared of ``before``; ``ConflictError`` if that has changed."""
        item = self.items(partition, before.name)
        try:
            item.update(
                self.declaring(before, declared), condition=unchanged(self.items, before.version)
            )
        except UpdateError as error:
            if is_condition_failure(error):
                raise ConflictError(f"{before.name} changed meanwhile") from error
            raise
        return to_name(item)

    def declaring(self, before: StoredName, declared: Json) -> list[Action]:
        """What is written of ``before`` to replace what was declared of it."""
        model = self.items
        return [
            model.declared.set(dict(declared)),
            model.created.set(model.created | before.created),
            model.version.set(before.version + 1),
        ]

    def forget(self, partition: str, before: StoredName) -> bool:
        """Remove it, unless it was seen or spoken of since ``before`` was read."""
        model = self.items
        as_read = unchanged(model, before.version)
        if before.last_seen is None:
            as_read &= model.last_seen.does_not_exist()
        else:
            as_read &= model.last_seen == before.last_seen

        def fill(write: TransactWrite) -> None:
            write.delete(model(partition, before.name), condition=as_read)
            if partition == TYPES:
                write.delete(model(f"{before.name}#metadata", METADATA))

        try:
            commit(self.tables.connection, fill)
        except ConflictError:
            return False
        return True

    # Metadata

    def metadata(self, queue_id: str) -> Json | None:
        """The metadata of a worker type, if it has any."""
        try:
            item = self.items.get(f"{queue_id}#metadata", METADATA, consistent_read=True)
        except DoesNotExist:
            return None
        found: Json = json.loads(str(item.body))
        return found

    def put_metadata(self, queue_id: str, metadata: Json | None, *, now: datetime) -> None:
        """Set a worker type's metadata, or with ``None`` remove it.

        The type need not be known, nor its provisioner: both are from then on.
        """
        model = self.items

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
                    _since(model, now),
                    model.version.set((model.version | 0) + 1),
                ],
            )
            provisioner_id = queue_id.partition("/")[0]
            write.update(model(PROVISIONERS, provisioner_id), [_since(model, now)])

        commit(self.tables.connection, fill)

    # Workers

    def worker(self, key: WorkerKey) -> StoredWorker | None:
        """One worker, strongly consistent; ``None`` if nothing is known of it."""
        try:
            item = self.items.get(f"{key.pool_id}#workers", name_of(key), consistent_read=True)
        except DoesNotExist:
            return None
        return to_worker(key.pool_id, item)

    def workers_named(self, keys: Sequence[WorkerKey]) -> list[StoredWorker]:
        """Those of these workers that are known, in any order, strongly consistent."""
        names = [(f"{key.pool_id}#workers", name_of(key)) for key in keys]
        found = self.items.batch_get(names, consistent_read=True) if names else ()
        return [to_worker(item.pk.partition("#")[0], item) for item in found]

    def workers(self, queue_id: str, *, limit: int, after: str = "") -> list[StoredWorker]:
        """At most ``limit`` workers by group and id, from the one that follows ``after``."""
        beyond = self.items.sk > after if after else None
        found = self.items.query(
            f"{queue_id}#workers", beyond, consistent_read=True, page_size=limit
        )
        return [to_worker(queue_id, item) for item in islice(found, limit)]

    def save_worker(self, worker: StoredWorker) -> int:
        """Write a worker over ``worker.version``; the version that it is of then.

        ``ConflictError`` if that has changed.
        """
        row = self.row_of(worker)
        try:
            row.save(condition=unchanged(self.items, worker.version))
        except PutError as error:
            if is_condition_failure(error):
                raise ConflictError(f"worker {name_of(worker.key)} changed meanwhile") from error
            raise
        return int(row.version)

    def worker_writes(self, worker: StoredWorker) -> Writes:
        """The same as part of a transaction, which then fails where this would."""

        def fill(write: TransactWrite) -> None:
            write.save(self.row_of(worker), condition=unchanged(self.items, worker.version))

        return fill

    def take(self, name: str, minute: datetime, number: int, *, most: int) -> bool:
        """Take so many of the ``most`` that a minute allows; false if fewer are left.

        Exact however many callers take at once; ``number`` itself is never more than ``most``.
        """
        model = self.items
        item = model(TAKEN, f"{name}#{to_wire(minute)}")
        left = model.taken.does_not_exist() | (model.taken <= most - number)
        actions: list[Action] = [
            model.taken.add(number),
            model.ttl.set(epoch(minute + timedelta(hours=1))),
        ]
        try:
            item.update(actions, condition=left)
        except UpdateError as error:
            if is_condition_failure(error):
                return False
            raise
        return True

    def row_of(self, worker: StoredWorker) -> RegistryItem:
        """A worker as it is written, one version on."""
        return self.items(
            f"{worker.key.pool_id}#workers",
            name_of(worker.key),
            body=worker.body,
            ttl=epoch(worker.kept),
            version=version_after(worker.version),
        )


def _since(model: type[RegistryItem], at: datetime) -> Action:
    """It is known since then, unless it was before."""
    return model.created.set(model.created | at)
