"""Bringing one worker pool towards its desired capacity.

The steps stand in ``provision`` in their order.  Open plans are finished before anything new is
planned; the plan is noted, behind the pool's fence, before anything is launched; whom to let go is
decided here too, because demand is known here.  Where to read next: ``core.planning`` decides,
``launching`` acts, ``finishing`` repairs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

from worker_manager.core import surplus
from worker_manager.core.errors import QueueUnavailableError
from worker_manager.core.estimator import Estimate
from worker_manager.core.model import Pool, WorkerKey
from worker_manager.core.moments import to_wire
from worker_manager.core.planning import Decision, as_plan, decide
from worker_manager.observing import Around, look_around, observe
from worker_manager.reconcile.finishing import configs_of, finish
from worker_manager.reconcile.healing import confirm, end_pauses, tell_changes
from worker_manager.reconcile.launching import carry_out
from worker_manager.reconcile.telling_to_go import write_answers
from worker_manager.reconcile.ticks import is_stale
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Mapping

    from worker_manager.core.facts import Facts
    from worker_manager.core.messages import ProvisionPool
    from worker_manager.core.plans import Control, Plan
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
    facts = observe_for(message, pool, finished, deps)
    decision = decide(facts, Random(f"{pool.pool_id}@{message.tick}"))
    decision = confirm(decision, facts, deps)
    report = _act(message, finished, facts, decision, deps=deps, deadline=deadline)
    let_go(facts, decision.estimate, deps, deadline)
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


def observe_for(message: ProvisionPool, pool: Pool, control: Control, deps: Deps) -> Facts:
    """What is to be known of a pool; only ticks bring along what is known around it."""
    if message.at is None or message.offerings is None:
        around = look_around(pool, deps.stores, timing=deps.timing, now=deps.clock())
    else:
        around = Around(message.not_before, message.stale, message.offerings)
    return observe(
        pool,
        control,
        around,
        stores=deps.stores,
        queue=deps.queue,
        timing=deps.timing,
        now=deps.clock(),
    )


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
    write_answers(
        facts.pool.pool_id,
        surplus.decide(standing, busy=busy, now=facts.now),
        deps.stores.workers,
        parallel=deps.parallel,
        may_write=lambda: deadline.allows(WRITE_LIMIT),
    )


def _act(
    message: ProvisionPool,
    control: Control,
    facts: Facts,
    decision: Decision,
    *,
    deps: Deps,
    deadline: Deadline,
) -> Report:
    pool = facts.pool
    plan = as_plan(
        decision,
        facts,
        tick=message.tick,
        provider_id=deps.provider_id,
        inputs={
            **deps.inputs,
            "owner": pool.owner,
            "description": pool.description,
            "ordered": to_wire(facts.now),
        },
    )
    memory = {
        "reasons_hash": decision.reasons_hash,
        "breakers": decision.probing.breakers,
        "probed": decision.probing.probed,
        "probe_wait": decision.probing.wait,
    }
    if not plan.orders:
        _remember(plan, control, memory, deps)
        tell_changes(pool, control.breakers, decision.probing.breakers)
        return Report(pool.pool_id, "nothing ordered", 0, decision.reasons, decision.facts)
    noted = deps.stores.plans.note(plan, control, **memory)
    if noted is None:
        return Report(pool.pool_id, "lost to another planner")
    tell_changes(pool, control.breakers, decision.probing.breakers)
    configs = configs_of(pool, plan.orders, deps)
    done = carry_out(plan, plan.orders, pool=pool, configs=configs, deps=deps, deadline=deadline)
    if done is not None and not any(order.is_open for order in done.orders):
        deps.stores.plans.close(done, noted)
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
    facts = observe_for(message, replace(pool, heads=()), control, deps)
    own = [worker for worker in facts.workers if worker.provider_id == deps.provider_id]
    let_go(replace(facts, workers=own), NOTHING_NEEDED, deps, deadline)
    return Report(pool.pool_id, "nobody plans for it any more")


def _busy(pool_id: str, deps: Deps) -> frozenset[WorkerKey]:
    """Workers with tasks; all alike when the queue does not tell."""
    try:
        return frozenset(
            WorkerKey(pool_id, group, worker_id) for group, worker_id in deps.queue.busy(pool_id)
        )
    except QueueUnavailableError as error:
        logger.warning("the queue did not answer", pool=pool_id, error=str(error))
        return frozenset()
