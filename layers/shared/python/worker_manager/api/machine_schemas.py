"""The wire: how machines are, and what is done about it by itself.

Where to read next: ``machines``, which answers; ``mix_schemas``, of a part of policies.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool

from worker_manager.api.mix_schemas import MixPolicy  # noqa: TC001 - pydantic reads it
from worker_manager.api.validation import (
    NO_DISGUISE,
    Answer,
    Identifier,
    Moment,
    PoolId,
    Wire,
)

VerdictName = Literal[
    "busy-silent",
    "idle-stuck",
    "missing",
    "dead",
    "flaky",
    "reboot-loop",
    "stale-config",
    "needs-reformat",
]
"""Of machines that are not well."""

_LONGEST = 400 * 86_400
Seconds = Annotated[int, Field(ge=10, le=_LONGEST), NO_DISGUISE]
Count = Annotated[int, Field(ge=1, le=1000), NO_DISGUISE]
Share = Annotated[float, Field(gt=0, le=0.5), NO_DISGUISE]


class MachineThresholds(Wire):
    """From when on something is wrong with a machine; what is left out has its default.

    ``missingSeconds`` is never taken for less than three times how late a sighting may be told.
    """

    busy_silent_seconds: Seconds | None = None
    idle_stuck_seconds: Seconds | None = None
    pending_seconds: Seconds | None = None
    missing_seconds: Seconds | None = None
    dead_seconds: Seconds | None = None
    bad_in_a_row: Annotated[int, Field(ge=2, le=20), NO_DISGUISE] | None = None
    bad_factor: Annotated[float, Field(ge=1, le=100), NO_DISGUISE] | None = None
    least_runs: Count | None = None
    registrations: Annotated[int, Field(ge=3, le=12), NO_DISGUISE] | None = None
    stale_config_seconds: Seconds | None = None
    reformat_seconds: Seconds | None = None
    breaker_share: Share | None = None
    breaker_least: Count | None = None
    reboots_a_day: Annotated[int, Field(ge=1, le=12), NO_DISGUISE] | None = None
    at_once: Share | None = None


class MachineLimits(MachineThresholds, Answer):
    """All of them, as they are in force."""


class MachinePolicyRequest(Wire):
    """What is done by itself in a pool, and from when on: the whole of it.

    ``reboot`` machines that are missing; ``quarantine`` those that fail unlike their siblings, or
    only ever register; ``replace`` such machines of clouds.  Nothing is, unless it says so.
    """

    reboot: StrictBool = False
    quarantine: StrictBool = False
    replace: StrictBool = False
    thresholds: MachineThresholds | None = None
    mix: MixPolicy | None = None


class MachinePolicyResponse(Answer):
    """A pool's policy, with all its limits.

    Since ``heldSince`` nothing is done by itself, as too much of the pool turned bad at once.
    """

    task_queue_id: PoolId
    reboot: bool
    quarantine: bool
    replace: bool
    thresholds: MachineLimits
    mix: MixPolicy | None = None
    updated: Moment | None = None
    updated_by: str | None = None
    held_since: Moment | None = None


class VerdictPart(Answer):
    """What was found of a machine, why, and the facts it rests on, as they were then."""

    verdict: VerdictName
    since: Moment
    reason: str
    facts: dict[str, Any]


class UnwellMachine(VerdictPart):
    """A machine that is not well."""

    task_queue_id: PoolId
    worker_group: Identifier
    worker_id: Identifier


class HeldPool(Answer):
    """A pool in which nothing is done by itself, as too much of it turned bad at once."""

    task_queue_id: PoolId
    since: Moment


class MachineHealthResponse(Answer):
    """A page of machines that are not well; it may be short, or empty, and still not the last.

    ``held`` are those among their pools that begin on this page, or have none that are wanted.
    """

    machines: list[UnwellMachine]
    held: list[HeldPool]
    continuation_token: str | None = None
