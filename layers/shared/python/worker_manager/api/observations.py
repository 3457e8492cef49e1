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

    from worker_manager.api.deps import RegistryDeps
    from worker_manager.api.registry_schemas import ObservationRequest
    from worker_manager.api.routing import Call
    from worker_manager.core.scopes import Expression

CLOCK_SKEW = timedelta(minutes=15)
"""How far ahead of ours another queue's clock may be."""
OLDEST = timedelta(days=30)
"""What was seen earlier shows nothing any more."""


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
        if not now - OLDEST <= one.at <= now + CLOCK_SKEW:
            raise input_error(f"{where}.at: is not within the last 30 days")
        try:
            observations.append(_observation(one))
        except ValueError as error:
            raise input_error(f"{where}.kind: {error}") from error
    deps.registry.observe(observations)
    return ObservationsResponse(observed=len(observations))


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
