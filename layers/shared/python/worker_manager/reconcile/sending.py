"""Sending one order: its call, and the rows of its machines.

Where the cloud names its machines their rows are written after its answer; where the names are
ours, before the call, so that no machine can exist without.  A machine whose row has moved on is
not asked for again: it would come back to life.
Where to read next: ``launching`` (all orders of a plan), ``following`` (accepted is not made).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from worker_manager.core.errors import (
    CloudError,
    CloudUnavailableError,
    NoRoomError,
    NotReachedError,
    ThrottledError,
)
from worker_manager.core.model import LaunchOrder, Lifecycle, Worker
from worker_manager.core.plans import Order, OrderState, Plan
from worker_manager.providers.protocol import Launched, Names
from worker_manager.reconcile.announcing import Announced, announce, new_worker, write_answer
from worker_manager.reconcile.healing import Outcome
from worker_manager.reconcile.room import make_room
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from worker_manager.core.model import LaunchConfig
    from worker_manager.reconcile.deps import Deps


def send_order(
    plan: Plan,
    order: Order,
    *,
    configs: Mapping[str, LaunchConfig],
    lifecycle: Lifecycle,
    deps: Deps,
) -> Outcome:
    """One order: its machines announced where their names are ours, asked for, written down."""
    config = configs[order.launch_config_id]
    request = LaunchOrder(
        order_id=order.order_id,
        pool_id=plan.pool_id,
        provider_id=plan.provider_id,
        launch_config_id=order.launch_config_id,
        location=order.location,
        count=order.count,
        body=config.body,
        inputs=plan.inputs,
        manager=config.manager,
    )
    announced = Announced({}, [])
    try:
        if isinstance(deps.provider, Names):
            machines = deps.provider.machines(request)
            make_room(request, machines, deps)
            announced = announce(plan, order, machines, lifecycle, deps)
            request = replace(request, only=announced.wanted)
            if not request.only:
                return Outcome(
                    settled(order, order.count - announced.never_made), announced.written
                )
        launched = deps.provider.launch(request)
    except ThrottledError as error:
        later = _waiting(order, error, deps.clock())
        alone = isinstance(error, NoRoomError)
        return Outcome(later, announced.written, error, waits_alone=alone)
    except CloudError as error:
        lost = isinstance(error, CloudUnavailableError) and not isinstance(error, NotReachedError)
        if lost or order.doubtful:
            logger.warning("an order's answer was lost", order=order.order_id, error=str(error))
            return Outcome(order, announced.written, error)
        asked = frozenset(k for k in announced.rows if k.worker_id in (request.only or ()))
        nothing = Launched(refused=len(asked), error=error, not_made=asked)
        rows = write_answer(announced, nothing, deps)
        made = len(announced.rows) - announced.never_made - len(asked)
        return Outcome(settled(order, made, error), rows, error)
    now = deps.clock()
    launched = _believed(order, launched)
    if isinstance(deps.provider, Names):
        rows = write_answer(announced, launched, deps)
    else:
        rows = deps.stores.workers.put_all_new(
            [
                new_worker(plan, order, machine, lifecycle, now, launch_limit=deps.timing.launch)
                for machine in launched.machines
            ]
        )
    return _outcome(order, launched, rows, now, never_made=announced.never_made)


def settled(order: Order, launched: int, error: CloudError | None = None) -> Order:
    """An order of which no more machines will come."""
    told = {"kind": error.kind, "code": error.code, "message": str(error)[:500]} if error else None
    return replace(order, state=OrderState.SETTLED, launched=launched, error=told, not_before=None)


def _waiting(order: Order, error: ThrottledError, now: datetime) -> Order:
    """An order that is to be sent again after a wait."""
    doubtful = order.doubtful or error.is_doubtful
    return replace(order, not_before=now + error.retry_after, doubtful=doubtful)


def _believed(order: Order, launched: Launched) -> Launched:
    """An answer, less the refusals of machines that an earlier call may have made."""
    if not (order.doubtful and launched.refused):
        return launched
    unanswered = launched.unanswered or launched.error
    return replace(launched, refused=0, not_made=frozenset(), unanswered=unanswered)


def _outcome(
    order: Order, launched: Launched, rows: list[Worker], now: datetime, *, never_made: int
) -> Outcome:
    """What an answer makes of its order: open while anything of it is unanswered."""
    followed = tuple(machine.key for machine in launched.machines)
    after = launched.follow_after
    unanswered = launched.unanswered
    if unanswered is None:
        count = order.count - launched.refused - never_made
        return Outcome(settled(order, count, launched.error), rows, launched.error, followed, after)
    if isinstance(unanswered, ThrottledError):
        order = _waiting(order, unanswered, now)
    return Outcome(
        order,
        rows,
        launched.error or unanswered,
        followed,
        after,
        waits_alone=isinstance(unanswered, NoRoomError),
    )
