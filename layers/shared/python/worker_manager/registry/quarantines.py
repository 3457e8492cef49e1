"""Who gets no tasks, until when, why, and who said so.

A quarantine is a moment: later than now it is in force.  Where tasks are given out the worker's
row is looked at, and written, in one with the claim; so after a quarantine was written no claim
is.  Read next: ``registry``, which keeps the rows.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from worker_manager.core.errors import ConflictError
from worker_manager.core.events import WORKER_QUARANTINED, WORKER_RELEASED, quarantine_event
from worker_manager.core.moments import whole_milliseconds
from worker_manager.registry import changes, records
from worker_manager.registry.entities import QuarantineChange
from worker_manager.registry.registry import ATTEMPTS, changed_too_often
from worker_manager.store.outbox_items import outbox_key
from worker_manager.store.quarantine_table import CHANGES_KEPT, QuarantineTable
from worker_manager.store.registry_items import line_of
from worker_manager.store.registry_rows import Quarantined

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from worker_manager.core.model import Json, WorkerKey
    from worker_manager.registry.entities import RegistryWorker
    from worker_manager.registry.registry import Registry

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

        Saying the same again changes nothing.  Errors as of ``observe``.
        """
        said, until = info or UNSPECIFIED, whole_milliseconds(until)
        for _ in range(ATTEMPTS):
            known = self._registry.worker(key)
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

    def release_due(self, *, now: datetime, limit: int = 1000) -> int:
        """Tell of quarantines that have ended by themselves; how many there were."""
        released = 0
        for line in self._table.listed(due=now, limit=limit):
            worker = self._registry.worker(line.key)
            if worker is None or worker.quarantine_until != line.until:
                self._table.drop(line)
                continue
            try:
                self._write(worker, worker, change=None, at=now)
            except ConflictError:
                continue
            released += 1
        return released

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
        change: QuarantineChange | None,
        at: datetime,
    ) -> RegistryWorker:
        """A worker whose quarantine changes, with its line, its history and its event."""
        key, until = after.key, after.quarantine_until
        was = before.quarantine_until
        is_held = until is not None and until > at
        event = quarantine_event(
            WORKER_QUARANTINED if is_held else WORKER_RELEASED,
            key,
            at=at,
            until=until if is_held else None,
            info=after.quarantine_info if change else "its time is over",
            client_id=change.client_id if change else None,
        )
        is_over = change is None or (was is not None and was > at)
        events = [event] if is_held or is_over else []
        self._table.write(
            records.to_stored(after, self._registry.windows),
            before=Quarantined(key, was) if was is not None else None,
            after=Quarantined(key, until) if until is not None and is_held else None,
            change=records.from_change(change) if change else None,
            events=events,
            at=at,
        )
        if events:
            self._announce(outbox_key(events, at), events)
        return replace(after, version=after.version + 1)
