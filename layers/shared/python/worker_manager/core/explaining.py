"""A decision in words: what would be done, what holds it back, which limit binds, what is next.

Nothing is decided here; the words are about a ``planning.Decision``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from worker_manager.core import surplus
from worker_manager.core.moments import to_wire
from worker_manager.core.probing import next_probe
from worker_manager.core.standing import Held
from worker_manager.core.telling import one_in_the_way

if TYPE_CHECKING:
    from datetime import datetime

    from worker_manager.core.facts import Facts
    from worker_manager.core.planning import Decision
    from worker_manager.core.plans import Pause
    from worker_manager.core.standing import Standing


class Limit(StrEnum):
    """What keeps a plan from ordering more."""

    NONE = "none"
    MAXIMUM = "pool-maximum"
    HELD = "launch-configs"
    CLOSED = "closed"
    NO_DEMAND = "unknown-demand"
    NO_PROVIDER = "no-provider"


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a plan made now comes to.

    ``limit`` is what binds; ``next_probe`` when something closed off is tried next; ``let_go`` the
    capacity of workers that would be told to terminate.
    """

    sentences: tuple[str, ...]
    limit: Limit
    ordered: int
    let_go: int
    next_probe: datetime | None


def explain(facts: Facts, decision: Decision) -> Explanation:
    """Say in words what ``decision`` does about ``facts``."""
    ordered = sum(choice.capacity for choice in decision.choices)
    limit = _limit(facts, decision, ordered)
    let_go = _let_go(facts, decision)
    probed_at = next_probe(
        decision.standings, now=facts.now, probed=facts.probed, wait=facts.probe_wait
    )
    sentences = [*_demand(facts, decision), *_orders(decision, ordered)]
    sentences += _reasons(decision)
    sentences += [_pause(s.head.launch_config_id, s.pause) for s in decision.standings if s.pause]
    if let_go:
        sentences.append(f"Workers with a capacity of {let_go} are more than is needed.")
    if probed_at is not None:
        sentences.append(f"The next probe is due at {to_wire(probed_at)}.")
    return Explanation(tuple(sentences), limit, ordered, let_go, probed_at)


def nobody_launches(facts: Facts) -> Explanation:
    """Say of a pool whose provider launches nothing that no plan is made for it."""
    sentence = f"Nobody launches machines for provider {facts.pool.provider_id}."
    return Explanation((sentence,), Limit.NO_PROVIDER, ordered=0, let_go=0, next_probe=None)


def _pause(name: str, pause: Pause) -> str:
    return f"{name} is paused until {to_wire(pause.until)} by {pause.by}: {pause.reason}"


def _reasons(decision: Decision) -> list[str]:
    """Each reason as a sentence, that of an open breaker with what the cloud said."""
    said = {
        one_in_the_way(s): " ".join(s.breaker.reason.split())
        for s in decision.standings
        if s.breaker is not None
    }
    told = (f"{why}: {said[why]}" if said.get(why) else why for why in decision.reasons)
    return [one if one.endswith(".") else f"{one}." for one in told]


def _demand(facts: Facts, decision: Decision) -> list[str]:
    estimated, demand = decision.estimate, facts.demand
    if demand is None or estimated is None:
        return []
    counts = facts.tally.pool
    return [
        f"{_tasks(demand.pending)} pending and {demand.claimed} claimed; "
        f"a capacity of {counts.running} is running, {counts.requested} requested, "
        f"{counts.stopping} stopping and {counts.quarantined} quarantined, "
        f"of at most {facts.pool.max_capacity} and at least {facts.pool.min_capacity}.",
        f"A capacity of {estimated.wanted} more is wanted, of which {estimated.to_spawn} fits "
        "below the maximum.",
    ]


def _tasks(count: int) -> str:
    return "1 task is" if count == 1 else f"{count} tasks are"


def _orders(decision: Decision, ordered: int) -> list[str]:
    if not decision.choices:
        return ["Nothing would be ordered."]
    machines: Counter[str] = Counter()
    for choice in decision.choices:
        machines[choice.head.launch_config_id] += choice.count
    parts = [
        f"{count} of {name}{' as a probe' if decision.probing.covers(name) else ''}"
        for name, count in sorted(machines.items())
    ]
    return [f"Machines with a capacity of {ordered} would be ordered: {', '.join(parts)}."]


def _limit(facts: Facts, decision: Decision, ordered: int) -> Limit:
    estimated = decision.estimate
    if estimated is None or facts.demand is None:
        return Limit.NO_DEMAND
    if ordered < estimated.to_spawn:
        return Limit.HELD
    if estimated.held_back:
        return Limit.MAXIMUM
    return Limit.CLOSED if facts.demand.to_be_given < facts.demand.pending else Limit.NONE


def _let_go(facts: Facts, decision: Decision) -> int:
    """Capacity of those who would be told to go, archived launch configs' workers included."""
    if decision.estimate is None:
        return 0
    active = {head.launch_config_id for head in facts.pool.heads}
    standing = surplus.weigh(facts.workers, active, target=decision.estimate.target, now=facts.now)
    changes = surplus.decide(standing, busy=frozenset(), now=facts.now)
    told = {worker.key: answer.terminate for worker, answer in changes}
    return sum(
        worker.capacity
        for worker in (*standing.current, *standing.archived)
        if told.get(worker.key, worker.surplus is not None and worker.surplus.terminate)
    )


def status_of(standing: Standing) -> str:
    """A launch config's status as the API shows it: ``active`` or ``paused``."""
    return "paused" if standing.held is Held.PAUSED else "active"
