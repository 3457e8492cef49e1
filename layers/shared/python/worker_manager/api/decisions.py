"""What was decided for a pool, and why: stored plans and decisions, newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker_manager.api import paging
from worker_manager.api.plan_schemas import DecisionAnswer, DecisionList, OrderAnswer
from worker_manager.api.refusals import not_found
from worker_manager.api.routing import PAGING, Call, Route
from worker_manager.api.worker_pools import existing_pool
from worker_manager.core.ids import DECISION_ID, matches

if TYPE_CHECKING:
    from typing import Any

    from worker_manager.api.deps import ApiDeps
    from worker_manager.core.plans import Order, Plan

LARGEST_PAGE = 100
"""Decisions of one page at most: each may tell of dozens of launch configs."""

_GET = "worker-manager:get-worker-pool:<workerPoolId>"


def list_of_pool(call: Call, deps: ApiDeps) -> DecisionList:
    """Decisions of a pool, newest first.

    A tick that ordered something is among them, and one that changed its mind about what is in
    the way.  They are kept for two weeks.
    """
    size = min(paging.page_size(call.query), LARGEST_PAGE)
    before = paging.position(call.query, _is_decision_id)
    existing_pool(deps, call.pool_id)
    plans = deps.stores.plans.page(call.pool_id, before=before, limit=size + 1)
    answers = (_answer(plan) for plan in plans[:size])
    page = list(paging.cut(answers, paging.size_of, most_bytes=deps.page_bytes))
    is_last = len(page) == len(plans)
    return DecisionList(
        decisions=page, **paging.with_token(None if is_last else page[-1].decision_id)
    )


def get(call: Call, deps: ApiDeps) -> DecisionAnswer:
    """One decision, as workers name the one that made them."""
    plan = deps.stores.plans.get(call.pool_id, call.params["decisionId"])
    if plan is None:
        existing_pool(deps, call.pool_id)
        raise not_found("There is no such decision, or it was more than two weeks ago")
    return _answer(plan)


def _is_decision_id(text: str) -> bool:
    return matches(DECISION_ID, text)


def _answer(plan: Plan) -> DecisionAnswer:
    return DecisionAnswer(
        decision_id=plan.tick,
        worker_pool_id=plan.pool_id,
        provider_id=plan.provider_id,
        decided=plan.now,
        is_open=not plan.closed,
        reasons=list(plan.reasons),
        facts=dict(plan.facts),
        orders=[_order(order) for order in plan.orders],
    )


def _order(order: Order) -> OrderAnswer:
    told: dict[str, Any] = {}
    if order.not_before is not None:
        told["not_before"] = order.not_before
    if order.error is not None:
        told["error"] = dict(order.error)
    return OrderAnswer(
        order_id=order.order_id,
        launch_config_id=order.launch_config_id,
        location=order.location,
        count=order.count,
        capacity_per_instance=order.capacity_per_instance,
        state=order.state.value,
        is_probe=order.is_probe,
        launched=order.launched,
        **told,
    )


ROUTES: tuple[Route[ApiDeps], ...] = (
    Route(
        name="listWorkerPoolDecisions",
        method="GET",
        path="/worker-pool/<workerPoolId>/decisions",
        handler=list_of_pool,
        scopes=_GET,
        query=PAGING,
        response=DecisionList,
        stability="experimental",
    ),
    Route(
        name="getWorkerPoolDecision",
        method="GET",
        path="/worker-pool/<workerPoolId>/decisions/<decisionId>",
        handler=get,
        scopes=_GET,
        response=DecisionAnswer,
        stability="experimental",
    ),
)
