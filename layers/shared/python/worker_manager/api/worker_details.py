"""All that anybody knows of one worker, each part with who says so.

Where to read next: ``everyone`` (how what is known is joined), ``worker_stats`` (numbers only).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from worker_manager.api.everyone import PATIENCE, known
from worker_manager.api.machines import verdicts_on
from worker_manager.api.registry_answers import quarantine_detail, recent, task_queue, told
from worker_manager.api.registry_schemas import RunName
from worker_manager.api.routing import Call, Route
from worker_manager.api.search_schemas import (
    DeclaredPart,
    GroupPart,
    ManagedPart,
    ObservedPart,
    QuarantinePart,
    Standing,
    WorkerDetailsResponse,
    WorkerFigures,
)
from worker_manager.api.worker_figures import worker_figures
from worker_manager.core.errors import QueueUnavailableError
from worker_manager.core.lifecycle import registrations_until
from worker_manager.core.model import State, WorkerKey
from worker_manager.registry.changes import RECENT
from worker_manager.registry.windows import worker_expires
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from datetime import datetime

    from worker_manager.api.deps import RegistryDeps
    from worker_manager.api.found import Found
    from worker_manager.core.model import Worker
    from worker_manager.registry.entities import RegistryWorker, WorkerType
    from worker_manager.registry.observations import Observation


def get_worker_details(call: Call, deps: RegistryDeps) -> WorkerDetailsResponse:
    """All that the worker manager, the task queue and people know of one worker.

    Each part names its source: what a queue *observed*, what people *declared*, or the
    *worker-manager*.  How runs ended that nothing was heard of is asked of the queue now.
    """
    params = call.params
    key = WorkerKey(params["taskQueueId"], params["workerGroup"], params["workerId"])
    found = known(deps, key)
    found, is_answered = _with_ends(found, deps)
    now = deps.clock()
    of_type = deps.registry.worker_type(key.pool_id)
    provisioner_id, _, worker_type = key.pool_id.partition("/")
    seen, row = found.seen, found.row
    return WorkerDetailsResponse(
        task_queue_id=key.pool_id,
        provisioner_id=provisioner_id,
        worker_type=worker_type,
        worker_group=key.group,
        worker_id=key.worker_id,
        figures=WorkerFigures(**worker_figures(found, now)),
        **told(
            worker_manager=row and _managed(row, deps),
            observed=seen and _observed(seen, of_type, deps, is_answered=is_answered),
            declared=seen and _declared(seen),
            quarantine=seen and _quarantine(seen, deps, now),
            verdict=verdicts_on(deps.registry, [key]).get(key),
            group=seen and _group(key, deps),
            task_queue=of_type and task_queue(of_type, deps),
        ),
    )


def _with_ends(found: Found, deps: RegistryDeps) -> tuple[Found, bool]:
    """A worker with the ends of its runs, as far as the queue tells; whether it told them all."""
    if found.seen is None:
        return found, True
    ends, is_answered = _ask_for_ends(found.seen, deps)
    if not ends:
        return found, is_answered
    deps.registry.observe(ends)
    return replace(found, seen=deps.registry.worker(found.key)), is_answered


def _ask_for_ends(worker: RegistryWorker, deps: RegistryDeps) -> tuple[list[Observation], bool]:
    ends: list[Observation] = []
    late = deps.clock() + PATIENCE
    for claim in [one for one in worker.claims if one.state is None][-RECENT:]:
        if deps.clock() >= late:
            return ends, False
        try:
            end = deps.backend.outcome(worker.key, claim.task_id, claim.run_id)
        except QueueUnavailableError as error:
            logger.warning("the queue does not tell how a run ended", error=str(error))
            return ends, False
        if end is not None:
            ends.append(end)
    return ends, True


def _managed(row: Worker, deps: RegistryDeps) -> ManagedPart:
    provider = deps.providers.get(row.provider_id)
    checked = _last_checked(row, deps)
    surplus = row.surplus
    return ManagedPart(
        source="worker-manager",
        as_of=checked,
        state=row.state,
        provider_id=row.provider_id,
        capacity=row.capacity,
        created=row.created,
        last_modified=row.modified,
        last_checked=checked,
        **told(
            provider_type=provider and provider.provider_type,
            launch_config_id=row.launch_config_id,
            expires=row.expires,
            registered=row.registered,
            registrations=list(registrations_until(row, deps.clock())) or None,
            boot_time=row.boot_time,
            decision_id=row.decision,
            stop_reason=row.stop_reason,
            stopped_by=row.stopped_by,
            should_terminate=surplus
            and Standing(
                terminate=surplus.terminate, reason=surplus.reason, decided=surplus.decided
            ),
        ),
    )


def _last_checked(row: Worker, deps: RegistryDeps) -> datetime:
    """When its location was last listed to the end, which is when it was last looked at."""
    if row.state is State.STOPPED or not row.location:
        return row.modified
    complete = deps.stores.places.place(row.provider_id, row.location).complete
    return row.modified if complete is None or complete < row.created else complete


def _observed(
    worker: RegistryWorker, of_type: WorkerType | None, deps: RegistryDeps, *, is_answered: bool
) -> ObservedPart | None:
    if worker.last_seen is None and not worker.claims:
        return None
    is_hardware = of_type is not None and of_type.is_hardware
    running = [claim for claim in worker.claims if claim.state is None]
    return ObservedPart(
        source="observed",
        expires=worker_expires(worker, deps.registry.windows, is_hardware=is_hardware),
        recent_tasks=[recent(claim) for claim in worker.claims],
        running=[RunName(task_id=claim.task_id, run_id=claim.run_id) for claim in running],
        queue_answers=is_answered,
        **told(
            as_of=worker.last_seen,
            first_date_active=worker.first_seen,
            last_date_active=worker.last_seen,
            first_claim=worker.first_claim,
            gone_since=worker.gone,
        ),
    )


def _declared(worker: RegistryWorker) -> DeclaredPart | None:
    said: dict[str, Any] = told(
        as_of=worker.declared,
        # The end of a quarantine's own memory is nothing that anybody said.
        expires=worker.explicit_expires if worker.quarantine_until is None else None,
        boot_time=worker.boot_time,
        capacity=worker.capacity,
        extra=dict(worker.extra) or None,
    )
    return DeclaredPart(source="declared", **said) if said else None


def _quarantine(worker: RegistryWorker, deps: RegistryDeps, now: datetime) -> QuarantinePart | None:
    if worker.quarantine_until is None:
        return None
    history = deps.quarantines.history(worker.key)
    return QuarantinePart(
        source="declared",
        in_force=worker.is_quarantined(now),
        quarantine_until=worker.quarantine_until,
        quarantine_info=worker.quarantine_info,
        history=[quarantine_detail(change) for change in history],
        **told(
            as_of=history[0].at if history else None,
            quarantined_by=worker.quarantined_by,
        ),
    )


def _group(key: WorkerKey, deps: RegistryDeps) -> GroupPart | None:
    for group in deps.registry.groups(key.pool_id):
        if group.group == key.group:
            return GroupPart(
                source="observed",
                as_of=group.last_seen,
                first_date_active=group.first_seen,
                last_date_active=group.last_seen,
            )
    return None


DETAILS_ROUTES: tuple[Route[RegistryDeps], ...] = (
    Route(
        name="workerDetails",
        service="worker-registry",
        method="GET",
        path="/workers/<taskQueueId>/<workerGroup>/<workerId>",
        handler=get_worker_details,
        scopes="queue:get-worker:<taskQueueId>/<workerGroup>/<workerId>",
        response=WorkerDetailsResponse,
        stability="experimental",
    ),
)
