"""Who gets no tasks, until when, why, and who said so.

A quarantine is a moment: later than now it is in force.  Where tasks are given out the worker's
row is looked at, and written, in one with the claim; so after a quarantine was written no claim
is.  Read next: ``registry``, which keeps the rows.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from worker_manager.core.errors import ConflictError, NotFoundError
from worker_manager.core.events import WORKER_QUARANTINED, WORKER_RELEASED, quarantine_event
from worker_manager.core.moments import whole_milliseconds
from worker_manager.registry import changes, records
from worker_manager.registry.entities import QuarantineChange
from worker_manager.registry.registry import ATTEMPTS, changed_too_often, full_name
from worker_manager.store.outbox_items import outbox_key
from worker_manager.store.quarantine_table import CHANGES_KEPT, QuarantineTable
from worker_manager.store.registry_items import line_of
from worker_manager.store.registry_rows import Quarantined

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from worker_manager.core.model import Json, WorkerKey
    from worker_manager.registry.backends.protocol import QueueBackend
    from worker_manager.registry.entities import RegistryWorker
    from worker_manager.registry.registry import Registry
    from worker_manager.store.registry_rows import StoredWorker
    from worker_manager.store.transactions import Writes

ITS_END = "the end of its time"
"""Who ended a quarantine that nobody ended."""
UNSPECIFIED = "[unspecified]"
"""Why somebody is quarantined of whom nobody said why."""
REMEMBERED = timedelta(days=1)
"""How long a released worker is shown at least, whenever it was last seen."""


class Quarantines:
    """The quarantines of all workers of a registry."""

    def __init__(
        self, registry: Registry, *, announce: Callable[[str, Sequence[Json]], object]
    ) -> None:
        """``announce`` publishes events that were written under that key of the outbox."""
        self._registry = registry
        self._table = QuarantineTable(registry.table)
        self._announce = announce

    def change(
        self, key: WorkerKey, until: datetime, *, info: str, client_id: str, now: datetime
    ) -> RegistryWorker:
        """No tasks for a worker until then, also for one never seen; the past releases it.

        Saying the same again changes nothing.  Raises ``NotFoundError`` where one shall be
        released of which nothing is known; other errors as of ``observe``.
        """
        said, until = info or UNSPECIFIED, whole_milliseconds(until)
        for _ in range(ATTEMPTS):
            known = self._registry.worker(key)
            if known is None and until <= now:
                raise NotFoundError(f"worker {full_name(key)} is not known, nor in quarantine")
            before = known or changes.meet(key, now)
            is_same = (before.quarantine_until, before.quarantine_info) == (until, said)
            if known is not None and is_same and before.quarantined_by == client_id:
                return before
            after = changes.quarantined(before, until, info=said, client_id=client_id)
            shown = max(before.explicit_expires or now, now + REMEMBERED)
            after = replace(after, explicit_expires=shown)
            change = QuarantineChange(now, client_id, until, said)
            try:
                written = self._write(before, after, change=change, at=now)
            except ConflictError:
                continue
            self._table.trim(key)
            return written
        raise changed_too_often(key)

    def impose(
        self,
        backend: QueueBackend,
        key: WorkerKey,
        until: datetime,
        *,
        info: str,
        client_id: str,
        now: datetime,
    ) -> RegistryWorker:
        """As ``change``, but first where tasks are given out: what is told here holds there."""
        backend.quarantine(key, until, info=info)
        return self.change(key, until, info=info, client_id=client_id, now=now)

    def release_due(self, *, now: datetime, limit: int = 1000) -> int:
        """Tell of quarantines that have ended by themselves; how many there were."""
        released = 0
        for line in self._table.listed(due=now, limit=limit):
            worker = self._registry.worker(line.key)
            if worker is None or worker.quarantine_until != line.until:
                self._table.drop(line)
                continue
            change = QuarantineChange(now, ITS_END, line.until, "its time is over")
            try:
                self._write(worker, worker, change=change, at=now)
            except ConflictError:
                continue
            self._table.trim(line.key)
            released += 1
        return released

    def delete_worker(self, key: WorkerKey, *, client_id: str, now: datetime) -> None:
        """Forget a worker; if it is in quarantine, that ends, and is told.

        ``NotFoundError`` if nothing is known of it.
        """
        change = QuarantineChange(now, client_id, now, f"deleted by {client_id}")
        events: list[Json] = []

        def along(worker: RegistryWorker) -> Writes | None:
            events.clear()
            if not worker.is_quarantined(now):
                return None
            events.append(_event(key, None, change))
            told = records.from_change(change)
            return self._table.telling(self._stored(worker), told, events=events, at=now)

        self._registry.delete_worker(key, along=along)
        if events:
            self._announce(outbox_key(events, now), events)

    def history(self, key: WorkerKey, *, limit: int = CHANGES_KEPT) -> list[QuarantineChange]:
        """The latest changes of a worker's quarantine, the newest first."""
        return [records.to_change(stored) for stored in self._table.changes(key, limit=limit)]

    def listed(self, *, after: str = "", limit: int) -> tuple[list[Quarantined], str | None]:
        """A page of all quarantines that are in force, by their end, and where the next begins.

        Those that have just ended may be among them.
        """
        found = self._table.listed(after=after, limit=limit)
        return found, line_of(found[-1]) if len(found) == limit else None

    def _write(
        self,
        before: RegistryWorker,
        after: RegistryWorker,
        *,
        change: QuarantineChange,
        at: datetime,
    ) -> RegistryWorker:
        """A worker whose quarantine changes, with its line, its history and its event."""
        key, until = after.key, after.quarantine_until
        was = before.quarantine_until
        is_held = until is not None and until > at
        is_over = change.client_id == ITS_END or (was is not None and was > at)
        events = [_event(key, until if is_held else None, change)] if is_held or is_over else []
        version = self._table.write(
            self._stored(after),
            before=Quarantined(key, was) if was is not None else None,
            after=Quarantined(key, until) if until is not None and is_held else None,
            change=records.from_change(change),
            events=events,
            at=at,
        )
        if events:
            self._announce(outbox_key(events, at), events)
        return replace(after, version=version)

    def _stored(self, worker: RegistryWorker) -> StoredWorker:
        return records.to_stored(worker, self._registry.windows)


def _event(key: WorkerKey, until: datetime | None, change: QuarantineChange) -> Json:
    """What is told of a change; without ``until`` the worker gets tasks again."""
    is_by_somebody = change.client_id != ITS_END
    return quarantine_event(
        WORKER_RELEASED if until is None else WORKER_QUARANTINED,
        key,
        at=change.at,
        until=until,
        info=change.info,
        client_id=change.client_id if is_by_somebody else None,
    )
