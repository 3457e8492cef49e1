"""What other systems are told, as plain JSON: the reference's ten events and some of our own.

An event is written together with the transition it tells of and published afterwards, at least
once; its id derives from the transition, so that a repeat can be recognised.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from worker_manager.core.ids import event_id
from worker_manager.core.moments import to_wire

if TYPE_CHECKING:
    from datetime import datetime

    from worker_manager.core.model import Json, PoolError, Worker, WorkerKey

WORKER_REQUESTED = "worker-requested"
WORKER_RUNNING = "worker-running"
WORKER_STOPPED = "worker-stopped"
WORKER_REMOVED = "worker-removed"
WORKER_STOPPING = "worker-stopping"
WORKER_ERROR = "worker-error"
WORKER_QUARANTINED = "worker-quarantined"
WORKER_RELEASED = "worker-released"
TASK_QUEUE_CLOSED = "task-queue-closed"
TASK_QUEUE_OPENED = "task-queue-opened"
POOL_CREATED = "worker-pool-created"
POOL_UPDATED = "worker-pool-updated"
POOL_ERROR = "worker-pool-error"
LAUNCH_CONFIG_CREATED = "launch-config-created"
LAUNCH_CONFIG_UPDATED = "launch-config-updated"
LAUNCH_CONFIG_ARCHIVED = "launch-config-archived"
LAUNCH_CONFIG_PAUSED = "launch-config-paused"
LAUNCH_CONFIG_RESUMED = "launch-config-resumed"
ACTION_REQUESTED = "action-requested"
ACTION_RESOLVED = "action-resolved"
MACHINE_VERDICT = "machine-verdict"
MACHINES_HELD = "machines-held"
MACHINES_FREED = "machines-freed"


def _event(name: str, detail: Json, *identity: object) -> dict[str, Any]:
    return {
        "id": event_id(name, *identity),
        "name": name,
        "detail": {key: value for key, value in detail.items() if value is not None},
    }


def worker_event(name: str, worker: Worker, *, at: datetime, reason: str) -> dict[str, Any]:
    """Tell of ``worker`` as it is *after* the transition."""
    detail = {
        "workerPoolId": worker.key.pool_id,
        "providerId": worker.provider_id,
        "workerGroup": worker.key.group,
        "workerId": worker.key.worker_id,
        "capacity": worker.capacity,
        "launchConfigId": worker.launch_config_id,
        "decisionId": worker.decision,
        "timestamp": to_wire(at),
        "reason": reason,
    }
    return _event(name, detail, worker.key, worker.version)


def with_event(
    worker: Worker, *names: str, at: datetime, reason: str, **changes: Any
) -> dict[str, Any]:
    """``changes`` of a transition of ``worker``, with the events that tell of it.

    They are to be written in one, so that no crash comes between a transition and its events.
    """
    after = replace(worker, **changes, version=worker.version + 1)
    events = [worker_event(name, after, at=at, reason=reason) for name in names]
    return {**changes, "modified": at, "unsent": (*worker.unsent, *events)}


def quarantine_event(
    name: str,
    key: WorkerKey,
    *,
    at: datetime,
    until: datetime | None,
    info: str,
    client_id: str | None,
) -> dict[str, Any]:
    """Tell that a worker gets no tasks until then, or gets some again.

    ``client_id`` is who said so; ``None`` for a quarantine whose time is over.
    """
    detail = {
        "workerPoolId": key.pool_id,
        "workerGroup": key.group,
        "workerId": key.worker_id,
        "timestamp": to_wire(at),
        "quarantineUntil": to_wire(until) if until else None,
        "reason": info,
        "clientId": client_id,
    }
    return _event(name, detail, key, to_wire(at))


def action_event(name: str, run_id: str, detail: Json) -> dict[str, Any]:
    """Tell that a run of an action was asked for, or is over: each happens once."""
    return _event(name, detail, run_id)


def downtime_event(
    name: str,
    queue_id: str,
    *,
    at: datetime,
    until: datetime | None,
    info: str,
    client_id: str | None,
) -> dict[str, Any]:
    """Tell that none of a queue's tasks is given out until then, or that some are again.

    ``client_id`` is who said so; ``None`` for a downtime whose time is over.
    """
    detail = {
        "workerPoolId": queue_id,
        "timestamp": to_wire(at),
        "closedUntil": to_wire(until) if until else None,
        "reason": info,
        "clientId": client_id,
    }
    return _event(name, detail, queue_id, to_wire(at))


def machine_event(name: str, detail: Json, *identity: object) -> dict[str, Any]:
    """Tell how a machine is, or that too many of a pool are bad to do anything about them."""
    return _event(name, detail, *identity)


def pool_event(
    name: str,
    pool_id: str,
    provider_id: str,
    *,
    created: datetime,
    version: int,
    previous: str | None = None,
) -> dict[str, Any]:
    """Tell of a pool's definition; ``previous`` is the provider before the change.

    ``created`` is when the pool was: one that was deleted and made anew begins at version 1 again.
    """
    detail = {
        "workerPoolId": pool_id,
        "providerId": provider_id,
        "previousProviderId": previous,
        "reason": "worker pool definition changed",
    }
    return _event(name, detail, pool_id, to_wire(created), version)


def launch_config_event(
    name: str,
    pool_id: str,
    provider_id: str,
    launch_config_id: str,
    *,
    created: datetime,
    version: int,
) -> dict[str, Any]:
    """Tell what became of one launch config in version ``version`` of its pool.

    ``created`` is when the pool was.
    """
    detail = {
        "workerPoolId": pool_id,
        "providerId": provider_id,
        "launchConfigId": launch_config_id,
        "reason": "worker pool definition changed",
    }
    return _event(name, detail, pool_id, launch_config_id, to_wire(created), version)


def pause_event(
    name: str,
    pool_id: str,
    provider_id: str,
    launch_config_id: str,
    *,
    at: datetime,
    reason: str,
    until: datetime | None = None,
) -> dict[str, Any]:
    """Tell that a launch config was taken out of use at ``at``, or is used again."""
    detail = {
        "workerPoolId": pool_id,
        "providerId": provider_id,
        "launchConfigId": launch_config_id,
        "timestamp": to_wire(at),
        "until": to_wire(until) if until else None,
        "reason": reason,
    }
    return _event(name, detail, pool_id, launch_config_id, to_wire(at))


def error_events(error: PoolError, provider_id: str) -> list[dict[str, Any]]:
    """Tell of a pool error, without its description and extra: they may be long or private.

    An error of one worker is told once more under a name of its own.
    """
    detail = {
        "workerPoolId": error.pool_id,
        "providerId": provider_id,
        "errorId": error.error_id,
        "kind": error.kind,
        "title": error.title,
        "timestamp": to_wire(error.reported),
        "launchConfigId": error.launch_config_id,
        "workerGroup": error.extra.get("workerGroup"),
        "workerId": error.extra.get("workerId"),
        "reason": error.title,
    }
    names = [POOL_ERROR]
    if detail["workerGroup"] and detail["workerId"]:
        names.append(WORKER_ERROR)
    return [_event(name, detail, error.pool_id, error.error_id) for name in names]
