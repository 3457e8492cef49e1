"""Whether so much of a pool turned bad at once that it is not the machines.

A network, a queue or a power line that fails shows on all machines behind it within the hour.
Then nothing is done by itself, and somebody is told, once, until most are well again or were put
into quarantine, by which people take them out of the count.
Silence counts from when it began and long before a machine counts as missing, so that of many that
fall silent together none is rebooted before it shows how many they are.  Where to read next:
``remedies``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker_manager.machines.facts import HOUR
from worker_manager.machines.verdicts import missing_after

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta

    from worker_manager.machines.facts import Machine
    from worker_manager.machines.policy import Thresholds
    from worker_manager.machines.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class Judged:
    """A machine with its verdict.

    ``bad_since`` is when it was first found bad, if it is; one that is flaky is, whatever else its
    verdict says.
    """

    machine: Machine
    verdict: Verdict
    is_flaky: bool = False
    bad_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Trouble:
    """How much of a pool is bad, and how much of that within one hour."""

    machines: int
    """That there are, but for those in quarantine and those never heard of."""
    bad: int
    together: int

    def is_outage(self, limits: Thresholds, *, was_one: bool) -> bool:
        """Whether nothing is to be done; one that began lasts while too many are bad at all."""
        bad = self.bad if was_one else self.together
        return bad >= limits.breaker_least and bad > limits.breaker_share * self.machines


def trouble(
    judged: Sequence[Judged], limits: Thresholds, now: datetime, *, lag: timedelta
) -> Trouble:
    """Count what is bad in a pool."""
    counted = [
        one for one in judged if not one.machine.is_quarantined and one.machine.heard is not None
    ]
    moments = sorted(
        turned for one in counted if (turned := _turned(one, limits, now, lag)) is not None
    )
    return Trouble(len(counted), len(moments), _most_within_an_hour(moments))


def _turned(one: Judged, limits: Thresholds, now: datetime, lag: timedelta) -> datetime | None:
    """When a machine turned bad; of one that is silent, when it fell silent."""
    heard = one.machine.heard
    if one.machine.is_fixed and heard is not None and now - heard > missing_after(limits, lag) / 2:
        return heard
    return one.bad_since


def _most_within_an_hour(moments: Sequence[datetime]) -> int:
    most = first = 0
    for last, moment in enumerate(moments):
        while moment - moments[first] > HOUR:
            first += 1
        most = max(most, last - first + 1)
    return most
