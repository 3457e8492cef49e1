"""Bringing one worker pool towards its desired capacity.

The steps stand in ``provision`` in their order.  Open plans are finished before anything new is
planned; the plan is noted, behind the pool's fence, before anything is launched; whom to let go is
decided here too, because demand is known here.  Where to read next: ``core.planning`` decides,
``launching`` acts, ``finishing`` repairs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

from worker_manager.core import surplus
from worker_manager.core.errors import QueueUnavailableError
from worker_manager.core.estimator import Estimate
from worker_manager.core.model import Control, Plan, Pool, WorkerKey
from worker_manager.core.planning import Decision, Facts, as_plan, decide
from worker_manager.core.standing import offering_key
from worker_manager.reconcile.finishing import bodies_of, finish
from worker_manager.reconcile.healing import claim_probes, end_pauses, forgiven, judge_all
from worker_manager.reconcile.launching import carry_out
from worker_manager.reconcile.side_by_side import side_by_side
from worker_manager.reconcile.ticks import is_stale, pauses, unlisted
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Mapping

    from worker_manager.core.activity import QueueCounts
    from worker_manager.core.messages import ProvisionPool
    from worker_manager.core.model import Surplus, Worker
    from worker_manager.reconcile.deadline import Deadline
    from worker_manager.reconcile.deps import Deps


WRITE_LIMIT = timedelta(seconds=2)
"""Longest that one write may take; none is begun with less time left."""

NOTHING_NEEDED = Estimate(to_spawn=0, target=0, wanted=0, costing=0)


@dataclass(frozen=True, slots=True)
class Report:
    """What a provision of one pool came to."""

    pool_id: str
    outcome: str
    ordered: int = 0
    reasons: tuple[str, ...] = ()
    facts: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """What was observed, and the control item as finishing left it."""

    control: Control
    facts: Facts


def provision(message: ProvisionPool, deps: Deps, deadline: Deadline) -> Report:
    """Bring one worker pool towards its desired capacity."""
    if is_stale(message.at, deps.clock(), deps.timing.tick):
        return Report(message.pool_id, "stale")
    pool, control = deps.stores.pools.get_with_control(message.pool_id)
    if pool is None:
        return Report(message.pool_id, "no such pool")
    finished = finish(pool, control, deps.stores.plans.open_plans(control), deps, deadline)
    if finished is None:
        return Report(pool.pool_id, "lost to another planner")
    if pool.provider_id != deps.provider_id:
        return _see_off(message, pool, finished, deps, deadline)
    finished = end_pauses(pool, finished, deps)
    seen = observe(message, pool, finished, deps)
    decision = decide(seen.facts, Random(f"{pool.pool_id}@{message.tick}"))
    decision = claim_probes(decision, seen.facts.now, deps)
    report = _act(message, seen, decision, deps, deadline)
    let_go(seen.facts, decision.estimate, deps, deadline)
    logger.info(
        "provisioned",
        pool=pool.pool_id,
        tick=message.tick,
        outcome=report.outcome,
        ordered=report.ordered,
        reasons=report.reasons,
        **decision.facts,
    )
    return report


def observe(message: ProvisionPool, pool: Pool, control: Control, deps: Deps) -> Seen:
    """Read what planning needs: open plans, then live workers, health, demand.

    In this order a row that is written meanwhile is counted, and its order still too: too few
    machines are ordered for a tick, never too many.
    """
    plans = deps.stores.plans.open_plans(control)
    workers = list(deps.stores.workers.live(pool.pool_id))
    rows = Counter(worker.order_id for worker in workers)
    known = _known(message, pool, deps)
    now = deps.clock()
    health = deps.stores.health.window(pool.pool_id, now, since=forgiven(control.breakers))
    facts = Facts(
        pool=pool,
        workers=workers,
        open_orders=[
            (order, rows[order.order_id])
            for plan in plans
            for order in plan.orders
            if order.is_open
        ],
        demand=_demand(pool.pool_id, deps),
        health=health,
        now=now,
        stopping_limit=deps.timing.stopping_limit,
        stale_after=deps.timing.location_stale,
        not_before=known.not_before,
        stale=known.stale,
        breakers=judge_all(pool, control.breakers, health, workers, now),
        offerings=known.offerings,
        pauses=control.pauses,
        probed=control.probed,
        probe_wait=control.probe_wait,
    )
    return Seen(control, facts)


def let_go(facts: Facts, estimated: Estimate | None, deps: Deps, deadline: Deadline) -> None:
    """Write on each row whether the worker should terminate, where that changes.

    Which workers are busy is asked of the queue only when there is somebody to let go.  What the
    deadline does not allow is left to the next tick, which finds the same.
    """
    if estimated is None:
        return
    active = {head.launch_config_id for head in facts.pool.heads}
    standing = surplus.weigh(facts.workers, active, target=estimated.target, now=facts.now)
    busy = _busy(facts.pool.pool_id, deps) if standing.excess > 0 else frozenset()

    def write(change: tuple[Worker, Surplus]) -> bool:
        worker, answer = change
        if not deadline.allows(WRITE_LIMIT):
            return False
        return deps.stores.workers.change(worker, surplus=answer) is not None

    changes = surplus.decide(standing, busy=busy, now=facts.now)
    written = side_by_side(write, changes, parallel=deps.parallel)
    if changes:
        logger.info(
            "surplus changed",
            pool=facts.pool.pool_id,
            told=sum(answer.terminate for _, answer in changes),
            changed=sum(written),
            left=len(changes) - sum(written),
        )


def _act(
    message: ProvisionPool, seen: Seen, decision: Decision, deps: Deps, deadline: Deadline
) -> Report:
    pool = seen.facts.pool
    plan = as_plan(
        decision,
        seen.facts,
        tick=message.tick,
        provider_id=deps.provider_id,
        inputs={**deps.inputs, "owner": pool.owner},
    )
    memory = {
        "reasons_hash": decision.reasons_hash,
        "breakers": decision.probing.breakers,
        "probed": decision.probing.probed,
        "probe_wait": decision.probing.wait,
    }
    if not plan.orders:
        _remember(plan, seen.control, memory, deps)
        return Report(pool.pool_id, "nothing ordered", 0, decision.reasons, decision.facts)
    control = deps.stores.plans.note(plan, seen.control, **memory)
    if control is None:
        return Report(pool.pool_id, "lost to another planner")
    bodies = bodies_of(pool.pool_id, plan.orders, deps)
    done = carry_out(
        plan, plan.orders, bodies=bodies, lifecycle=pool.lifecycle, deps=deps, deadline=deadline
    )
    if done is not None and not any(order.is_open for order in done.orders):
        deps.stores.plans.close(done, control)
    ordered = sum(order.count for order in plan.orders)
    return Report(pool.pool_id, "ordered", ordered, decision.reasons, decision.facts)


def _remember(plan: Plan, control: Control, memory: Mapping[str, Any], deps: Deps) -> None:
    """Store a decision without orders when its reasons are news, and what became of breakers."""
    if memory["reasons_hash"] != control.reasons_hash:
        deps.stores.plans.record_decision(plan)
    if any(getattr(control, name) != value for name, value in memory.items()):
        deps.stores.plans.remember(control, **memory)


def _see_off(
    message: ProvisionPool, pool: Pool, control: Control, deps: Deps, deadline: Deadline
) -> Report:
    """What a previous provider does for a pool, now that its open plans are finished.

    Where the current one plans, nothing; of a pool that nobody plans for any more (deleted, or
    moved to a provider without a cloud) every worker is told to terminate.
    """
    orphaned = pool.provider_id not in deps.planners
    if not orphaned or deps.provider_id not in pool.previous_provider_ids:
        return Report(pool.pool_id, "moved to another provider")
    seen = observe(message, replace(pool, heads=()), control, deps)
    let_go(seen.facts, NOTHING_NEEDED, deps, deadline)
    return Report(pool.pool_id, "nobody plans for it any more")


def _known(message: ProvisionPool, pool: Pool, deps: Deps) -> ProvisionPool:
    """The message with what is known of the pool's locations and of what it asks for there.

    Only ticks bring it along.
    """
    if message.at is not None:
        return message
    places = deps.stores.places.places(deps.provider_id, {head.location for head in pool.heads})
    keys = {offering_key(head, pool.pool_id) for head in pool.heads}
    return replace(
        message,
        not_before=pauses(places),
        stale=unlisted(places, deps.clock(), deps.timing),
        offerings=deps.stores.offerings.not_closed(deps.provider_id, keys),
    )


def _demand(pool_id: str, deps: Deps) -> QueueCounts | None:
    try:
        return deps.queue.counts(pool_id)
    except QueueUnavailableError as error:
        logger.warning("the queue did not answer", pool=pool_id, error=str(error))
        return None


def _busy(pool_id: str, deps: Deps) -> frozenset[WorkerKey]:
    """Workers with tasks; all alike when the queue does not tell."""
    try:
        return frozenset(
            WorkerKey(pool_id, group, worker_id) for group, worker_id in deps.queue.busy(pool_id)
        )
    except QueueUnavailableError as error:
        logger.warning("the queue did not answer", pool=pool_id, error=str(error))
        return frozenset()
