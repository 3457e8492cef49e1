"""What a provision tick decides, as values: facts in, a plan or a reason out.

The tick notes the plan before it acts on it, and the note is the answer to "why five workers at
11:24?": ``facts`` are the numbers, ``reasons`` the words.  Reasons name what was decided and what
was in the way, without numbers that change from tick to tick, so that a decision that stays the
same can be recognised.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from worker_manager.core.estimator import Estimate, Limits, estimate, needed_capacity
from worker_manager.core.ids import order_id
from worker_manager.core.model import (
    Json,
    LaunchConfigHead,
    Location,
    Order,
    Plan,
    Pool,
    Worker,
)
from worker_manager.core.selector import (
    Candidate,
    Chance,
    Choice,
    candidates,
    first_machine,
    launchable,
    select,
)
from worker_manager.core.tally import Tally, tally

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime, timedelta

    from worker_manager.core.activity import QueueCounts
    from worker_manager.core.health import Health


@dataclass(frozen=True, slots=True)
class Facts:
    """All that a tick observed of a pool, at ``now``.

    ``demand`` is ``None`` when the queue did not answer.  ``open_orders`` pairs each open order
    with the live rows that carry its id.  ``not_before`` and ``stale`` (since when) are by
    location.
    """

    pool: Pool
    workers: Sequence[Worker]
    open_orders: Sequence[tuple[Order, int]]
    demand: QueueCounts | None
    health: Mapping[str, Health]
    now: datetime
    stopping_limit: timedelta
    stale_after: timedelta
    not_before: Mapping[Location, datetime] = field(default_factory=dict)
    stale: Mapping[Location, datetime] = field(default_factory=dict)

    @property
    def tally(self) -> Tally:
        """The pool's counts."""
        return tally(
            self.workers, self.open_orders, now=self.now, stopping_limit=self.stopping_limit
        )


@dataclass(frozen=True, slots=True)
class Decision:
    """What to launch, and why that and no more."""

    choices: Sequence[Choice]
    estimate: Estimate | None
    reasons: tuple[str, ...]
    facts: Json

    @property
    def reasons_hash(self) -> str:
        """Equal for decisions with the same reasons; empty when there is nothing to tell."""
        if not self.reasons:
            return ""
        return hashlib.sha256("\n".join(self.reasons).encode()).hexdigest()[:16]


def decide(facts: Facts, chance: Chance) -> Decision:
    """Decide how many machines of which launch configs to order now.

    An empty ``reasons`` means that nothing was wanted and nothing in the way.
    """
    counted = facts.tally
    pool = facts.pool
    if facts.demand is None:
        reason = "the queue did not answer: demand is unknown, nothing is ordered"
        return Decision((), None, (reason,), _numbers(facts, counted, None))
    limits = Limits(pool.min_capacity, pool.max_capacity, pool.scaling_ratio)
    estimated = estimate(facts.demand, counted, limits)
    numbers = _numbers(facts, counted, estimated)
    if estimated.wanted <= 0:
        return Decision((), estimated, (), numbers)
    open_heads, reasons = _usable(facts)
    if estimated.held_back:
        reasons.append("the pool's maximum holds back some of the wanted capacity")
    offers = _offers(facts, counted, estimated, open_heads)
    headroom = pool.max_capacity - estimated.costing
    choices = select(offers, estimated.to_spawn, chance, headroom=headroom)
    choices = choices or _first(facts, counted, open_heads, chance)
    if not choices and estimated.to_spawn > 0:
        reasons.append("no launch config has room for the wanted capacity")
    if choices:
        numbers["weights"] = {
            offer.head.launch_config_id: round(offer.weight, 4) for offer in offers
        }
        reasons.insert(0, _why(facts.demand, counted, limits))
    return Decision(choices, estimated, tuple(reasons), numbers)


def as_plan(decision: Decision, facts: Facts, *, tick: str, provider_id: str, inputs: Json) -> Plan:
    """A decision as the plan to note; order ids derive from pool, tick and launch config."""
    pool_id = facts.pool.pool_id
    parts: dict[str, int] = {}
    orders = []
    for choice in decision.choices:
        name = choice.head.launch_config_id
        part = parts[name] = parts.get(name, -1) + 1
        orders.append(
            Order(
                order_id=order_id(pool_id, tick, name, part),
                launch_config_id=name,
                location=choice.head.location,
                count=choice.count,
                capacity_per_instance=choice.head.capacity_per_instance,
            )
        )
    return Plan(
        pool_id=pool_id,
        tick=tick,
        provider_id=provider_id,
        now=facts.now,
        orders=tuple(orders),
        facts=decision.facts,
        reasons=decision.reasons,
        inputs=inputs,
    )


def _usable(facts: Facts) -> tuple[list[LaunchConfigHead], list[str]]:
    """Launch configs whose location takes orders now, and why the others' do not."""
    usable, reasons = [], set()
    for head in facts.pool.heads:
        pause = facts.not_before.get(head.location)
        since = facts.stale.get(head.location)
        if pause is not None and pause > facts.now:
            reasons.add(f"{head.location} asked to wait")
        elif since is not None and facts.now - since > facts.stale_after:
            reasons.add(f"{head.location} could not be listed for too long")
        else:
            usable.append(head)
    return usable, sorted(reasons)


def _offers(
    facts: Facts, counted: Tally, estimated: Estimate, heads: Iterable[LaunchConfigHead]
) -> list[Candidate]:
    """What each launch config can take; ghosts that the pool is forgiven leave room here too."""
    forgiven = counted.pool.total - estimated.costing
    return candidates(
        heads,
        counted.by_launch_config,
        facts.health,
        maximum=facts.pool.max_capacity + forgiven,
    )


def _first(
    facts: Facts, counted: Tally, heads: Sequence[LaunchConfigHead], chance: Chance
) -> list[Choice]:
    """One machine for an empty pool, if even its smallest is larger than the pool may be."""
    able = launchable(facts.pool.heads)
    smallest = min((head.capacity_per_instance for head in able), default=0)
    if counted.pool.total == 0 and 0 < facts.pool.max_capacity < smallest:
        return first_machine(heads, chance)
    return []


def _why(demand: QueueCounts, counted: Tally, limits: Limits) -> str:
    needed = needed_capacity(demand, limits.ratio)
    if needed > max(counted.pool.existing, demand.claimed):
        return "tasks are waiting for more capacity than is running or requested"
    return "the pool has less than its minimum capacity"


def _numbers(facts: Facts, counted: Tally, estimated: Estimate | None) -> dict[str, Any]:
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
    if estimated is not None:
        numbers |= {
            "wanted": estimated.wanted,
            "toSpawn": estimated.to_spawn,
            "target": estimated.target,
        }
    return numbers
