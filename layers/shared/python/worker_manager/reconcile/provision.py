"""Bringing one worker pool towards its desired capacity.

The steps stand in ``provision`` in their order.  Open plans are finished before anything new is
planned; the plan is noted, behind the pool's fence, before anything is launched; whom to let go is
decided here too, because demand is known here.  Where to read next: ``core.planning`` decides,
``launching`` acts, ``finishing`` repairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from worker_manager.core import surplus
from worker_manager.core.errors import QueueUnavailableError
from worker_manager.core.model import Control, Plan, Pool, WorkerKey
from worker_manager.core.planning import Decision, Facts, as_plan, decide
from worker_manager.reconcile.finishing import bodies_of, finish, rows_of
from worker_manager.reconcile.launching import carry_out
from worker_manager.reconcile.ticks import is_stale
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Mapping

    from worker_manager.core.activity import QueueCounts
    from worker_manager.core.estimator import Estimate
    from worker_manager.core.messages import ProvisionPool
    from worker_manager.reconcile.deadline import Deadline
    from worker_manager.reconcile.deps import Deps


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
    if not _plans_for(pool, deps):
        return Report(pool.pool_id, "moved to another provider")
    seen = observe(message, pool, finished, deps)
    decision = decide(seen.facts, Random(f"{pool.pool_id}@{message.tick}"))
    report = _act(message, seen, decision, deps, deadline)
    let_go(seen.facts, decision.estimate, deps)
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
    """Read what planning needs: open plans, live workers, health, demand."""
    plans = deps.stores.plans.open_plans(control)
    workers = list(deps.stores.workers.live(pool.pool_id))
    rows = rows_of(plans, workers, pool.pool_id, deps) if plans else {}
    now = deps.clock()
    facts = Facts(
        pool=pool,
        workers=workers,
        open_orders=[
            (order, rows.get(order.order_id, 0))
            for plan in plans
            for order in plan.orders
            if order.is_open
        ],
        demand=_demand(pool.pool_id, deps),
        health=deps.stores.health.window(pool.pool_id, now),
        now=now,
        stopping_limit=deps.timing.stopping_limit,
        stale_after=deps.timing.location_stale,
        not_before=message.not_before,
        stale=message.stale,
    )
    return Seen(control, facts)


def let_go(facts: Facts, estimated: Estimate | None, deps: Deps) -> None:
    """Write on each row whether the worker should terminate, where that changes.

    Which workers are busy is asked of the queue only when there is somebody to let go.
    """
    if estimated is None:
        return
    active = {head.launch_config_id for head in facts.pool.heads}
    candidates = surplus.asked(facts.workers, facts.now)
    busy: frozenset[WorkerKey] = frozenset()
    if surplus.excess(candidates, active, estimated.target) > 0:
        busy = _busy(facts.pool.pool_id, deps)
    changes = surplus.decide(candidates, active, target=estimated.target, busy=busy, now=facts.now)
    for worker, answer in changes:
        deps.stores.workers.change(worker, surplus=answer)
    if changes:
        told = sum(answer.terminate for _, answer in changes)
        logger.info("surplus changed", pool=facts.pool.pool_id, told=told, changed=len(changes))


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
    if not plan.orders:
        _remember(plan, seen.control, decision, deps)
        return Report(pool.pool_id, "nothing ordered", 0, decision.reasons, decision.facts)
    control = deps.stores.plans.note(plan, seen.control, reasons_hash=decision.reasons_hash)
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


def _remember(plan: Plan, control: Control, decision: Decision, deps: Deps) -> None:
    """Store a decision without orders when its reasons are news."""
    if decision.reasons_hash != control.reasons_hash:
        deps.stores.plans.record_decision(plan, control, reasons_hash=decision.reasons_hash)


def _plans_for(pool: Pool, deps: Deps) -> bool:
    """Whether this provider plans for the pool: its own, or a previous one nobody plans for."""
    if pool.provider_id == deps.provider_id:
        return True
    return pool.provider_id not in deps.planners and deps.provider_id in pool.previous_provider_ids


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
