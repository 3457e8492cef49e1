"""What the queue remembers of a worker: when it called, what it got, and whether it may.

Values and functions over them; ``sightings`` reads and writes them.  Numbers are Taskcluster's:
a worker is remembered for a day after its last call, with its twenty latest tasks.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from worker_manager.core.model import Json, canonical_json
from worker_manager.core.moments import from_wire, to_wire
from worker_manager.store.queue_rows import StoredWorker

if TYPE_CHECKING:
    from collections.abc import Sequence

REMEMBERED = timedelta(days=1)
"""How long a worker is listed after its last call or a change of its quarantine."""
RECENT_TASKS = 20
QUARANTINE_CHANGES = 20
"""How many of the latest changes of a quarantine are kept."""


@dataclass(frozen=True, slots=True)
class QueueWorker:
    """One worker as the queue saw it."""

    queue_id: str
    group: str
    worker_id: str
    first_claim: datetime
    """Its first call for work, whether or not there was any."""
    last_active: datetime
    expires: datetime
    quarantine_until: datetime | None = None
    quarantine_changes: tuple[Json, ...] = ()
    recent_tasks: tuple[Json, ...] = ()
    """``{taskId, runId}``, oldest first."""
    version: int = 0

    def is_quarantined(self, now: datetime) -> bool:
        """Whether it gets no tasks at ``now``."""
        return self.quarantine_until is not None and self.quarantine_until > now

    def is_listed(self, now: datetime) -> bool:
        """Whether it is still remembered: a quarantined one is, however long it is silent."""
        return self.expires >= now or self.is_quarantined(now)


def meet(queue_id: str, group: str, worker_id: str, now: datetime) -> QueueWorker:
    """A worker that called for the first time."""
    return QueueWorker(
        queue_id=queue_id,
        group=group,
        worker_id=worker_id,
        first_claim=now,
        last_active=now,
        expires=now + REMEMBERED,
    )


def heard_of(worker: QueueWorker, now: datetime, *, interval: timedelta) -> QueueWorker:
    """The worker called; noted at most once an ``interval``, which spares most writes."""
    if now - worker.last_active < interval:
        return worker
    return replace(worker, last_active=now, expires=max(worker.expires, now + REMEMBERED))


def took(worker: QueueWorker, tasks: Sequence[Json], now: datetime) -> QueueWorker:
    """The worker was given these tasks (``{taskId, runId}``)."""
    return replace(
        worker,
        last_active=now,
        expires=max(worker.expires, now + REMEMBERED),
        recent_tasks=(*worker.recent_tasks, *tasks)[-RECENT_TASKS:],
    )


def quarantine(
    worker: QueueWorker, until: datetime, *, info: str, client_id: str, now: datetime
) -> QueueWorker:
    """Give the worker no tasks until then; a moment in the past lifts the quarantine."""
    change = {
        "clientId": client_id,
        "updatedAt": to_wire(now),
        "quarantineUntil": to_wire(until),
        "quarantineInfo": info,
    }
    return replace(
        worker,
        quarantine_until=until,
        quarantine_changes=(*worker.quarantine_changes, change)[-QUARANTINE_CHANGES:],
        expires=max(worker.expires, now + REMEMBERED),
    )


def to_list_item(worker: QueueWorker, now: datetime) -> dict[str, Any]:
    """The worker as ``listWorkers`` shows it: a quarantine only while it is in force."""
    item: dict[str, Any] = {
        "workerGroup": worker.group,
        "workerId": worker.worker_id,
        "firstClaim": to_wire(worker.first_claim),
        "lastDateActive": to_wire(worker.last_active),
    }
    if worker.recent_tasks:
        item["latestTask"] = dict(worker.recent_tasks[-1])
    if worker.quarantine_until is not None and worker.is_quarantined(now):
        item["quarantineUntil"] = to_wire(worker.quarantine_until)
    return item


def to_details(worker: QueueWorker) -> dict[str, Any]:
    """The worker as ``getWorker`` shows it."""
    provisioner_id, _, worker_type = worker.queue_id.partition("/")
    details: dict[str, Any] = {
        "provisionerId": provisioner_id,
        "workerType": worker_type,
        "taskQueueId": worker.queue_id,
        "workerGroup": worker.group,
        "workerId": worker.worker_id,
        "recentTasks": [dict(task) for task in worker.recent_tasks],
        "expires": to_wire(worker.expires),
        "firstClaim": to_wire(worker.first_claim),
        "lastDateActive": to_wire(worker.last_active),
        "quarantineDetails": [dict(change) for change in worker.quarantine_changes],
    }
    if worker.quarantine_until is not None:
        details["quarantineUntil"] = to_wire(worker.quarantine_until)
    return details


def name_of(group: str, worker_id: str) -> str:
    """A worker's name in its queue's list.

    No id has a character that sorts before the one between: the list is by group, then by id.
    """
    return f"{group}#{worker_id}"


def to_stored(worker: QueueWorker) -> StoredWorker:
    """The worker as the table keeps it; one in quarantine is not forgotten before its end."""
    body = {
        "firstClaim": to_wire(worker.first_claim),
        "lastDateActive": to_wire(worker.last_active),
        "expires": to_wire(worker.expires),
        "quarantineUntil": worker.quarantine_until and to_wire(worker.quarantine_until),
        "quarantineDetails": worker.quarantine_changes,
        "recentTasks": worker.recent_tasks,
    }
    return StoredWorker(
        queue_id=worker.queue_id,
        worker=name_of(worker.group, worker.worker_id),
        body=canonical_json(body),
        expires=max(worker.expires, worker.quarantine_until or worker.expires),
        version=worker.version,
    )


def from_stored(stored: StoredWorker) -> QueueWorker:
    """Back from the table."""
    body = json.loads(stored.body)
    group, _, worker_id = stored.worker.partition("#")
    until = body["quarantineUntil"]
    return QueueWorker(
        queue_id=stored.queue_id,
        group=group,
        worker_id=worker_id,
        first_claim=from_wire(body["firstClaim"]),
        last_active=from_wire(body["lastDateActive"]),
        expires=from_wire(body["expires"]),
        quarantine_until=from_wire(until) if until else None,
        quarantine_changes=tuple(body["quarantineDetails"]),
        recent_tasks=tuple(body["recentTasks"]),
        version=stored.version,
    )
