"""What a provision tick decides, as values: facts in, a plan or a reason out.

The tick notes the plan before it acts on it, and the note is the answer to "why five workers at
11:24?": ``facts`` are the numbers, ``reasons`` the words.  Reasons name what was decided and what
was in the way, without numbers that change from tick to tick, so that a decision that stays the
same can be recognised.  ``explain`` and ``what-if`` of the API run the same code.

Where to read next: ``estimator`` (how much), ``standing`` and ``selector`` (of what), ``probing``
(what is tried although it failed).
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from worker_manager.core.estimator import Estimate, Limits, estimate, needed_capacity
from worker_manager.core.ids import order_id
from worker_manager.core.model import Json, Location, Order, Plan, Pool, Worker
from worker_manager.core.moments import to_wire
from worker_manager.core.probing import Probing, probe_now
from worker_manager.core.selector import Candidate, Chance, Choice, launchable, select
from worker_manager.core.standing import (
    Conditions,
    Held,
    Standing,
    offering_key,
    stand,
    waiting_machines,
)
from worker_manager.core.tally import Tally, tally

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from worker_manager.core.activity import QueueCounts
    from worker_manager.core.breaker import Breaker
    from worker_manager.core.health import Health
    from worker_manager.core.model import Pause

PROBED_ELSEWHERE = "another pool is finding out whether what is closed off works again"
REFUSED_ELSEWHERE = "another pool was refused the same a moment ago"

TOLD = 40
"""Launch configs whose standing a stored decision tells; of the others only how many they are."""


@dataclass(frozen=True, slots=True)
class Facts:
    """All that a tick observed of a pool, at ``now``.

    ``demand`` is ``None`` when the queue did not answer.  ``open_orders`` pairs each open order
    with the live rows that carry its id.  ``health``, ``breakers`` (as judged now) and ``pauses``
    are by launch config, ``offerings`` the shared breakers that are known; ``not_before`` and
    ``stale`` (since when) are by location.  ``probed`` and ``probe_wait`` are the control item's.
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
    breakers: Mapping[str, Breaker] = field(default_factory=dict)
    offerings: Mapping[str, Breaker] = field(default_factory=dict)
    pauses: Mapping[str, Pause] = field(default_factory=dict)
    probed: datetime | None = None
    probe_wait: timedelta = timedelta(0)

    @property
    def tally(self) -> Tally:
        """The pool's counts."""
        return tally(
            self.workers, self.open_orders, now=self.now, stopping_limit=self.stopping_limit
        )

    @property
    def conditions(self) -> Conditions:
        """What may hold its launch configs back."""
        return Conditions(
            now=self.now,
            stale_after=self.stale_after,
            breakers=self.breakers,
            pauses=self.pauses,
            offerings=self.offerings,
            not_before=self.not_before,
            stale=self.stale,
        )


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
        told = {**self.facts, "launchConfigs": _told(self.standings, kept)}
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
        told = _numbers(facts, counted, None)
        return Decision((), None, (reason,), told, standings(facts, counted, None), as_before)
    limits = Limits(pool.min_capacity, pool.max_capacity, pool.scaling_ratio)
    estimated = estimate(facts.demand, counted, limits)
    standing = standings(facts, counted, estimated)
    numbers = _numbers(facts, counted, estimated)
    numbers["breakersOpen"] = sum(s.breaker is not None for s in standing)
    if estimated.wanted <= 0:
        return Decision((), estimated, (), numbers, standing, as_before)
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
    spawn = math.ceil((estimated.to_spawn - spent) * _rate(standing))
    choices = [*probes, *select(offers, spawn, chance, headroom=headroom - spent)]
    reasons = _reasons(facts, counted, estimated, limits, standing)
    if choices:
        reasons.insert(0, _why(facts.demand, counted, limits))
    elif estimated.to_spawn > 0:
        reasons.append("no launch config may take the wanted capacity now")
    numbers["launchConfigs"] = _told(standing, choices)
    return Decision(choices, estimated, tuple(reasons), numbers, standing, probing)


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
        reasons=decision.reasons,
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


def _rate(standing: Iterable[Standing]) -> float:
    """How much of what is wanted is ordered: where all fail, less, but never nothing.

    One launch config that works takes the whole, so its outcomes alone decide.
    """
    return max((s.factor for s in standing if s.held is None), default=0.0) or 0.01


def _reasons(
    facts: Facts,
    counted: Tally,
    estimated: Estimate,
    limits: Limits,
    standing: Sequence[Standing],
) -> list[str]:
    """What was in the way, the pool's own limits last."""
    found = {_in_the_way(s) for s in standing if s.held not in (None, Held.OFF, Held.NO_ROOM)}
    if any(s.held is Held.NO_ROOM for s in standing):
        found.add("some launch configs are at their maximum")
    if _rate(standing) < 1 and any(s.held is None for s in standing):
        found.add("every launch config fails at times: less is ordered than is wanted")
    reasons = sorted(found)
    if estimated.held_back:
        reasons.append("the pool's maximum holds back some of the wanted capacity")
    return reasons


def _in_the_way(standing: Standing) -> str:
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


def _told(standing: Sequence[Standing], choices: Sequence[Choice]) -> dict[str, Any]:
    """The standings that a stored decision tells: those chosen, those held, then the others."""
    chosen = {choice.head.launch_config_id for choice in choices}

    def rank(one: Standing) -> tuple[bool, bool, float, str]:
        name = one.head.launch_config_id
        return (name not in chosen, one.held is None, -one.weight, name)

    told = {s.head.launch_config_id: s.to_json() for s in sorted(standing, key=rank)[:TOLD]}
    if len(standing) > TOLD:
        told["…"] = {"more": len(standing) - TOLD}
    return told


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
