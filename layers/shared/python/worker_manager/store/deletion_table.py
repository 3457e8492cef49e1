"""What is deleted from the registry's table because somebody asks for it.

Where to read next: ``registry_table``, which has the keys; ``registry.deletions``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from worker_manager.store.registry_items import line_of, name_of, unchanged
from worker_manager.store.registry_table import METADATA, QUARANTINED, TYPES
from worker_manager.store.transactions import commit, commit_many

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pynamodb.transactions import TransactWrite

    from worker_manager.core.model import WorkerKey
    from worker_manager.store.registry_rows import Quarantined
    from worker_manager.store.registry_table import RegistryTable
    from worker_manager.store.transactions import Writes


class Versioned(Protocol):
    """A worker as it was read."""

    @property
    def key(self) -> WorkerKey:
        """Its name."""
        ...

    @property
    def version(self) -> int:
        """What must not have changed since."""
        ...


class DeletionTable:
    """The verbs of deleting."""

    def __init__(self, table: RegistryTable) -> None:
        """Over the registry's table."""
        self._table = table

    def remove(self, partition: str, name: str) -> None:
        """Remove a provisioner or group, whatever it is by now; removing it twice is fine."""
        self._table.items(partition, name).delete()

    def remove_type(self, queue_id: str) -> None:
        """Remove a worker type and its metadata."""

        def fill(write: TransactWrite) -> None:
            write.delete(self._table.items(TYPES, queue_id))
            write.delete(self._table.items(f"{queue_id}#metadata", METADATA))

        commit(self._table.tables.connection, fill)

    def remove_worker(
        self, worker: Versioned, quarantine: Quarantined | None, *, along: Writes | None
    ) -> None:
        """Remove a worker and its line in the list of quarantines; its history goes with time.

        ``along`` is written with it.  ``ConflictError`` if the worker has changed: it may have
        another line by now.
        """

        def fill(write: TransactWrite) -> None:
            self._remove(write, worker)
            if quarantine is not None:
                write.delete(self._table.items(QUARANTINED, line_of(quarantine)))
            if along is not None:
                along(write)

        commit(self._table.tables.connection, fill)

    def remove_workers(
        self, workers: Sequence[Versioned], *, alone: Callable[[Versioned], bool]
    ) -> int:
        """Remove workers that have no line, as they were read, many at once; how many there were.

        Where one has changed those around it are removed ``alone``, as with ``commit_many``.
        """
        return len(commit_many(self._table.tables.connection, workers, self._remove, alone=alone))

    def _remove(self, write: TransactWrite, worker: Versioned) -> None:
        key = worker.key
        as_read = unchanged(self._table.items, worker.version)
        write.delete(self._table.items(f"{key.pool_id}#workers", name_of(key)), condition=as_read)
