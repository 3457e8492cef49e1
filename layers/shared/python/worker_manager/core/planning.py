"""What a provision tick decides, as values: facts in, a plan or a reason out.

The tick notes the plan before it acts on it, and the note is the answer to "why five workers at
11:24?": ``facts`` are the numbers, ``reasons`` the words.  ``explain`` and ``what-if`` of the API
run the same code.

Where to read next: ``estimator`` (how much), ``standing`` and ``selector`` (of what), ``probing``
(what is tried although it failed), ``telling`` (the words).
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from worker_manager.core.estimator import Estimate, Limits, estimate
from worker_manager.core.ids import order_id
from worker_manager.core.plans import Order, Plan
from worker_manager.core.probing import Probing, probe_now
from worker_manager.core.selector import Candidate, Chance, Choice, launchable, select
from worker_manager.core.standing import (
    Standing,
    launch_rate,
    offering_key,
    stand,
    waiting_machines,
)
from worker_manager.core.telling import (
    NOTHING_WANTED,
    in_the_way,
    numbers_of,
    standings_told,
    why_closed,
    why_ordered,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from worker_manager.core.facts import Facts
    from worker_manager.core.model import Json
    from worker_manager.core.tally import Tally


@dataclass(frozen=True, slots=True)
class Decision:
    """What to launch, and why that and no more.

    ``standings`` are all launch configs of the pool; ``probing`` what is probed, and what that
    makes of the breakers.
    """

    choices: Sequence[Choice]
    estimate: Estimate | None
    reasons: tuple[str, ...]
    facts: Json
    standings: Sequence[Standing] = ()
    probing: Probing = field(default_factory=Probing)

    @property
    def reasons_hash(self) -> str:
        """Equal for decisions with the same reasons; empty when there is nothing to tell."""
        if not self.reasons:
            return ""
        return hashlib.sha256("\n".join(self.reasons).encode()).hexdigest()[:16]

    def without(self, launch_configs: Iterable[str], facts: Facts, *, reason: str) -> Decision:
        """The decision less these, because of ``reason``.

        Nothing probed is no probe: the pool's own turn is still to come.
        """
        lost = set(launch_configs)
        kept = [c for c in self.choices if c.head.launch_config_id not in lost]
        probing = self.probing.without(lost)
        if not probing.standings:
            probing = replace(probing, probed=facts.probed, wait=facts.probe_wait)
        why = self.reasons if kept else self.reasons[1:]
        told = {**self.facts, "launchConfigs": standings_told(self.standings, kept)}
        return replace(self, choices=kept, probing=probing, reasons=(*why, reason), facts=told)


def decide(facts: Facts, chance: Chance) -> Decision:
    """Decide how many machines of which launch configs to order now.

    An empty ``reasons`` means that nothing was wanted and nothing in the way.
    """
    counted = facts.tally
    pool = facts.pool
    as_before = Probing((), facts.breakers, facts.probed, facts.probe_wait)
    if facts.demand is None:
        reason = "the queue did not answer: demand is unknown, nothing is ordered"
        told = numbers_of(facts, counted, None)
        return Decision((), None, (reason,), told, standings(facts, counted, None), as_before)
    limits = Limits(pool.min_capacity, pool.max_capacity, pool.scaling_ratio)
    estimated = estimate(facts.demand, counted, limits)
    standing = standings(facts, counted, estimated)
    numbers = numbers_of(facts, counted, estimated)
    numbers["breakersOpen"] = sum(s.breaker is not None for s in standing)
    closed = tuple(why_closed(one) for one in (facts.demand.downtime,) if one is not None)
    if estimated.wanted <= 0:
        return Decision((), estimated, closed, numbers, standing, as_before)
    headroom = _headroom(facts, counted, estimated)
    probing = probe_now(
        standing,
        facts.breakers,
        capacity=estimated.to_spawn,
        headroom=headroom,
        now=facts.now,
        probed=facts.probed,
        wait=facts.probe_wait,
    )
    probes = [Choice(s.head, 1) for s in probing.standings]
    spent = sum(choice.capacity for choice in probes)
    offers = [Candidate(s.head, s.room, s.weight) for s in standing if s.held is None]
    spawn = math.ceil((estimated.to_spawn - spent) * launch_rate(standing))
    choices = [*probes, *select(offers, spawn, chance, headroom=headroom - spent)]
    reasons = in_the_way(estimated, standing)
    if choices:
        reasons.insert(0, why_ordered(facts.demand, counted, limits))
    elif estimated.to_spawn > 0:
        reasons.append("no launch config may take the wanted capacity now")
    numbers["launchConfigs"] = standings_told(standing, choices)
    return Decision(choices, estimated, (*reasons, *closed), numbers, standing, probing)


def standings(facts: Facts, counted: Tally, estimated: Estimate | None) -> list[Standing]:
    """Where each launch config stands; ghosts that the pool is forgiven leave room here too."""
    forgiven = counted.pool.total - estimated.costing if estimated else 0
    return stand(
        facts.pool.pool_id,
        facts.pool.heads,
        counts=counted.by_launch_config,
        health=facts.health,
        waiting=waiting_machines(facts.workers, facts.now),
        conditions=facts.conditions,
        maximum=max(facts.pool.max_capacity, _first_machine(facts, counted)) + forgiven,
        wanted=estimated.to_spawn if estimated else 0,
    )


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
                is_probe=decision.probing.covers(name),
                offering=offering_key(choice.head, pool_id),
            )
        )
    return Plan(
        pool_id=pool_id,
        tick=tick,
        provider_id=provider_id,
        now=facts.now,
        orders=tuple(orders),
        facts=decision.facts,
        reasons=decision.reasons or (NOTHING_WANTED,),
        inputs=inputs,
    )


def _first_machine(facts: Facts, counted: Tally) -> int:
    """Capacity of the one machine that an empty pool may have whose smallest exceeds its maximum.

    Without it such a pool could never do anything; with more it would exceed what was asked
    (B04).  A launch config's own limit holds even here.  0 for every other pool.
    """
    sizes = [head.capacity_per_instance for head in launchable(facts.pool.heads)]
    smallest = min(sizes, default=0)
    if counted.pool.total == 0 and 0 < facts.pool.max_capacity < smallest:
        return smallest
    return 0


def _headroom(facts: Facts, counted: Tally, estimated: Estimate) -> int:
    return max(facts.pool.max_capacity - estimated.costing, _first_machine(facts, counted))
