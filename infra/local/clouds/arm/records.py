"""Records of deployments: what was asked for, what was done about it, how it went.

Read next: ``rollout``, which carries one out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from infra.local.clouds.arm.errors import ArmError
    from infra.local.clouds.arm.operations import Operation
    from infra.local.clouds.arm.resources import Resource
    from infra.local.clouds.arm.templates import Planned

Json = dict[str, Any]


class State(StrEnum):
    """Provisioning states of deployments."""

    ACCEPTED = "Accepted"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    CANCELED = "Canceled"
    DELETING = "Deleting"

    @property
    def is_active(self) -> bool:
        """Whether resources may still be made."""
        return self in (State.ACCEPTED, State.RUNNING)


@dataclass(slots=True, eq=False)
class Work:
    """What a deployment did about one resource."""

    work_id: str
    planned: Planned
    begun_at: float
    ended_at: float | None = None
    error: ArmError | None = None
    resource: Resource | None = None
    operation: Operation | None = None

    @property
    def state(self) -> State:
        """How it went."""
        if self.ended_at is None:
            return State.RUNNING
        return State.FAILED if self.error else State.SUCCEEDED


@dataclass(slots=True, eq=False)
class Deployment:
    """One record.  Times are seconds on the cloud's clock."""

    group: str
    name: str
    sequence: int
    request: Json
    tags: dict[str, str]
    parameters: Json
    """As they are shown."""
    steps: list[list[Planned]]
    """What is made side by side, in order."""
    correlation_id: str
    operation: Operation
    begun_at: float
    updated_at: float
    state: State = State.ACCEPTED
    works: list[Work] = field(default_factory=list)
    error: Json | None = None
    turn: int = 0
