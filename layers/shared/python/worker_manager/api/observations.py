"""What another queue saw, told to the registry in batches.

Where to read next: ``worker_manager.registry.observations``.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from worker_manager.api.refusals import input_error
from worker_manager.api.registry_schemas import ObservationsResponse
from worker_manager.core.model import WorkerKey
from worker_manager.core.scopes import AllOf
from worker_manager.registry.observations import Kind, Observation

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from worker_manager.api.deps import RegistryDeps
    from worker_manager.api.registry_schemas import ObservationRequest
    from worker_manager.api.routing import Call
    from worker_manager.core.scopes import Expression

CLOCK_SKEW = timedelta(minutes=15)
"""How far ahead of ours another queue's clock may be."""
OLDEST = timedelta(days=30)
"""What was seen earlier shows nothing any more."""
_RUN = ("taskId", "runId")
NEEDED: Mapping[str, tuple[str, ...]] = {
    Kind.IDLE: (),
    Kind.CLAIM: _RUN,
    Kind.RECLAIM: _RUN,
    Kind.RESOLVE: (*_RUN, "state"),
}
"""What must be told of each kind of observation."""
ALLOWED: Mapping[str, tuple[str, ...]] = {**NEEDED, Kind.RESOLVE: (*_RUN, "state", "reason")}
"""What may be."""


def scopes_to_observe(_params: Mapping[str, str], payload: Any) -> Expression:
    """One for each task queue that is told of."""
    queues = {one["taskQueueId"] for one in payload["observations"]}
    return AllOf(tuple(f"worker-registry:observe:{name}" for name in sorted(queues)))


def observe(call: Call, deps: RegistryDeps) -> ObservationsResponse:
    """Take in what a queue saw: in any order, and harmless when repeated."""
    now = deps.clock()
    observations = []
    for number, one in enumerate(call.body.observations):
        where = f"observations[{number}]"
        if (wrong := _fault(one, now)) is not None:
            raise input_error(f"{where}.{wrong}")
        observations.append(_observation(one))
    deps.registry.observe(observations)
    return ObservationsResponse(observed=len(observations))


def _fault(one: ObservationRequest, now: datetime) -> str | None:
    """What is wrong with an observation, with the field's name; ``None`` if nothing is."""
    if one.at > now + CLOCK_SKEW:
        return "at: is in the future"
    if one.at < now - OLDEST:
        return "at: is more than 30 days ago"
    given = {"taskId": one.task_id, "runId": one.run_id, "state": one.state, "reason": one.reason}
    needed, allowed = NEEDED[one.kind], ALLOWED[one.kind]
    for name, value in given.items():
        if value is None and name in needed:
            return f"{name}: is missing"
        if value is not None and name not in allowed:
            return f"{name}: is not for {one.kind}"
    return None


def _observation(one: ObservationRequest) -> Observation:
    return Observation(
        key=WorkerKey(one.task_queue_id, one.worker_group, one.worker_id),
        kind=Kind(one.kind),
        at=one.at,
        task_id=one.task_id,
        run_id=one.run_id,
        state=one.state,
        reason=one.reason,
    )
