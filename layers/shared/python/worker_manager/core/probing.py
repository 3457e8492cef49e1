"""Which launch configs are tried although their breakers are open: one machine each.

Where others take the work, a launch config is probed when its breaker says so.  Where all of a
pool's are closed off, one of them is probed every one to five minutes all the same: nothing ever
stops for good, and nothing fails faster than that (B41).

Where to read next: ``breaker`` (when a probe is due), ``planning`` (which orders it).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from worker_manager.core.breaker import Breaker, BreakerState, probe

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from worker_manager.core.standing import Standing

SHORTEST_WAIT = timedelta(minutes=1)
LONGEST_WAIT = timedelta(minutes=5)
"""Between two probes of a pool whose launch configs are all closed off; it doubles from the
first to the second."""


@dataclass(frozen=True, slots=True)
class Probing:
    """What is probed, and what that makes of the pool's memory.

    ``standings`` are the launch configs probed; ``breakers`` the pool's own, afterwards.
    ``probed`` and ``wait`` are for the control item.
    """

    standings: Sequence[Standing] = ()
    breakers: Mapping[str, Breaker] = field(default_factory=dict)
    probed: datetime | None = None
    wait: timedelta = timedelta(0)

    def covers(self, launch_config_id: str) -> bool:
        """Whether this launch config is probed."""
        return any(s.head.launch_config_id == launch_config_id for s in self.standings)

    @property
    def shared(self) -> dict[str, Standing]:
        """The probes whose breaker other pools share, by launch config id."""
        return {s.head.launch_config_id: s for s in self.standings if s.shared is not None}

    def without(self, launch_configs: Collection[str]) -> Probing:
        """Less these."""
        kept = [s for s in self.standings if s.head.launch_config_id not in launch_configs]
        return replace(self, standings=kept)


def probe_now(
    standings: Sequence[Standing],
    breakers: Mapping[str, Breaker],
    *,
    capacity: int,
    headroom: int,
    now: datetime,
    probed: datetime | None,
    wait: timedelta,
) -> Probing:
    """Pick what is to be probed; see the module's docstring.

    Probes go on while some of ``capacity``, which is wanted, is left, as machines do that are
    larger than what is left of it; never beyond ``headroom``.  Of launch configs that ask for the
    same, those come first that have no breaker of their own.
    """

    def turn(standing: Standing) -> tuple[float, bool, str]:
        name, breaker = standing.head.launch_config_id, standing.breaker
        at = breaker.next_try.timestamp() if breaker and breaker.next_try else 0.0
        own = breakers.get(name)
        return at, own is not None and not own.is_closed, name

    fitting = (s for s in standings if s.head.capacity_per_instance <= headroom)
    able = sorted((s for s in fitting if s.may_be_probed and capacity > 0), key=turn)
    due = _due(able, capacity, now, headroom=headroom)
    if any(s.held is None for s in standings):
        return Probing(due, _half_open(breakers, due, now))
    if not able or now < _turn(probed, wait, now):
        return Probing((), breakers, probed, wait)
    picked = due[:1] or _forced(able, now)
    if not picked:
        return Probing((), breakers, probed, wait)
    longer = min(max(SHORTEST_WAIT, 2 * wait), LONGEST_WAIT)
    return Probing(picked, _half_open(breakers, picked, now), now, longer)


def _due(
    able: Sequence[Standing], capacity: int, now: datetime, *, headroom: int
) -> list[Standing]:
    """Those whose time has come, one for each breaker that they share."""
    picked: dict[str, Standing] = {}
    for standing in able:
        size = standing.head.capacity_per_instance
        key = standing.shared or f"={standing.head.launch_config_id}"
        is_due = standing.breaker is not None and standing.breaker.is_due(now)
        if is_due and key not in picked and capacity > 0 and size <= headroom:
            picked[key] = standing
            capacity -= size
            headroom -= size
    return list(picked.values())


def _forced(able: Sequence[Standing], now: datetime) -> list[Standing]:
    """One whose time has not come, tried longest ago: each has its turn, whatever its own wait."""

    def tried(standing: Standing) -> float:
        return standing.breaker.since.timestamp() if standing.breaker else 0.0

    def may_be_forced(standing: Standing) -> bool:
        at = _forced_from(standing, now)
        return at is not None and at <= now

    return sorted((s for s in able if may_be_forced(s)), key=tried)[:1]


def next_probe(
    standings: Sequence[Standing], *, now: datetime, probed: datetime | None, wait: timedelta
) -> datetime | None:
    """When ``probe_now`` picks the first, if nothing changes; ``None`` if only others hold all."""
    able = [s for s in standings if s.may_be_probed]
    if not able:
        return None
    moments = [_due_from(standing, now) for standing in able]
    if any(s.held is None for s in standings):
        return min(moments)
    forced = (_forced_from(standing, now) for standing in able)
    return max(now, _turn(probed, wait, now), min((*moments, *(at for at in forced if at))))


def _turn(probed: datetime | None, wait: timedelta, now: datetime) -> datetime:
    """From when on a pool that is closed off altogether may probe again."""
    return now if probed is None else probed + wait


def _due_from(standing: Standing, now: datetime) -> datetime:
    """When its own time comes; not before now."""
    breaker = standing.breaker
    if breaker is None or breaker.next_try is None or breaker.is_due(now):
        return now
    return breaker.next_try


def _forced_from(standing: Standing, now: datetime) -> datetime | None:
    """From when on it may be tried before its time.

    Not what somebody else is just finding out, or found out a moment ago.
    """
    breaker = standing.breaker
    if breaker is None:
        return now
    is_being_probed = breaker.state is BreakerState.HALF_OPEN
    if breaker.is_closed or (is_being_probed and standing.shared is not None):
        return None
    return breaker.since + SHORTEST_WAIT


def _half_open(
    breakers: Mapping[str, Breaker], picked: Sequence[Standing], now: datetime
) -> dict[str, Breaker]:
    """The pool's own breakers, those of what is probed half-open."""
    own = {s.head.launch_config_id: s.breaker for s in picked if s.shared is None and s.breaker}
    return {**breakers, **{name: probe(breaker, now) for name, breaker in own.items()}}
