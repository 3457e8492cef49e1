"""The registry over its table: who was seen where, and when.

Decisions are in ``changes`` and ``windows``.  A worker's row is read, decided and written over
the version that was read, and decided anew when somebody else was faster; everything else is
written so that writers cannot disturb each other (``store.registry_table``).  Read next:
``quarantines`` and ``declarations``, what people say of it all, and ``deletions``.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING

from worker_manager.core.errors import ConflictError, NotFoundError, QueueUnavailableError
from worker_manager.registry import changes, records
from worker_manager.registry.windows import Windows
from worker_manager.store.deletion_table import DeletionTable
from worker_manager.store.registry_rows import Quarantined
from worker_manager.store.registry_table import PROVISIONERS, TYPES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime

    from worker_manager.core.model import WorkerKey
    from worker_manager.registry.entities import (
        Provisioner,
        RegistryWorker,
        WorkerGroup,
        WorkerType,
    )
    from worker_manager.registry.observations import Observation
    from worker_manager.store.registry_table import RegistryTable
    from worker_manager.store.transactions import Writes

ATTEMPTS = 8
"""How often one change of a worker is decided before giving up on lost races."""
INTERVAL = timedelta(minutes=30)
"""How exactly it is known when something was last seen, where nothing else is written."""
PAGE = 1000
"""Rows that are read at once, where all are."""
NAMES_NOTED = 10_000
"""Groups, types and provisioners whose last sighting one container knows."""


class Registry:
    """Everything that is known of workers; safe to use from threads and functions at once."""

    def __init__(
        self,
        table: RegistryTable,
        *,
        windows: Windows | None = None,
        interval: timedelta = INTERVAL,
    ) -> None:
        """Over its table; ``interval`` is how exactly it is known when something was seen."""
        self.table = table
        self.deletions = DeletionTable(table)
        self.windows = windows or Windows()
        self.interval = interval
        self._noted: dict[tuple[str, str], datetime] = {}

    # Reading

    def worker(self, key: WorkerKey) -> RegistryWorker | None:
        """One worker, as it is now; ``None`` if nothing is known of it.  One read."""
        stored = self.table.worker(key)
        return records.to_worker(stored) if stored is not None else None

    def workers(
        self, queue_id: str, *, limit: int, after: str = ""
    ) -> tuple[list[RegistryWorker], str | None]:
        """A page of a type's workers by group and id, shown or not, and where the next begins."""
        stored = self.table.workers(queue_id, limit=limit, after=after)
        last = stored[-1].key if len(stored) == limit else None
        following = f"{last.group}#{last.worker_id}" if last else None
        return [records.to_worker(one) for one in stored], following

    def all_workers(
        self, queue_id: str, *, after: str = "", at_once: int = PAGE
    ) -> Iterator[RegistryWorker]:
        """A type's workers by group and id, shown or not, from the one that follows ``after``.

        They are read ``at_once`` as they are needed.
        """
        following: str | None = after
        while following is not None:
            page, following = self.workers(queue_id, limit=at_once, after=following)
            yield from page

    def workers_named(self, keys: Sequence[WorkerKey]) -> dict[WorkerKey, RegistryWorker]:
        """Those of these workers that are known, of any type, in few requests."""
        return {one.key: records.to_worker(one) for one in self.table.workers_named(keys)}

    def worker_type(self, queue_id: str) -> WorkerType | None:
        """One worker type, as it is now; ``None`` if nothing is known of it.  One read."""
        stored = self.table.name(TYPES, queue_id)
        return records.to_type(stored) if stored is not None else None

    def worker_types(
        self, *, provisioner_id: str | None = None, after: str = "", limit: int | None = None
    ) -> list[WorkerType]:
        """Worker types in order, of all provisioners or of one, shown or not."""
        prefix = f"{provisioner_id}/" if provisioner_id else ""
        found = self.table.names(TYPES, prefix=prefix, after=after)
        return [records.to_type(stored) for stored in islice(found, limit)]

    def provisioner(self, provisioner_id: str) -> Provisioner | None:
        """One provisioner, as it is now; ``None`` if nothing is known of it.  One read."""
        stored = self.table.name(PROVISIONERS, provisioner_id)
        return records.to_provisioner(stored) if stored is not None else None

    def provisioners(self, *, after: str = "", limit: int | None = None) -> list[Provisioner]:
        """Provisioners in order, shown or not."""
        found = self.table.names(PROVISIONERS, after=after)
        return [records.to_provisioner(stored) for stored in islice(found, limit)]

    def groups(
        self, queue_id: str, *, after: str = "", limit: int | None = None
    ) -> list[WorkerGroup]:
        """The worker groups of a type, in order, seen lately or not."""
        found = self.table.names(f"{queue_id}#groups", after=after)
        return [records.to_group(queue_id, stored) for stored in islice(found, limit)]

    # What a queue saw

    def sighted(
        self, key: WorkerKey, worker: RegistryWorker | None, *, now: datetime, calls: bool
    ) -> RegistryWorker:
        """A worker of which ``worker`` was known was heard of; ``calls`` if it wants work.

        Written at most once an interval; then its group, type and provisioner are noted as well.
        A write that loses to another is left out: the other one noted as much, or the next will.
        """
        before = worker or changes.meet(key, now)
        after = changes.seen(before, now, calls=calls, interval=self.interval)
        if after is before:
            return before
        try:
            written = self.save(after)
        except ConflictError:
            return self.worker(key) or before
        self.note_names(key, now)
        return written

    def observe(self, observations: Iterable[Observation]) -> None:
        """Take in what a queue saw, in any order; repeats are harmless.

        Raises ``QueueUnavailableError`` if a worker is changed too often at once; what was taken
        in by then stays, and may be told again.
        """
        by_worker: dict[WorkerKey, list[Observation]] = defaultdict(list)
        for observation in observations:
            by_worker[observation.key].append(observation)
        for key, seen in by_worker.items():
            first = min(one.at for one in seen)

            def take_in(
                worker: RegistryWorker | None,
                key: WorkerKey = key,
                seen: list[Observation] = seen,
                first: datetime = first,
            ) -> RegistryWorker:
                known = worker or changes.meet(key, first)
                return changes.observed(known, seen, interval=self.interval)

            after = self._change(key, take_in)
            if after is not None and after.last_seen is not None:
                self.note_names(key, after.last_seen)

    def gone(self, key: WorkerKey, *, at: datetime) -> None:
        """The worker's machine ended then; one never heard of stays unknown, and so does one
        that was heard of since."""

        def leave(worker: RegistryWorker | None) -> RegistryWorker | None:
            if worker is None or worker.gone or (worker.last_seen and worker.last_seen > at):
                return worker
            return replace(worker, gone=at)

        self._change(key, leave)

    def watch(self, key: WorkerKey, *, until: datetime) -> None:
        """Note nearly every call of a worker until then; one never heard of is noted anyway."""

        def await_it(worker: RegistryWorker | None) -> RegistryWorker | None:
            if worker is None or (worker.watched_until and worker.watched_until >= until):
                return worker
            return replace(worker, watched_until=until)

        self._change(key, await_it)

    def note_names(self, key: WorkerKey, at: datetime) -> None:
        """Note when a worker's group, type and provisioner were seen, once an interval each."""
        provisioner_id = key.pool_id.partition("/")[0]
        for name in (
            (f"{key.pool_id}#groups", key.group),
            (TYPES, key.pool_id),
            (PROVISIONERS, provisioner_id),
        ):
            noted = self._noted.get(name)
            if noted is not None and at < noted + self.interval:
                continue
            self.table.sighted(*name, at, unless_since=at - self.interval)
            if len(self._noted) >= NAMES_NOTED:
                self._noted.clear()
            self._noted[name] = at

    def forget_noted(self) -> None:
        """Names were deleted: the next sighting of any is written, however recent the last one."""
        self._noted.clear()

    # For the embedded queue, whose claims are written in one with the worker's row

    def writes(self, worker: RegistryWorker) -> Writes:
        """The worker's row, over its version, as part of a transaction."""
        return self.table.worker_writes(records.to_stored(worker, self.windows))

    def end_writes(self, observation: Observation) -> Writes | None:
        """What becomes of a worker's row as a run of its ends; ``None`` if nothing does."""
        before = self.worker(observation.key)
        if before is None:
            return None
        after = changes.observed(before, [observation], interval=self.interval)
        return self.writes(after) if after != before else None

    def delete_worker(
        self, key: WorkerKey, *, along: Callable[[RegistryWorker], Writes | None] | None = None
    ) -> None:
        """Forget a worker, ``along`` with what is written for it as it was, in one.

        ``NotFoundError`` if nothing is known of it.
        """
        for _ in range(ATTEMPTS):
            worker = self.worker(key)
            if worker is None:
                raise NotFoundError(f"worker {full_name(key)} is not known")
            until = worker.quarantine_until
            line = Quarantined(key, until) if until else None
            writes = along(worker) if along is not None else None
            try:
                self.deletions.remove_worker(worker, line, along=writes)
            except ConflictError:
                continue
            return
        raise changed_too_often(key)

    def _change(
        self, key: WorkerKey, change: Callable[[RegistryWorker | None], RegistryWorker | None]
    ) -> RegistryWorker | None:
        """The worker after ``change``, if that was anything new."""
        for _ in range(ATTEMPTS):
            before = self.worker(key)
            after = change(before)
            if after is None or after == before:
                return None
            try:
                return self.save(after)
            except ConflictError:
                continue
        raise changed_too_often(key)

    def save(self, worker: RegistryWorker) -> RegistryWorker:
        """Write a worker over its version; ``ConflictError`` if that has changed."""
        version = self.table.save_worker(records.to_stored(worker, self.windows))
        return replace(worker, version=version)


def changed_too_often(key: WorkerKey) -> QueueUnavailableError:
    """Races over one worker were lost too often; worth a retry."""
    return QueueUnavailableError(f"worker {full_name(key)} is changed too often at once")


def full_name(key: WorkerKey) -> str:
    """A worker's name, in words."""
    return f"{key.pool_id}/{key.group}/{key.worker_id}"
