"""Whole worker types that are closed: until when, why, and who said so.

A downtime is a moment: later than now, none of the type's tasks is given out, and nobody is started
for them.  The type's row is looked at before each claim.  Read next: ``quarantines``, the same of
single workers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from worker_manager.core.activity import Downtime
from worker_manager.core.errors import ConflictError, NotFoundError, QueueUnavailableError
from worker_manager.core.events import TASK_QUEUE_CLOSED, TASK_QUEUE_OPENED, downtime_event
from worker_manager.core.moments import whole_milliseconds
from worker_manager.registry import records
from worker_manager.registry.quarantines import UNSPECIFIED
from worker_manager.registry.registry import ATTEMPTS
from worker_manager.store.downtime_table import DowntimeTable
from worker_manager.store.outbox_items import outbox_key
from worker_manager.store.registry_rows import Closed, StoredName
from worker_manager.store.registry_table import PROVISIONERS, TYPES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from worker_manager.core.model import Json
    from worker_manager.registry.entities import WorkerType
    from worker_manager.registry.registry import Registry

TIME_IS_OVER = "its time is over"
"""Why a type is open again that nobody opened."""


class Downtimes:
    """The downtimes of all worker types of a registry."""

    def __init__(
        self, registry: Registry, *, announce: Callable[[str, Sequence[Json]], object]
    ) -> None:
        """``announce`` publishes events that were written under that key of the outbox."""
        self._registry = registry
        self._table = DowntimeTable(registry.table)
        self._announce = announce

    def change(
        self, queue_id: str, until: datetime, *, info: str, client_id: str, now: datetime
    ) -> WorkerType:
        """No tasks for any worker of a type until then, also of one never seen; the past opens it.

        Saying the same again changes nothing, and so does opening what is open.  Raises
        ``NotFoundError`` where a type is opened of which nothing is known, and
        ``QueueUnavailableError`` if it is changed too often at once.
        """
        said = Downtime(whole_milliseconds(until), now, client_id, info or UNSPECIFIED)
        for _ in range(ATTEMPTS):
            stored = self._registry.table.name(TYPES, queue_id)
            if stored is None and said.until <= now:
                raise NotFoundError(f"worker type {queue_id} is not known")
            stored = stored or StoredName(queue_id, created=now)
            before = records.to_type(stored)
            if _is_same(before.downtime_at(now), said, now):
                return before
            self._registry.table.introduce(PROVISIONERS, before.provisioner_id, now)
            try:
                return self._write(stored, said, now, client_id=client_id)
            except ConflictError:
                continue
        raise _changed_too_often(queue_id)

    def open_due(self, *, now: datetime, limit: int = 1000) -> int:
        """Tell of downtimes that have ended by themselves; how many there were."""
        opened = 0
        for line in self._table.listed(due=now, limit=limit):
            stored = self._registry.table.name(TYPES, line.queue_id)
            downtime = records.to_type(stored).downtime if stored is not None else None
            if stored is None or downtime is None or downtime.until != line.until:
                self._table.drop(line)
                continue
            try:
                over = replace(downtime, info=TIME_IS_OVER)
                self._write(stored, over, now, client_id=None)
            except ConflictError:
                continue
            opened += 1
        return opened

    def in_force(self, *, now: datetime) -> Mapping[str, datetime]:
        """Until when each type is closed that is, by its task queue's id.  One read for all."""
        lines = self._table.listed(beyond=now, limit=None)
        return {line.queue_id: line.until for line in lines}

    def _write(
        self, stored: StoredName, said: Downtime, at: datetime, *, client_id: str | None
    ) -> WorkerType:
        """A type whose downtime begins, changes or ends, with its line and its event."""
        before, queue_id = records.to_type(stored), stored.name
        is_closed = said.until > at
        after = replace(before, downtime=said if is_closed else None)
        event = downtime_event(
            TASK_QUEUE_CLOSED if is_closed else TASK_QUEUE_OPENED,
            queue_id,
            at=at,
            until=said.until if is_closed else None,
            info=said.info,
            client_id=client_id,
        )
        self._table.write(
            stored,
            records.from_type(after),
            before=Closed(queue_id, before.downtime.until) if before.downtime else None,
            after=Closed(queue_id, said.until) if is_closed else None,
            events=[event],
            at=at,
        )
        self._announce(outbox_key([event], at), [event])
        return after


def _is_same(before: Downtime | None, said: Downtime, now: datetime) -> bool:
    """Whether what is said is so already."""
    if before is None:
        return said.until <= now
    return before == replace(said, since=before.since)


def _changed_too_often(queue_id: str) -> QueueUnavailableError:
    return QueueUnavailableError(f"worker type {queue_id} is changed too often at once")
