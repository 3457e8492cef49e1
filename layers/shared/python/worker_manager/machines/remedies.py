"""What is done by itself about machines that are not well: little, and only where it is wanted.

Pure.  What was done lately goes in, so that limits hold over any number of looks; what a person
put into quarantine is left to people.  Read next: ``worker_manager.reconcile.examine``, which does
it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from worker_manager.core.ids import derived_slugid
from worker_manager.machines.facts import AUTO, HOUR
from worker_manager.machines.verdicts import Condition

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from worker_manager.core.model import WorkerKey
    from worker_manager.machines.breaker import Judged
    from worker_manager.machines.policy import Policy

DAY = timedelta(days=1)
"""Within which the reboots of a machine are counted."""


class Cure(StrEnum):
    """What can be done; the names are those of the built-in actions."""

    REBOOT = "reboot"
    QUARANTINE = "quarantine"
    KILL = "kill"


@dataclass(frozen=True, slots=True)
class Done:
    """A reboot or an end that was asked for, by us or by anybody, within a day."""

    cure: Cure
    key: WorkerKey
    requested: datetime
    ended: datetime | None = None
    was_vain: bool = False
    """Whether it was tried, and failed."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """One thing to do now."""

    cure: Cure
    key: WorkerKey
    reason: str
    request_id: str
    """The same for the same remedy, however often it is thought of."""


def remedies(
    judged: Sequence[Judged], policy: Policy, done: Sequence[Done], now: datetime
) -> list[Remedy]:
    """What to do in a pool without an outage, those first that have waited longest."""
    waiting = sorted(judged, key=lambda one: (one.verdict.since, one.machine.key))
    return [
        *(_reboots(waiting, policy, done, now) if policy.reboot else ()),
        *(_quarantines(waiting, policy) if policy.quarantine or policy.replace else ()),
        *(_ends(waiting, policy, done, now) if policy.replace else ()),
    ]


def most_at_once(machines: int, policy: Policy) -> int:
    """How many of so many are rebooted, or ended within an hour, at once."""
    return max(1, int(policy.thresholds.at_once * machines))


def _reboots(
    judged: Sequence[Judged], policy: Policy, done: Iterable[Done], now: datetime
) -> list[Remedy]:
    lately = [one for one in done if one.cure is Cure.REBOOT and one.requested > now - DAY]
    under_way = {one.key for one in lately if one.ended is None}
    room = most_at_once(len(judged), policy) - len(under_way)
    tried = Counter(one.key for one in lately)
    wanted = [
        one
        for one in judged
        if one.verdict.condition is Condition.MISSING
        and one.machine.heard is not None
        and not one.machine.is_quarantined
        and one.machine.key not in under_way
        and tried[one.machine.key] < policy.thresholds.reboots_a_day
    ]
    return [
        _remedy(Cure.REBOOT, one, one.machine.heard, tried[one.machine.key], now.date())
        for one in wanted[: max(0, room)]
    ]


def _quarantines(judged: Sequence[Judged], policy: Policy) -> list[Remedy]:
    """No more of a pool in quarantine by us at a time than what would be an outage."""
    most = max(1, int(policy.thresholds.breaker_share * len(judged)))
    room = most - sum(one.machine.is_ours for one in judged)
    wanted = [one for one in judged if not one.machine.is_quarantined and _is_beyond(one, policy)]
    return [_remedy(Cure.QUARANTINE, one, one.bad_since) for one in wanted[: max(0, room)]]


def _is_beyond(one: Judged, policy: Policy) -> bool:
    """Whether a machine does harm to the tasks that it is given."""
    if not policy.quarantine and one.machine.is_fixed:
        return False
    return one.is_flaky or one.verdict.condition is Condition.REBOOT_LOOP


def _ends(
    judged: Sequence[Judged], policy: Policy, done: Iterable[Done], now: datetime
) -> list[Remedy]:
    """Machines of clouds that we put into quarantine, once they hold no task any more."""
    ended = [one for one in done if one.cure is Cure.KILL]
    room = most_at_once(len(judged), policy) - sum(one.requested > now - HOUR for one in ended)
    asked = {one.key for one in ended}
    wanted = [
        one
        for one in judged
        if not one.machine.is_fixed
        and one.machine.is_ours
        and not one.machine.running
        and one.machine.key not in asked
    ]
    return [
        Remedy(
            cure=Cure.KILL,
            key=one.machine.key,
            reason=f"{AUTO}it was put into quarantine and holds no task any more",
            # One that did not come to its end is asked to on another day.
            request_id=derived_slugid("machine", Cure.KILL, one.machine.key, now.date()),
        )
        for one in wanted[: max(0, room)]
    ]


def _remedy(cure: Cure, one: Judged, *occasion: object) -> Remedy:
    key, found = one.machine.key, one.verdict
    return Remedy(
        cure=cure,
        key=key,
        reason=f"{AUTO}{found.condition}: {found.reason}",
        request_id=derived_slugid("machine", cure, key, *occasion),
    )
