"""The registry's entities as they are told: provisioners, worker types and workers.

What is unknown is left out.  Where to read next: ``registry_views``, which finds them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from worker_manager.api.actions import provisioner_actions, worker_actions
from worker_manager.api.registry_schemas import (
    ProvisionerResponse,
    QuarantineDetail,
    QueueWorkerResponse,
    RecentTask,
    RunName,
    TaskQueueResponse,
    WorkerItem,
    WorkerTypeResponse,
)
from worker_manager.registry import windows

if TYPE_CHECKING:
    from datetime import datetime

    from worker_manager.api.action_schemas import DeclaredAction
    from worker_manager.api.deps import RegistryAccess
    from worker_manager.core.activity import Downtime
    from worker_manager.registry.entities import (
        Claim,
        Provisioner,
        QuarantineChange,
        RegistryWorker,
        WorkerType,
    )


def worker_answer(worker: RegistryWorker, deps: RegistryAccess) -> QueueWorkerResponse:
    """A worker with its history."""
    key = worker.key
    known = deps.registry.worker_type(key.pool_id)
    rules = deps.registry.windows
    is_hardware = known is not None and known.is_hardware
    provisioner_id, _, type_name = key.pool_id.partition("/")
    changes = deps.quarantines.history(key) if worker.quarantine_until else []
    return QueueWorkerResponse(
        provisioner_id=provisioner_id,
        worker_type=type_name,
        task_queue_id=key.pool_id,
        worker_group=key.group,
        worker_id=key.worker_id,
        recent_tasks=[recent(claim) for claim in worker.claims],
        actions=worker_actions(worker, known, deps),
        expires=windows.worker_expires(worker, rules, is_hardware=is_hardware),
        quarantine_details=[quarantine_detail(change) for change in reversed(changes)],
        **told(
            quarantine_until=worker.quarantine_until,
            first_claim=worker.first_claim,
            last_date_active=worker.last_active,
            boot_time=worker.boot_time,
            capacity=worker.capacity,
            extra=dict(worker.extra) or None,
        ),
    )


def worker_item(worker: RegistryWorker, now: datetime) -> WorkerItem:
    """A worker as lists tell of it."""
    latest = worker.claims[-1] if worker.claims else None
    return WorkerItem(
        worker_group=worker.key.group,
        worker_id=worker.key.worker_id,
        **told(
            first_claim=worker.first_claim,
            last_date_active=worker.last_active,
            latest_task=latest and RunName(task_id=latest.task_id, run_id=latest.run_id),
            quarantine_until=worker.quarantine_until if worker.is_quarantined(now) else None,
        ),
    )


def provisioner(
    one: Provisioner, deps: RegistryAccess, *, sticks: bool | None = None
) -> ProvisionerResponse:
    """A provisioner as it is told; ``sticks`` is whether any of its types has metadata."""
    if sticks is None:
        types = deps.registry.worker_types(provisioner_id=one.provisioner_id)
        sticks = any(found.has_metadata for found in types)
    expires = windows.provisioner_expires(one, deps.registry.windows, has_metadata=sticks)
    return ProvisionerResponse(
        provisioner_id=one.provisioner_id,
        stability=one.declaration.stability,
        description=one.declaration.description,
        actions=provisioner_actions(one),
        expires=expires,
        **told(last_date_active=one.last_seen),
    )


def worker_type(
    one: WorkerType, deps: RegistryAccess, *, actions: list[DeclaredAction] | None = None
) -> WorkerTypeResponse:
    """A worker type as it is told, with these actions."""
    return WorkerTypeResponse(
        provisioner_id=one.provisioner_id,
        worker_type=one.worker_type,
        **told(actions=actions),
        **_type_facts(one, deps),
    )


def task_queue(one: WorkerType, deps: RegistryAccess) -> TaskQueueResponse:
    """A worker type by its task queue, as it is told."""
    return TaskQueueResponse(**_type_facts(one, deps))


def _type_facts(one: WorkerType, deps: RegistryAccess) -> dict[str, Any]:
    return {
        "task_queue_id": one.queue_id,
        "stability": one.declaration.stability,
        "description": one.declaration.description,
        "expires": windows.type_expires(one, deps.registry.windows),
        **told(
            last_date_active=one.last_seen,
            hardware=one.is_hardware or None,
        ),
        **downtime_told(one.downtime_at(deps.clock())),
    }


def downtime_told(downtime: Downtime | None) -> dict[str, Any]:
    """Until when a worker type is closed that is, with who said so, when and why."""
    if downtime is None:
        return {}
    return {
        "closed_until": downtime.until,
        "closed_info": downtime.info,
        **told(closed_at=downtime.since, closed_by=downtime.by),
    }


def quarantine_detail(change: QuarantineChange) -> QuarantineDetail:
    """A change of a quarantine as it is told."""
    return QuarantineDetail(
        client_id=change.client_id,
        updated_at=change.at,
        quarantine_until=change.until,
        quarantine_info=change.info,
    )


def recent(claim: Claim) -> RecentTask:
    """A claim as it is told."""
    return RecentTask(
        task_id=claim.task_id,
        run_id=claim.run_id,
        claimed=claim.claimed,
        **told(state=claim.state, reason_resolved=claim.reason, resolved=claim.resolved),
    )


def told(**facts: Any) -> dict[str, Any]:
    """Those of the facts that are known."""
    return {name: value for name, value in facts.items() if value is not None}
