"""The wire: launch configs with their health, decisions, explanations, and what-ifs.

Where to read next: ``launch_configs``, ``decisions`` and ``explanations``, which make them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from worker_manager.api.provider_schemas import ProviderStatus  # noqa: TC001 - pydantic reads it
from worker_manager.api.schemas import LaunchConfigFull
from worker_manager.api.validation import (
    Answer,
    Description,
    Identifier,
    Moment,
    PoolId,
    PositiveNumber,
    WholeNumber,
    Wire,
)
from worker_manager.core.explaining import Limit  # noqa: TC001 - pydantic reads it

Number = Annotated[int, Field(ge=0)]
Status = Literal["active", "paused", "archived"]


class BreakerAnswer(Answer):
    """What failed, since when, and when it is tried next.

    ``offering`` is there if other pools share it; ``*`` is the whole provider.
    """

    state: Literal["closed", "open", "half-open"]
    kind: str
    reason: str
    since: Moment
    next_try: Moment | None = None
    offering: str | None = None


class PauseAnswer(Answer):
    """Until when somebody took a launch config out of use, and why."""

    until: Moment
    reason: Description
    by: str
    since: Moment


class HealthAnswer(Answer):
    """Outcomes of the last hour, in machines; ``failed`` is by kind of failure.

    ``factor`` is what they leave of the initial weight.
    """

    requested: Number
    launched: Number
    registered: Number
    claimed: Number
    failed: dict[str, Number]
    factor: float


class CapacityAnswer(Answer):
    """Tasks at once, of machines in each state."""

    running: Number
    requested: Number
    stopping: Number
    quarantined: Number


class LaunchConfigDetail(LaunchConfigFull):
    """One launch config, with how it fares; an archived one has a status and nothing more.

    ``weight`` is its share of what is ordered next, ``held`` why it gets nothing.
    """

    status: Status
    weight: float | None = None
    held: str | None = None
    health: HealthAnswer | None = None
    capacity: CapacityAnswer | None = None
    breaker: BreakerAnswer | None = None
    pause: PauseAnswer | None = None


class LaunchConfigDetailList(Answer):
    """A page of launch configs."""

    worker_pool_launch_configs: list[LaunchConfigDetail]
    continuation_token: str | None = None


class PauseLaunchConfigRequest(Wire):
    """How long a launch config is to rest, by one of both, and why, in a sentence."""

    until: Moment | None = None
    seconds: PositiveNumber | None = None
    reason: Annotated[Description, Field(min_length=1, max_length=200)]

    @model_validator(mode="after")
    def _one_of_both(self) -> PauseLaunchConfigRequest:
        if (self.until is None) == (self.seconds is None):
            raise ValueError("give either until or seconds")
        return self


class OrderAnswer(Answer):
    """An order of machines, and what became of it."""

    order_id: str
    launch_config_id: Identifier
    location: str
    count: Number
    capacity_per_instance: Number
    state: Literal["noted", "sent", "settled", "cancelled"]
    is_probe: bool
    launched: Number
    not_before: Moment | None = None
    error: dict[str, Any] | None = None


class DecisionAnswer(Answer):
    """What a provision tick decided, from what, and what came of it.

    ``facts`` are the numbers it saw, with each launch config's weight and what lowered it;
    ``reasons`` are in words.
    """

    decision_id: str
    worker_pool_id: PoolId
    provider_id: Identifier
    decided: Moment
    is_open: bool
    reasons: list[str]
    facts: dict[str, Any]
    orders: list[OrderAnswer]


class DecisionList(Answer):
    """A page of decisions, newest first."""

    decisions: list[DecisionAnswer]
    continuation_token: str | None = None


class PlannedOrder(Answer):
    """What would be ordered."""

    launch_config_id: Identifier
    location: str
    count: Number
    capacity: Number
    is_probe: bool


class ExplanationAnswer(Answer):
    """What a plan made now would do, and what is in its way.

    ``limit`` is what binds; ``launchConfigs`` are their standings by id.
    """

    worker_pool_id: PoolId
    provider_id: Identifier
    time: Moment
    summary: list[str]
    reasons: list[str]
    limit: Limit
    orders: list[PlannedOrder]
    ordered_capacity: Number
    let_go_capacity: Number
    facts: dict[str, Any]
    launch_configs: dict[str, Any]
    next_probe: Moment | None = None
    provider_status: ProviderStatus | None = None


class WhatIfRequest(Wire):
    """What is to be different; whatever is not given stays as it is."""

    config: dict[str, Any] | None = None
    pending_tasks: WholeNumber | None = None
    claimed_tasks: WholeNumber | None = None


class WhatIfDifference(Answer):
    """What changes, in capacity; ``launchConfigs`` are machines ordered more, or fewer, by id."""

    to_spawn: int
    target: int
    ordered_capacity: int
    let_go_capacity: int
    launch_configs: dict[str, int]


class WhatIfAnswer(Answer):
    """The plan as things are, as they would be, and what differs."""

    now: ExplanationAnswer
    then: ExplanationAnswer
    difference: WhatIfDifference
