"""Carrying out orders: sent side by side, each exactly once, and written down as it goes.

An order is marked ``sent`` before its call.  What the call brought is a row a machine, put if
absent; what it refused is an error of its launch config, and so is what never left for want of a
connection.  Throttled orders stay open with the time to wait; orders whose answer was lost stay
open until they are sent again with the same token, or until a complete list tells what became of
them: a refusal of the second call says nothing about the first.
Where to read next: ``sending`` (one order), ``following`` (what comes after the cloud's answer).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from worker_manager.core.definition import group_of
from worker_manager.core.errors import (
    BadCredentialsError,
    CloudError,
    NotReachedError,
    ThrottledError,
)
from worker_manager.core.ids import derived_slugid
from worker_manager.core.messages import Resume
from worker_manager.core.model import PoolError
from worker_manager.core.plans import Order, OrderState, Plan
from worker_manager.metrics import meter
from worker_manager.queues import Message
from worker_manager.reconcile.following import follow_creation
from worker_manager.reconcile.healing import learn, makes_at_once, ways_of
from worker_manager.reconcile.sending import Outcome, send_order
from worker_manager.reconcile.side_by_side import side_by_side
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from worker_manager.core.model import LaunchConfig, Location, Pool
    from worker_manager.reconcile.deadline import Deadline
    from worker_manager.reconcile.deps import Deps


def carry_out(
    plan: Plan,
    orders: Sequence[Order],
    *,
    pool: Pool,
    configs: Mapping[str, LaunchConfig],
    deps: Deps,
    deadline: Deadline,
) -> Plan | None:
    """Send ``orders`` of ``plan``, group by group, and write down what came of them.

    A group is as many as are sent side by side; they are marked together.  Returns the plan as it
    stands then; ``None`` if somebody else took it over meanwhile.  Groups that the deadline no
    longer allows are not begun, and what an earlier group was refused is not asked for again: the
    next tick cancels it.
    """
    refused: set[str] = set()
    for start in range(0, len(orders), deps.parallel):
        if not deadline.allows(deps.call_limit):
            logger.info("out of time, leaving orders", pool=plan.pool_id, left=len(orders) - start)
            return plan
        group = [
            order
            for order in orders[start : start + deps.parallel]
            if refused.isdisjoint(ways_of(order))
        ]
        if not group:
            continue
        now = deps.clock()
        marked = deps.stores.plans.mark(
            plan, orders=_replaced(plan, [_sent(o, now) for o in group])
        )
        if marked is None:
            return None
        names = {order.order_id for order in group}
        launch = partial(send_order, marked, configs=configs, lifecycle=pool.lifecycle, deps=deps)
        sent = [order for order in marked.orders if order.order_id in names]
        outcomes = side_by_side(launch, sent, parallel=deps.parallel)
        _report_failures(marked, outcomes, configs, deps, mails=pool.email_on_error)
        follow_creation(outcomes, deps)
        after = deps.stores.plans.mark(
            marked, orders=_replaced(marked, [outcome.order for outcome in outcomes])
        )
        if after is None:
            return None
        plan = after
        _count(plan, outcomes, deps)
        refused |= learn(plan, outcomes, deps)
        _come_back(plan, outcomes, deps)
        deps.outbox.send_workers(row for outcome in outcomes for row in outcome.written)
    return plan


def count_outcome(
    plan: Plan,
    order: Order,
    kind: str | None,
    deps: Deps,
    *,
    refused: int,
    reason: str = "",
) -> None:
    """Add an order to its launch config's health; no ``kind``, no blame.

    ``refused`` machines have not been counted before; the others only once it is settled.
    """
    if kind is not None:
        meter.failed(plan.provider_id, kind, count=refused)
    counts = {} if order.is_open else {"requested": order.count, "launched": order.launched}
    deps.stores.health.add(
        plan.pool_id,
        order.launch_config_id,
        deps.clock(),
        failed=kind,
        failures=refused,
        reason=reason,
        is_made=makes_at_once(deps),
        **counts,
    )


def _sent(order: Order, now: datetime) -> Order:
    """An order about to be sent; doubtful if it was before and was not merely told to wait."""
    unanswered = order.first_sent is not None and order.not_before is None
    return replace(
        order,
        state=OrderState.SENT,
        doubtful=order.doubtful or unanswered,
        first_sent=order.first_sent or now,
        last_sent=now,
        not_before=None,
    )


def _replaced(plan: Plan, changed: Iterable[Order]) -> tuple[Order, ...]:
    by_id = {order.order_id: order for order in changed}
    return tuple(by_id.get(order.order_id, order) for order in plan.orders)


def _report_failures(
    plan: Plan,
    outcomes: Iterable[Outcome],
    configs: Mapping[str, LaunchConfig],
    deps: Deps,
    *,
    mails: bool,
) -> None:
    """Record what went wrong before the orders are settled, so that no crash can hide it.

    Throttling is our own haste, and no error of the pool.
    """
    for outcome in outcomes:
        if outcome.error is not None and not isinstance(outcome.error, ThrottledError):
            order = outcome.order
            group = group_of(configs[order.launch_config_id].body, order.location)
            _report(plan, order, outcome.error, deps, group=group, mails=mails)


def _count(plan: Plan, outcomes: Iterable[Outcome], deps: Deps) -> None:
    """Add what is settled or refused to the metrics, and to the health of its launch config.

    Neither credentials that do not hold nor a cloud that cannot be reached are its fault.
    """
    for outcome in outcomes:
        error, order = outcome.error, outcome.order
        if isinstance(error, ThrottledError) and not error.waits_alone:
            meter.throttled(plan.provider_id)
        if not order.is_open:
            meter.launched(plan.provider_id, instances=order.launched)
        if outcome.refused or not order.is_open:
            blameless = isinstance(error, BadCredentialsError | NotReachedError)
            kind, reason = (error.kind, str(error)) if error and not blameless else (None, "")
            count_outcome(plan, order, kind, deps, refused=outcome.refused, reason=reason)


def _come_back(plan: Plan, outcomes: Sequence[Outcome], deps: Deps) -> None:
    """Nobody orders there before the cloud's time, and the pool is looked at again right after.

    Who waits for room in one place of a location keeps nobody else waiting.
    """
    waits: dict[Location, datetime] = {}
    moments = []
    for outcome in outcomes:
        location, moment = outcome.order.location, outcome.order.not_before
        if moment is not None:
            moments.append(moment)
            if not outcome.waits_alone:
                waits[location] = max(moment, waits.get(location, moment))
    for location, moment in waits.items():
        deps.stores.places.postpone(plan.provider_id, location, moment)
    if not moments:
        return
    first = min(moments)
    delay = max(1, round((first - deps.clock()).total_seconds()) + 1)
    resume = Resume.after(plan.pool_id, plan.tick, first)
    deps.senders["advance"].send([Message(resume.to_json(), delay=delay)])


def _report(
    plan: Plan, order: Order, error: CloudError, deps: Deps, *, group: str, mails: bool
) -> None:
    """Tell the pool's owner, once an order and kind."""
    extra: dict[str, Any] = {
        "code": error.code,
        "orderId": order.order_id,
        "workerGroup": group,
        "requested": order.count,
        "launched": order.launched,
    }
    deps.outbox.report(
        PoolError(
            error_id=derived_slugid("order", order.order_id, error.kind),
            pool_id=plan.pool_id,
            reported=plan.now,
            kind=error.kind,
            title="Instance Creation Error",
            description=str(error),
            extra=extra,
            launch_config_id=order.launch_config_id,
        ),
        plan.provider_id,
        mails=mails,
    )
