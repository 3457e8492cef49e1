"""What would be done for a pool now, and what if things were different: planned, not acted on.

The facts are read and the plan is made by the very code of the provision loop.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

from worker_manager.api.configs import to_parts, validate_config
from worker_manager.api.launch_configs import existing
from worker_manager.api.plan_schemas import (
    ExplanationAnswer,
    PlannedOrder,
    WhatIfAnswer,
    WhatIfDifference,
    WhatIfRequest,
)
from worker_manager.api.providers import provider_of_pool, status_of
from worker_manager.api.refusals import input_error
from worker_manager.api.routing import Call, Route
from worker_manager.core.activity import QueueCounts
from worker_manager.core.explaining import explain, nobody_launches
from worker_manager.core.moments import whole_milliseconds
from worker_manager.core.planning import Decision, decide
from worker_manager.observing import as_if, look_around, observe

if TYPE_CHECKING:
    from worker_manager.api.deps import ApiDeps
    from worker_manager.core.facts import Facts
    from worker_manager.core.model import Pool
    from worker_manager.core.plans import Control

_GET = "worker-manager:get-worker-pool:<workerPoolId>"


def explain_pool(call: Call, deps: ApiDeps) -> ExplanationAnswer:
    """What the next plan would do, what holds it back, which limit binds, when a probe is due.

    Nothing is done.  The machines of a real plan may be others of equal odds.
    """
    facts, _ = _facts(call.pool_id, deps)
    return _answer(facts, _decide(facts, deps), deps)


def what_if(call: Call, deps: ApiDeps) -> WhatIfAnswer:
    """The plan with another config, or other numbers of tasks, beside the one as things are.

    ``config`` is checked as for updateWorkerPool.  Launch configs that stay keep their health,
    breakers and workers; new ones begin without.  Nothing is done or stored.
    """
    body: WhatIfRequest = call.body
    before, control = _facts(call.pool_id, deps)
    after = before
    if body.config is not None:
        pool = _with_config(before.pool, body.config, deps)
        after = as_if(before, control, pool, stores=deps.stores, timing=deps.timing)
    if body.pending_tasks is not None or body.claimed_tasks is not None:
        after = replace(after, demand=_demand(after, body))
    first, second = _decide(before, deps), _decide(after, deps)
    now, then = _answer(before, first, deps), _answer(after, second, deps)
    return WhatIfAnswer(now=now, then=then, difference=_difference(now, then, first, second))


def _facts(pool_id: str, deps: ApiDeps) -> tuple[Facts, Control]:
    """What a provision of the pool would see, and the control item it would see it with."""
    pool, control = existing(pool_id, deps)
    now = whole_milliseconds(deps.clock())
    around = look_around(pool, deps.stores, timing=deps.timing, now=now)
    facts = observe(
        pool,
        control,
        around,
        stores=deps.stores,
        queue=deps.queue,
        timing=deps.timing,
        now=now,
    )
    return facts, control


def _decide(facts: Facts, deps: ApiDeps) -> Decision:
    """What a plan would be; none where nobody makes one."""
    decision = decide(facts, Random(facts.pool.pool_id))
    if _is_planned(facts.pool, deps):
        return decision
    return replace(decision, choices=[], estimate=None, reasons=())


def _is_planned(pool: Pool, deps: ApiDeps) -> bool:
    return pool.provider_id in deps.senders


def _with_config(pool: Pool, config: dict[str, Any], deps: ApiDeps) -> Pool:
    provider = provider_of_pool(deps, pool.provider_id)
    validated = validate_config(
        config, provider.provider_type, shortest_inactivity=deps.timing.shortest_inactivity
    )
    now = whole_milliseconds(deps.clock())
    parts = to_parts(pool.pool_id, validated, provider=provider, root_url=deps.root_url, now=now)
    return replace(pool, config=parts.root, heads=parts.heads)


def _demand(facts: Facts, body: WhatIfRequest) -> QueueCounts:
    """The numbers of tasks that were given, the others as they are; what is closed stays so."""
    known = facts.demand
    pending, claimed = body.pending_tasks, body.claimed_tasks
    if known is not None:
        pending = known.pending if pending is None else pending
        claimed = known.claimed if claimed is None else claimed
    if pending is None or claimed is None:
        raise input_error("The queue does not answer: give both pendingTasks and claimedTasks")
    return QueueCounts(pending, claimed, downtime=known.downtime if known else None)


def _answer(facts: Facts, decision: Decision, deps: ApiDeps) -> ExplanationAnswer:
    pool = facts.pool
    told = explain(facts, decision) if _is_planned(pool, deps) else nobody_launches(facts)
    answer: dict[str, Any] = {}
    if told.next_probe is not None:
        answer["next_probe"] = told.next_probe
    summary = [*told.sentences, *_why_unlisted(facts, deps)]
    status = status_of(pool.provider_id, deps)
    if status.state == "failing":
        summary.insert(0, f"Provider {pool.provider_id} fails: {status.reason}")
        answer["provider_status"] = status
    return ExplanationAnswer(
        worker_pool_id=pool.pool_id,
        provider_id=pool.provider_id,
        time=facts.now,
        summary=summary,
        reasons=list(decision.reasons),
        limit=told.limit,
        orders=[
            PlannedOrder(
                launch_config_id=choice.head.launch_config_id,
                location=choice.head.location,
                count=choice.count,
                capacity=choice.capacity,
                is_probe=decision.probing.covers(choice.head.launch_config_id),
            )
            for choice in decision.choices
        ],
        ordered_capacity=told.ordered,
        let_go_capacity=told.let_go,
        facts={name: value for name, value in decision.facts.items() if name != "launchConfigs"},
        launch_configs={s.head.launch_config_id: s.to_json() for s in decision.standings},
        **answer,
    )


def _why_unlisted(facts: Facts, deps: ApiDeps) -> list[str]:
    """What the cloud said of each location that cannot be listed."""
    if not facts.stale:
        return []
    places = deps.stores.places.places(facts.pool.provider_id, facts.stale)
    return [
        f"{place.location} cannot be listed: {place.stale_reason}"
        for place in places
        if place.stale_reason is not None
    ]


def _difference(
    now: ExplanationAnswer, then: ExplanationAnswer, first: Decision, second: Decision
) -> WhatIfDifference:
    machines: Counter[str] = Counter()
    for order in then.orders:
        machines[order.launch_config_id] += order.count
    for order in now.orders:
        machines[order.launch_config_id] -= order.count
    before, after = first.estimate, second.estimate
    return WhatIfDifference(
        to_spawn=(after.to_spawn if after else 0) - (before.to_spawn if before else 0),
        target=(after.target if after else 0) - (before.target if before else 0),
        ordered_capacity=then.ordered_capacity - now.ordered_capacity,
        let_go_capacity=then.let_go_capacity - now.let_go_capacity,
        launch_configs={name: count for name, count in sorted(machines.items()) if count},
    )


ROUTES: tuple[Route[ApiDeps], ...] = (
    Route(
        name="explainWorkerPool",
        method="GET",
        path="/worker-pool/<workerPoolId>/explain",
        handler=explain_pool,
        scopes=_GET,
        response=ExplanationAnswer,
        stability="experimental",
    ),
    Route(
        name="workerPoolWhatIf",
        method="POST",
        path="/worker-pool/<workerPoolId>/what-if",
        handler=what_if,
        scopes=_GET,
        body=WhatIfRequest,
        response=WhatIfAnswer,
        stability="experimental",
    ),
)
