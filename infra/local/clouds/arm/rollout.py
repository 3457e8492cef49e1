"""Carrying out a deployment: step by step, until all is made or something failed.

Read next: ``building``, which makes the resources.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from infra.local.clouds.arm.errors import ArmError
from infra.local.clouds.arm.fates import Outcome
from infra.local.clouds.arm.operations import Operation, Status
from infra.local.clouds.arm.records import Deployment, State, Work
from infra.local.clouds.arm.resources import Kind

if TYPE_CHECKING:
    from infra.local.clouds.arm.building import Builder
    from infra.local.clouds.arm.fates import Fate
    from infra.local.clouds.arm.lifecycle import Lifecycle
    from infra.local.clouds.arm.templates import Planned

Json = dict[str, Any]
KINDS = {kind.type.lower(): kind for kind in Kind}
"""The types that exist here, by their full lower-case names."""
_ORDER = (Kind.IP, Kind.NIC, Kind.DISK, Kind.VM)
_FAILED = (
    "At least one resource deployment operation failed. Please list deployment operations for "
    "details. Please see https://aka.ms/arm-deployment-operations for usage details."
)


class Rollout:
    """Carries out deployments.  Not thread-safe: the cloud's lock guards it."""

    def __init__(self, builder: Builder, lifecycle: Lifecycle) -> None:
        self._builder = builder
        self._lifecycle = lifecycle

    def start(self, deployment: Deployment, at: float, fate: Fate | None) -> None:
        """Begin to make what it asks for, or what its fate lets it."""
        deployment.state = State.RUNNING
        if fate is not None and fate.outcome is Outcome.FAIL:
            error = {"code": "DeploymentFailed", "message": _FAILED, "details": [fate.error]}
            self.end(deployment, at, State.FAILED, error)
            return
        if fate is not None:
            deployment.operation.is_stuck = True
            deployment.steps = deployment.steps[:1]
        self._take_step(deployment, at)

    def _take_step(self, deployment: Deployment, at: float) -> None:
        """Begin what comes next; end the deployment when there is nothing."""
        if not deployment.steps:
            if not deployment.operation.is_stuck:
                self.end(deployment, at, State.SUCCEEDED)
            return
        begun = [self._begin(deployment, one, at) for one in deployment.steps.pop(0)]
        waiting = [work for work in begun if work.ended_at is None]
        if not waiting:
            self._conclude(deployment, at)
        for work in waiting:
            self._listen(deployment, work)

    def _listen(self, deployment: Deployment, work: Work) -> None:
        assert work.operation is not None
        turn = deployment.turn

        def hear(operation: Operation, at: float) -> None:
            work.ended_at = at
            if operation.status is not Status.SUCCEEDED:
                work.error = _failure(operation.error or {})
            is_over = all(one.ended_at is not None for one in deployment.works)
            if deployment.turn == turn and is_over:
                self._conclude(deployment, at)

        work.operation.when_over.append(hear)

    def _begin(self, deployment: Deployment, planned: Planned, at: float) -> Work:
        work = Work(self._lifecycle.new_id(), planned, at)
        deployment.works.append(work)
        kind = KINDS.get(planned.type.lower())
        if kind is None:
            work.ended_at = at
            return work
        try:
            begun = self._builder.put(kind, deployment.group, planned.name, planned.body, now=at)
        except ArmError as error:
            work.ended_at, work.error = at, error
            return work
        work.resource, work.operation = begun.resource, begun.operation
        if begun.operation.is_over:
            work.ended_at = at
        return work

    def _conclude(self, deployment: Deployment, at: float) -> None:
        """Go on after a step, or fail when anything in it failed."""
        errors = [work.error for work in deployment.works if work.error]
        if not errors:
            self._take_step(deployment, at)
            return
        details = [_detail(error) for error in errors]
        error = {"code": "DeploymentFailed", "message": _FAILED, "details": details}
        self.end(deployment, at, State.FAILED, error)

    def end(
        self, deployment: Deployment, at: float, state: State, error: Json | None = None
    ) -> None:
        """Let it be over."""
        deployment.state, deployment.updated_at, deployment.error = state, at, error
        deployment.operation.end(at, error)


def steps_of(planned: list[Planned]) -> list[list[Planned]]:
    """Addresses first, then NICs, disks, machines; what else there is comes with the first."""
    others = [one for one in planned if one.type.lower() not in KINDS]
    by_kind = [[one for one in planned if KINDS.get(one.type.lower()) is k] for k in _ORDER]
    return [step for step in [others, *by_kind] if step]


def _detail(error: ArmError) -> Json:
    """How a deployment tells of a resource's failure.

    A refusal at once is wrapped as text under the HTTP status' name, as Azure does it.
    """
    if error.details:
        return error.content()
    if error.status == 409:
        return {"code": "Conflict", "message": json.dumps({"error": error.content()}, indent=2)}
    return error.content()


def _failure(inner: Json) -> ArmError:
    return ArmError(
        "ResourceDeploymentFailure",
        "The resource write operation failed to complete successfully, because it reached "
        "terminal provisioning state 'Failed'.",
        status=409,
        details=[inner],
    )
