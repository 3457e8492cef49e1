"""A decision in its stored form: reasons in words, and the numbers they rest on.

Reasons name what was decided and what was in the way, without numbers or times that change from
tick to tick, so that a decision that stays the same can be recognised.
Where to read next: ``planning`` (who decides), ``explaining`` (whole sentences, with numbers).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from worker_manager.core.estimator import needed_capacity
from worker_manager.core.moments import to_wire
from worker_manager.core.standing import Held, launch_rate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker_manager.core.activity import Downtime, QueueCounts
    from worker_manager.core.estimator import Estimate, Limits
    from worker_manager.core.facts import Facts
    from worker_manager.core.selector import Choice
    from worker_manager.core.standing import Standing
    from worker_manager.core.tally import Tally

NOTHING_WANTED = "no more is wanted"
PROBED_ELSEWHERE = "another pool is finding out whether what is closed off works again"
REFUSED_ELSEWHERE = "another pool was refused the same a moment ago"

TOLD = 40
"""Launch configs whose standing a stored decision tells; of the others only how many they are."""


def in_the_way(estimated: Estimate, standing: Sequence[Standing]) -> list[str]:
    """What was in the way, the pool's own limits last."""
    found = {
        one_in_the_way(s)
        for s in standing
        if s.held not in (None, Held.OFF, Held.NO_ROOM, Held.POOL_FULL)
    }
    if any(s.held is Held.NO_ROOM for s in standing):
        found.add("some launch configs are at their maximum")
    if launch_rate(standing) < 1 and any(s.held is None for s in standing):
        found.add("every launch config fails at times: less is ordered than is wanted")
    reasons = sorted(found)
    if estimated.held_back:
        reasons.append("the pool's maximum holds back some of the wanted capacity")
    return reasons


def one_in_the_way(standing: Standing) -> str:
    """Why this one, which is held, takes no part."""
    head = standing.head
    if standing.held is Held.WAITING:
        return f"{head.location} asked to wait"
    if standing.held is Held.UNLISTED:
        return f"{head.location} could not be listed for too long"
    kind = f" ({standing.breaker.kind})" if standing.breaker is not None else ""
    what = standing.shared if standing.held is Held.OFFERING else head.launch_config_id
    if standing.held is Held.PROVIDER:
        return f"{standing.held.value}{kind}"
    return f"{what}: {standing.held.value if standing.held else ''}{kind}"


def standings_told(standing: Sequence[Standing], choices: Sequence[Choice]) -> dict[str, Any]:
    """The standings that a stored decision tells: those chosen, those held, then the others."""
    chosen = {choice.head.launch_config_id for choice in choices}

    def rank(one: Standing) -> tuple[bool, bool, float, str]:
        name = one.head.launch_config_id
        return (name not in chosen, one.held is None, -one.weight, name)

    told = {s.head.launch_config_id: s.to_json() for s in sorted(standing, key=rank)[:TOLD]}
    if len(standing) > TOLD:
        told["…"] = {"more": len(standing) - TOLD}
    return told


def why_closed(downtime: Downtime) -> str:
    """Why tasks wait and nobody is started for them."""
    by = f" by {downtime.by}" if downtime.by else ""
    info = f" ({' '.join(downtime.info.split())})" if downtime.info else ""
    until = to_wire(downtime.until)
    return f"the task queue is closed until {until}{by}{info}: nothing is ordered for what waits"


def why_ordered(demand: QueueCounts, counted: Tally, limits: Limits) -> str:
    """What an order is for: tasks that wait, or the minimum."""
    needed = needed_capacity(demand, limits.ratio)
    if needed > max(counted.pool.existing, demand.claimed):
        return "tasks are waiting for more capacity than is running or requested"
    return "the pool has less than its minimum capacity"


def numbers_of(facts: Facts, counted: Tally, estimated: Estimate | None) -> dict[str, Any]:
    """What was counted and asked for, by the names of the wire."""
    counts = counted.pool
    numbers: dict[str, Any] = {
        "running": counts.running,
        "requested": counts.requested,
        "stopping": counts.stopping,
        "quarantined": counts.quarantined,
        "minCapacity": facts.pool.min_capacity,
        "maxCapacity": facts.pool.max_capacity,
        "scalingRatio": facts.pool.scaling_ratio,
        "poolVersion": facts.pool.version,
    }
    if facts.demand is not None:
        numbers |= {"pending": facts.demand.pending, "claimed": facts.demand.claimed}
        if facts.demand.downtime is not None:
            numbers["closedUntil"] = to_wire(facts.demand.downtime.until)
    if facts.stale:
        numbers["unlistedSince"] = {name: to_wire(since) for name, since in facts.stale.items()}
    if estimated is not None:
        numbers |= {
            "wanted": estimated.wanted,
            "toSpawn": estimated.to_spawn,
            "target": estimated.target,
            "costing": estimated.costing,
        }
    return numbers
