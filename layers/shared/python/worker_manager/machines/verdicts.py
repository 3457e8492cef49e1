"""The rules by which a machine is judged; the first that fits is the verdict.

Pure: facts go in, a verdict comes out, with its reason in a sentence and the facts it rests on.
Machines of clouds are judged by their runs alone: of everything else their provider's scan knows
more.  Read next: ``breaker`` (whether it is the machines at all), ``remedies``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from worker_manager.core.moments import to_wire
from worker_manager.machines.facts import HOUR

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime, timedelta

    from worker_manager.core.model import Json
    from worker_manager.machines.facts import Machine, PoolFacts
    from worker_manager.machines.policy import Thresholds


class Condition(StrEnum):
    """How a machine is."""

    HEALTHY = "healthy"
    BUSY_SILENT = "busy-silent"
    """It holds a task and does not renew its claim."""
    IDLE_STUCK = "idle-stuck"
    """It takes no tasks though there are some, and its siblings do."""
    MISSING = "missing"
    """It has not been heard of for long."""
    DEAD = "dead"
    """It has not been heard of for very long, or no reboot brought it back."""
    FLAKY = "flaky"
    """Its runs fail unlike those of its siblings."""
    REBOOT_LOOP = "reboot-loop"
    """It registers time and again, and never takes a task."""
    STALE_CONFIG = "stale-config"
    """It goes on with a launch config that is not its pool's any more."""
    NEEDS_REFORMAT = "needs-reformat"
    """It was flaky before, and is again: somebody has to set it up anew."""

    @property
    def is_bad(self) -> bool:
        """Whether it is trouble that begins; the last two are for people to find time for."""
        return self in _BAD


_BAD = frozenset(Condition) - {
    Condition.HEALTHY,
    Condition.STALE_CONFIG,
    Condition.NEEDS_REFORMAT,
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found of a machine."""

    condition: Condition
    reason: str
    """A whole sentence."""
    since: datetime
    """Since when it is so, as far as the facts tell; else when it was found."""
    facts: Json = field(default_factory=dict)
    """What it rests on, by the names of the wire."""


@dataclass(frozen=True, slots=True)
class _Case:
    machine: Machine
    pool: PoolFacts
    limits: Thresholds
    now: datetime
    lag: timedelta

    @property
    def heard(self) -> datetime:
        """When it last called; of one that never did, when it was entered."""
        return self.machine.heard or self.machine.entered

    @property
    def silence(self) -> timedelta:
        return self.now - self.heard

    @property
    def silent_words(self) -> str:
        if self.machine.heard is None:
            return f"It was never heard of since it was entered at {_moment(self.heard)}"
        return f"It was last heard of at {_moment(self.heard)}"


def missing_after(limits: Thresholds, lag: timedelta) -> timedelta:
    """The silence that is too long; never so short that it may be a sighting told late."""
    return max(limits.missing, 3 * lag)


def judge(
    machine: Machine, pool: PoolFacts, limits: Thresholds, now: datetime, *, lag: timedelta
) -> Verdict:
    """The verdict on one machine; ``lag`` is how late a sighting may be told."""
    case = _Case(machine, pool, limits, now, lag)
    for rule in _OF_FIXED if machine.is_fixed else _OF_CLOUDS:
        verdict = rule(case)
        if verdict is not None:
            return replace(verdict, facts={**_facts(case), **verdict.facts})
    return Verdict(Condition.HEALTHY, "Nothing is wrong with it.", case.heard, _facts(case))


def is_flaky(machine: Machine, pool: PoolFacts, limits: Thresholds) -> bool:
    """Whether its runs fail unlike those of its siblings, of which one at least has runs enough."""
    if machine.runs < limits.least_runs or machine.bad_in_a_row < limits.bad_in_a_row:
        return False
    usual = pool.median_without(machine)
    return usual is not None and machine.bad_rate >= limits.bad_factor * usual


def _dead(case: _Case) -> Verdict | None:
    machine, limit = case.machine, max(case.limits.dead, missing_after(case.limits, case.lag))
    if case.silence > limit:
        why = f"{case.silent_words}, longer than {_span(limit)} ago."
        return Verdict(Condition.DEAD, why, case.heard)
    failed = machine.reboot_failed
    if failed is None or failed <= case.heard or _missing(case) is None:
        return None
    why = f"{case.silent_words}, and a reboot that ended at {_moment(failed)} did not help."
    return Verdict(Condition.DEAD, why, case.heard, {"rebootFailed": to_wire(failed)})


def _reboot_loop(case: _Case) -> Verdict | None:
    begin = case.now - HOUR
    lately = [at for at in case.machine.registrations if at > begin]
    has_claimed = case.machine.last_claim is not None and case.machine.last_claim > begin
    if len(lately) < case.limits.registrations or has_claimed:
        return None
    why = f"It registered {len(lately)} times within an hour and took no task."
    return Verdict(Condition.REBOOT_LOOP, why, lately[0], {"registrationsInHour": len(lately)})


def _missing(case: _Case) -> Verdict | None:
    limit = missing_after(case.limits, case.lag)
    if case.silence <= limit:
        return None
    why = f"{case.silent_words}, longer than {_span(limit)} ago."
    return Verdict(Condition.MISSING, why, case.heard)


def _needs_reformat(case: _Case) -> Verdict | None:
    span = case.limits.reformat
    times = [at for at in case.machine.was_flaky if at > case.now - span]
    if len(times) < 2:
        return None
    why = f"It was found flaky {len(times)} times within {_span(span)}."
    return Verdict(
        Condition.NEEDS_REFORMAT, why, times[-1], {"flaky": [to_wire(at) for at in times]}
    )


def _flaky(case: _Case) -> Verdict | None:
    machine = case.machine
    if not is_flaky(machine, case.pool, case.limits):
        return None
    usual = case.pool.median_without(machine) or 0.0
    why = (
        f"Its last {machine.bad_in_a_row} runs went wrong, and {machine.bad_runs} of "
        f"{machine.runs} within a week, while {usual:.0%} is usual among its siblings."
    )
    return Verdict(Condition.FLAKY, why, case.now, {"usualRate": round(usual, 4)})


def _busy_silent(case: _Case) -> Verdict | None:
    if not case.machine.running or case.silence <= case.limits.busy_silent + case.lag:
        return None
    why = f"{case.silent_words}, though it holds a task and has to renew its claim."
    return Verdict(Condition.BUSY_SILENT, why, case.heard)


def _idle_stuck(case: _Case) -> Verdict | None:
    machine, limits, now = case.machine, case.limits, case.now
    waiting = case.pool.pending_since
    others = case.pool.last_claim_of_others(machine)
    last = max(filter(None, (machine.last_claim, *machine.registrations[-1:], machine.entered)))
    is_stuck = (
        not (machine.running or machine.is_quarantined)
        and now - last > limits.idle_stuck
        and case.silence <= missing_after(limits, case.lag)
        and (waiting is not None and now - waiting > limits.pending)
        and (others is not None and now - others <= limits.idle_stuck)
    )
    if not is_stuck or waiting is None or others is None:
        return None
    claimed = (
        f"took its last task at {_moment(machine.last_claim)}"
        if machine.last_claim
        else "never took a task"
    )
    why = f"It {claimed}, though tasks wait since {_moment(waiting)} and others take some."
    found = {"pendingSince": to_wire(waiting), "lastClaimOfOthers": to_wire(others)}
    return Verdict(Condition.IDLE_STUCK, why, max(last, waiting), found)


def _stale_config(case: _Case) -> Verdict | None:
    since, span = case.machine.stale_since, case.limits.stale_config
    if since is None or case.now - since <= span:
        return None
    why = (
        f"Its launch config {case.machine.launch_config_id} is not its pool's any more since "
        f"{_moment(since)}, longer than {_span(span)} ago."
    )
    return Verdict(Condition.STALE_CONFIG, why, since)


_OF_FIXED: tuple[Callable[[_Case], Verdict | None], ...] = (
    _dead,
    _reboot_loop,
    _missing,
    _needs_reformat,
    _flaky,
    _busy_silent,
    _idle_stuck,
    _stale_config,
)
_OF_CLOUDS = (_flaky,)


def _facts(case: _Case) -> dict[str, Any]:
    machine = case.machine
    moments = {
        "lastHeard": machine.heard,
        "lastClaim": machine.last_claim,
        "bootTime": machine.boot_time,
        "lastRegistered": machine.registrations[-1] if machine.registrations else None,
    }
    return {
        "runs": machine.runs,
        "badRuns": machine.bad_runs,
        "badInARow": machine.bad_in_a_row,
        "running": machine.running,
        **({"launchConfigId": machine.launch_config_id} if machine.launch_config_id else {}),
        **{name: to_wire(at) for name, at in moments.items() if at is not None},
    }


def _moment(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def _span(span: timedelta) -> str:
    """A duration in words; whole hours and days as such."""
    seconds = int(span.total_seconds())
    for size, unit in ((86_400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size and seconds % size == 0:
            return f"{seconds // size} {unit}"
    return f"{seconds} seconds"
