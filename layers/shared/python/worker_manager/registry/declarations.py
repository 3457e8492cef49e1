"""What people say of provisioners, worker types and workers, and what is forgotten in the end.

A declaration is no sighting.  Only that of a worker shows it, and what it belongs to, as if it was
seen, as with Taskcluster.  What was declared is known by name with all that is above it; of what is
declared only what is given changes.  Read next: ``windows``, for how long it is shown, and
``deletions``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from worker_manager.core.errors import ConflictError, NotFoundError, QueueUnavailableError
from worker_manager.registry import changes, records
from worker_manager.registry.registry import ATTEMPTS, changed_too_often
from worker_manager.store.registry_rows import StoredName
from worker_manager.store.registry_table import PROVISIONERS, TYPES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from worker_manager.core.model import Json, WorkerKey
    from worker_manager.registry.entities import (
        Declaration,
        Metadata,
        Provisioner,
        RegistryWorker,
        WorkerType,
    )
    from worker_manager.registry.registry import Registry


class Declarations:
    """What is declared in a registry."""

    def __init__(self, registry: Registry) -> None:
        """Over the registry of what was seen."""
        self._registry = registry
        self._table = registry.table

    def provisioner(
        self, provisioner_id: str, said: Mapping[str, Any], *, by: str, now: datetime
    ) -> Provisioner:
        """Declare a provisioner; ``said`` are fields of its ``Declaration``."""

        def change(stored: StoredName) -> Json:
            before = records.to_provisioner(stored).declaration
            return records.to_declared(replace(before, **said, at=now, by=by))

        stored = self._declare(PROVISIONERS, provisioner_id, change, now)
        return records.to_provisioner(stored)

    def worker_type(
        self, queue_id: str, said: Mapping[str, Any], *, by: str, now: datetime
    ) -> WorkerType:
        """Declare a worker type; ``said`` are fields of its ``Declaration``, or ``is_hardware``."""
        of_type = {name: value for name, value in said.items() if name == "is_hardware"}
        of_words = {name: value for name, value in said.items() if name not in of_type}
        of_type |= {"is_hardware_said": True} if of_type else {}

        def change(stored: StoredName) -> Json:
            before = records.to_type(stored)
            declaration = replace(before.declaration, **of_words, at=now, by=by)
            return records.from_type(replace(before, declaration=declaration, **of_type))

        return records.to_type(self._declare(TYPES, queue_id, change, now))

    def note_hardware(self, queue_id: str, *, now: datetime) -> None:
        """The workers of a type turned out to be machines that stay.

        Nothing if that is known, or if a person said that they are not.
        """

        def change(stored: StoredName) -> Json:
            before = records.to_type(stored)
            is_hardware = before.is_hardware or not before.is_hardware_said
            return records.from_type(replace(before, is_hardware=is_hardware))

        known = self._registry.worker_type(queue_id)
        if known is not None and not known.is_hardware and not known.is_hardware_said:
            self._declare(TYPES, queue_id, change, now)

    def worker(self, key: WorkerKey, said: Mapping[str, Any], *, now: datetime) -> RegistryWorker:
        """Declare a worker, which shows it as if it was seen; ``said`` are fields of its.

        No queue has seen it for that.  An end that was declared does not move backward.
        """
        for _ in range(ATTEMPTS):
            before = self._registry.worker(key) or changes.meet(key, now)
            after = replace(before, declared=now, **said)
            if before.explicit_expires and after.explicit_expires:
                latest = max(before.explicit_expires, after.explicit_expires)
                after = replace(after, explicit_expires=latest)
            try:
                written = self._registry.save(after)
            except ConflictError:
                continue
            self._registry.note_names(key, now)
            return written
        raise changed_too_often(key)

    def metadata(self, queue_id: str) -> Metadata | None:
        """A worker type's metadata, if it has any."""
        stored = self._table.metadata(queue_id)
        return records.to_metadata(stored) if stored is not None else None

    def put_metadata(self, queue_id: str, metadata: Metadata) -> None:
        """Set a worker type's metadata, also of one that nobody has seen yet."""
        stored = records.from_metadata(metadata)
        self._table.put_metadata(queue_id, stored, now=metadata.updated)

    def delete_metadata(self, queue_id: str, *, now: datetime) -> None:
        """Remove a worker type's metadata.  ``NotFoundError`` if it has none."""
        if self._table.metadata(queue_id) is None:
            raise NotFoundError(f"worker type {queue_id} has no metadata")
        self._table.put_metadata(queue_id, None, now=now)

    def purge(self, *, now: datetime) -> int:
        """Forget what nobody has seen or spoken of for long enough; how many there were.

        A provisioner that was declared stays until somebody deletes it, one of which a type is
        known as long as that, and a type that is closed until then at least.
        """
        limit = now - self._registry.windows.retention
        purged, named = 0, set()
        for stored in list(self._table.names(TYPES)):
            found = records.to_type(stored)
            last = self._last_word(stored, found.declaration)
            if max(last, found.downtime.until if found.downtime else last) < limit:
                purged += self._table.forget(TYPES, stored)
            else:
                named.add(found.provisioner_id)
        for stored in list(self._table.names(PROVISIONERS)):
            declaration = records.to_provisioner(stored).declaration
            is_kept = declaration.at is not None or stored.name in named
            if not is_kept and self._last_word(stored, declaration) < limit:
                purged += self._table.forget(PROVISIONERS, stored)
        return purged

    def _last_word(self, stored: StoredName, declaration: Declaration) -> datetime:
        metadata = self.metadata(stored.name) if stored.has_metadata else None
        words = [stored.last_seen, declaration.at, metadata.updated if metadata else None]
        return max((word for word in words if word is not None), default=stored.created)

    def _declare(
        self, partition: str, name: str, change: Callable[[StoredName], Json], now: datetime
    ) -> StoredName:
        if partition == TYPES:
            self._table.introduce(PROVISIONERS, name.partition("/")[0], now)
        for _ in range(ATTEMPTS):
            before = self._table.name(partition, name) or StoredName(name, created=now)
            try:
                return self._table.declare(partition, before, change(before))
            except ConflictError:
                continue
        raise QueueUnavailableError(f"{name} is changed too often at once")
