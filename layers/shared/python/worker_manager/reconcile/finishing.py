"""Finishing what earlier ticks began, before anything new is planned.

Orders never sent are cancelled, not launched late.  Sent ones whose answer is missing are sent
again with the same token while it is valid, and after that settled by the first complete list of
their location that must show what they brought and whose scan gave a row to all that it showed;
until then they stay open and count as requested.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from worker_manager.core.plans import Control, Order, OrderState, Plan
from worker_manager.providers.protocol import Names
from worker_manager.reconcile.announcing import end_never_made
from worker_manager.reconcile.following import follow_orders
from worker_manager.reconcile.healing import makes_at_once, tell_success
from worker_manager.reconcile.launching import carry_out, count_outcome
from worker_manager.reconcile.sending import settled
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime, timedelta

    from worker_manager.core.model import LaunchConfig, Location, Pool
    from worker_manager.reconcile.deadline import Deadline
    from worker_manager.reconcile.deps import Deps


@dataclass(frozen=True, slots=True)
class Sorted:
    """The open orders of a plan by what is to be done with them."""

    cancel: tuple[Order, ...] = ()
    resend: tuple[Order, ...] = ()
    by_list: tuple[Order, ...] = ()


def sort_orders(
    plan: Plan,
    scanned: Mapping[Location, datetime],
    *,
    now: datetime,
    resend: timedelta,
    visible: timedelta,
) -> Sorted:
    """Decide about each open order.

    ``scanned`` says, by location, when the last list began whose scan of this pool is through.
    It settles an order if it began so long after the last send (``visible``) that all that came
    of it must be in the list.  ``resend`` is how long an order may be sent again.
    """
    cancel, again, by_list = [], [], []
    for order in plan.orders:
        if order.state is OrderState.NOTED:
            cancel.append(order)
        elif order.state is OrderState.SENT and order.first_sent and order.last_sent:
            if now - order.first_sent < resend:
                if order.not_before is None or order.not_before <= now:
                    again.append(order)
                continue
            listed = scanned.get(order.location)
            if listed and listed > order.last_sent + visible:
                by_list.append(order)
    return Sorted(tuple(cancel), tuple(again), tuple(by_list))


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


def _advance(pool: Pool, plan: Plan, deps: Deps, deadline: Deadline) -> Plan | None:
    now = deps.clock()
    late = _late_orders(plan, now, deps)
    scanned = (
        deps.stores.plans.scans(pool.pool_id, plan.provider_id, {o.location for o in late})
        if late
        else {}
    )
    todo = sort_orders(
        plan,
        scanned,
        now=now,
        resend=deps.timing.resend,
        visible=deps.timing.list_lag + deps.call_limit,
    )
    todo = replace(todo, by_list=_looked_at(pool.pool_id, todo.by_list, deps))
    _alarm([order for order in late if order not in todo.by_list], now, deps)
    if todo.cancel or todo.by_list:
        rows = _machines_of(pool.pool_id, todo.by_list, deps)
        ended = {o.order_id: replace(o, state=OrderState.CANCELLED) for o in todo.cancel}
        ended |= {o.order_id: settled(o, rows[o.order_id]) for o in todo.by_list}
        marked = deps.stores.plans.mark(
            plan, orders=tuple(ended.get(order.order_id, order) for order in plan.orders)
        )
        if marked is None:
            return None
        plan = marked
        for order in todo.by_list:
            # Every answer was to wait: nothing was done, and no launch config is to blame.
            kind = None if order.not_before and not order.doubtful else "lost"
            after = ended[order.order_id]
            lost = after.count - after.launched - after.refused
            count_outcome(plan, after, kind, deps, refused=lost)
            if makes_at_once(deps):
                tell_success(plan, ended[order.order_id], deps)
        follow_orders(pool.pool_id, todo.by_list, deps)
        logger.info("orders ended", pool=pool.pool_id, tick=plan.tick, count=len(ended))
    if not todo.resend:
        return plan
    configs = configs_of(pool, todo.resend, deps)
    orders = [order for order in todo.resend if order.launch_config_id in configs]
    return carry_out(plan, orders, pool=pool, configs=configs, deps=deps, deadline=deadline)


def _looked_at(pool_id: str, orders: tuple[Order, ...], deps: Deps) -> tuple[Order, ...]:
    """Those of these orders whose machines are known: rows before calls prove no machine."""
    if not isinstance(deps.provider, Names):
        return orders
    return tuple(order for order in orders if end_never_made(pool_id, order, deps))


def _machines_of(pool_id: str, orders: Sequence[Order], deps: Deps) -> Mapping[str, int]:
    """How many machines each of these orders brought, by its id."""
    if not orders:
        return {}
    return deps.stores.workers.rows_of_orders(
        pool_id,
        [order.order_id for order in orders],
        less_never_made=isinstance(deps.provider, Names),
    )


def configs_of(pool: Pool, orders: Sequence[Order], deps: Deps) -> Mapping[str, LaunchConfig]:
    """The launch configs that these orders need, whole, archived ones included."""
    names = {order.launch_config_id for order in orders}
    found = deps.stores.pools.bodies(pool.pool_id, sorted(names), now=deps.clock())
    managers = {head.launch_config_id: head.manager for head in pool.heads}
    return {
        name: replace(config, manager=managers.get(name, config.manager))
        for name, config in found.items()
    }


def _late_orders(plan: Plan, now: datetime, deps: Deps) -> list[Order]:
    """Sent orders that are too old to be sent again."""
    return [
        order
        for order in plan.orders
        if order.state is OrderState.SENT
        and order.first_sent
        and now - order.first_sent >= deps.timing.resend
    ]


def _alarm(waiting: Sequence[Order], now: datetime, deps: Deps) -> None:
    """Say so where no list has settled an order for so long that its location must be stale."""
    patience = deps.timing.resend + deps.timing.location_stale
    for order in waiting:
        if order.first_sent and now - order.first_sent >= patience:
            logger.error(
                "an order waits for a complete list",
                order=order.order_id,
                place=order.location,
                since=order.first_sent.isoformat(),
            )
