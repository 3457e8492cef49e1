"""Finishing what earlier ticks began, before anything new is planned.

Orders never sent are cancelled, not launched late.  Sent ones whose answer is missing are sent
again with the same token while it is valid, and after that settled by the first complete list of
their location that must show what they brought; until then they stay open and count as requested.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from worker_manager.core.model import (
    Control,
    Json,
    Location,
    Order,
    OrderState,
    Plan,
    Pool,
    Worker,
)
from worker_manager.reconcile.launching import carry_out, count_outcome, settled
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from worker_manager.core.timing import Timing
    from worker_manager.reconcile.deadline import Deadline
    from worker_manager.reconcile.deps import Deps


@dataclass(frozen=True, slots=True)
class Sorted:
    """The open orders of a plan by what is to be done with them."""

    cancel: tuple[Order, ...] = ()
    resend: tuple[Order, ...] = ()
    by_list: tuple[Order, ...] = ()


def sort_orders(
    plan: Plan, complete: Mapping[Location, datetime | None], now: datetime, timing: Timing
) -> Sorted:
    """Decide about each open order.

    ``complete`` says, by location, when the last list that was read to its end began.  A list
    settles an order if it began so long after the last send that the machine must be in it, and
    an interval more, so that the scan of an earlier list has adopted what it showed.
    """
    cancel, resend, by_list = [], [], []
    for order in plan.orders:
        if order.state is OrderState.NOTED:
            cancel.append(order)
        elif order.state is OrderState.SENT and order.first_sent and order.last_sent:
            if now - order.first_sent < timing.resend:
                if order.not_before is None or order.not_before <= now:
                    resend.append(order)
                continue
            listed = complete.get(order.location)
            if listed and listed > order.last_sent + timing.list_lag + timing.scan:
                by_list.append(order)
    return Sorted(tuple(cancel), tuple(resend), tuple(by_list))


def finish(
    pool: Pool, control: Control, plans: Sequence[Plan], deps: Deps, deadline: Deadline
) -> Control | None:
    """Bring this provider's open plans as far as they go.

    Returns the control item as it stands afterwards, or ``None`` if another planner is at it.
    """
    for plan in plans:
        if plan.provider_id != deps.provider_id:
            continue
        after = _advance(pool, plan, deps, deadline)
        if after is None:
            return None
        if not any(order.is_open for order in after.orders):
            closed = deps.stores.plans.close(after, control)
            if closed is None:
                return None
            control = closed
    return control


def rows_of(
    plans: Sequence[Plan], workers: Sequence[Worker], pool_id: str, deps: Deps
) -> dict[str, int]:
    """Rows, in any state, of each open order; stopped ones are read only where rows lack."""
    rows: dict[str, int] = {}
    for worker in workers:
        if worker.order_id:
            rows[worker.order_id] = rows.get(worker.order_id, 0) + 1
    short = [
        order.order_id
        for plan in plans
        for order in plan.orders
        if order.state is OrderState.SENT and rows.get(order.order_id, 0) < order.count
    ]
    return rows | deps.stores.workers.rows_of_orders(pool_id, short) if short else rows


def _advance(pool: Pool, plan: Plan, deps: Deps, deadline: Deadline) -> Plan | None:
    complete = {
        location: deps.stores.places.place(deps.provider_id, location).complete
        for location in _late_locations(plan, deps)
    }
    todo = sort_orders(plan, complete, deps.clock(), deps.timing)
    if todo.cancel or todo.by_list:
        rows = (
            deps.stores.workers.rows_of_orders(
                pool.pool_id, [order.order_id for order in todo.by_list]
            )
            if todo.by_list
            else {}
        )
        ended = {o.order_id: replace(o, state=OrderState.CANCELLED) for o in todo.cancel}
        ended |= {o.order_id: settled(o, rows[o.order_id]) for o in todo.by_list}
        marked = deps.stores.plans.mark(
            plan, orders=tuple(ended.get(order.order_id, order) for order in plan.orders)
        )
        if marked is None:
            return None
        plan = marked
        for order in todo.by_list:
            count_outcome(plan, ended[order.order_id], "lost", deps)
        logger.info("orders ended", pool=pool.pool_id, tick=plan.tick, count=len(ended))
    if not todo.resend:
        return plan
    bodies = bodies_of(pool.pool_id, todo.resend, deps)
    orders = [order for order in todo.resend if order.launch_config_id in bodies]
    return carry_out(
        plan, orders, bodies=bodies, lifecycle=pool.lifecycle, deps=deps, deadline=deadline
    )


def bodies_of(pool_id: str, orders: Sequence[Order], deps: Deps) -> Mapping[str, Json]:
    """The launch configs' content that these orders need, archived ones included."""
    names = {order.launch_config_id for order in orders}
    found = deps.stores.pools.bodies(pool_id, sorted(names))
    return {name: config.body for name, config in found.items()}


def _late_locations(plan: Plan, deps: Deps) -> set[Location]:
    """Locations of sent orders that are too old to be sent again."""
    now = deps.clock()
    return {
        order.location
        for order in plan.orders
        if order.state is OrderState.SENT
        and order.first_sent
        and now - order.first_sent >= deps.timing.resend
    }
