"""Rows of the registry's table, and how its values become rows and come back.

Where to read next: ``registry_table``, which says what is kept under which key.
"""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random
from typing import Any

from pynamodb.attributes import BooleanAttribute, NumberAttribute, UnicodeAttribute
from pynamodb.models import Model

from worker_manager.core.model import WorkerKey
from worker_manager.core.moments import from_wire, to_wire
from worker_manager.store.attributes import CompactJson, MomentAttribute
from worker_manager.store.registry_rows import Quarantined, StoredName, StoredWorker

_CHANCE = Random()


class RegistryItem(Model):
    """Table ``registry``; keys and what is under them as ``registry_table`` says."""

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


def unchanged(model: type[RegistryItem], version: int) -> Any:
    """The condition that a row is still of the version that was read; 0 is that there was none."""
    return model.version == version if version else model.version.does_not_exist()


def version_after(version: int) -> int:
    """The next version of a row; the first is by chance.

    So no version of a row that was deleted comes again, and what was decided over it fails.
    """
    return version + 1 if version else _CHANCE.randrange(1, 2**48)


def line_of(quarantine: Quarantined) -> str:
    """Its place in the list of quarantines, for ``quarantined``'s ``after``."""
    key = quarantine.key
    return f"{to_wire(quarantine.until)}#{key.pool_id}#{name_of(key)}"


def to_quarantined(line: str) -> Quarantined:
    """Back from its place."""
    until, pool_id, group, worker_id = line.split("#")
    return Quarantined(WorkerKey(pool_id, group, worker_id), from_wire(until))


def name_of(key: WorkerKey) -> str:
    """A worker's name in its queue's list.

    No id has a character that sorts before the one between: the list is by group, then by id.
    """
    return f"{key.group}#{key.worker_id}"


def epoch(moment: datetime) -> int:
    """Seconds since 1970, as TTLs are."""
    return int(moment.timestamp())


def to_worker(queue_id: str, item: RegistryItem) -> StoredWorker:
    """A worker, from its row."""
    group, _, worker_id = item.sk.partition("#")
    return StoredWorker(
        key=WorkerKey(queue_id, group, worker_id),
        body=str(item.body),
        kept=datetime.fromtimestamp(int(item.ttl or 0), UTC),
        version=int(item.version or 0),
    )


def to_name(item: RegistryItem) -> StoredName:
    """A provisioner, type or group, from its row."""
    return StoredName(
        name=item.sk,
        created=item.created,
        first_seen=item.first_seen,
        last_seen=item.last_seen,
        declared=item.declared,
        has_metadata=bool(item.has_metadata),
        version=int(item.version or 0),
    )
