"""Sending one order: its call, and the rows of its machines.

Where the cloud names its machines their rows are written after its answer; where the names are
ours, before the call, so that no machine can exist without.  A machine whose row has moved on is
not asked for again: it would come back to life.
Where to read next: ``launching`` (all orders of a plan), ``following`` (accepted is not made).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from worker_manager.core.errors import (
    CloudError,
    CloudUnavailableError,
    NotReachedError,
    ThrottledError,
)
from worker_manager.core.model import LaunchOrder, Lifecycle, Worker, WorkerKey
from worker_manager.core.plans import Order, OrderState, Plan
from worker_manager.providers.protocol import Launched, Names
from worker_manager.reconcile.announcing import Announced, announce, write_answer
from worker_manager.reconcile.new_workers import new_worker
from worker_manager.reconcile.room import make_room
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime, timedelta

    from worker_manager.core.model import LaunchConfig
    from worker_manager.reconcile.deps import Deps


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one call made of an order: the order as it stands now, and the rows written.

    ``error`` is why ``refused`` machines will not be, or what keeps the order open.  The creation
    of ``followed`` is to be looked at ``follow_after`` that long, if at all.  ``waits_alone`` if an
    order that has to wait says nothing about others.
    """

    order: Order
    written: Sequence[Worker] = ()
    error: CloudError | None = None
    refused: int = 0
    followed: Sequence[WorkerKey] = ()
    follow_after: timedelta | None = None
    waits_alone: bool = False


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
        return Outcome(later, announced.written, error, waits_alone=error.waits_alone)
    except CloudError as error:
        lost = isinstance(error, CloudUnavailableError) and not isinstance(error, NotReachedError)
        if lost or order.doubtful:
            logger.warning("an order's answer was lost", order=order.order_id, error=str(error))
            return Outcome(order, announced.written, error)
        return _refused(order, request, announced, error, deps)
    launched = _believed(order, launched)
    if isinstance(deps.provider, Names):
        rows = write_answer(announced, launched, deps)
        followed = [machine.key for machine in launched.machines]
    else:
        now, limit = deps.clock(), deps.timing.launch
        rows = deps.stores.workers.put_all_new(
            [
                new_worker(plan, order, machine, lifecycle, now, launch_limit=limit)
                for machine in launched.machines
            ]
        )
        followed = [row.key for row in rows]
    return _outcome(order, launched, announced, rows=rows, followed=followed, now=deps.clock())


def _refused(
    order: Order, request: LaunchOrder, announced: Announced, error: CloudError, deps: Deps
) -> Outcome:
    """All that was asked for was refused; what earlier sends brought stays."""
    asked = frozenset(key for key in announced.rows if key.worker_id in (request.only or ()))
    nothing = Launched(refused=len(asked), error=error, not_made=asked)
    rows = write_answer(announced, nothing, deps)
    named = len(announced.rows) - announced.never_made - len(asked)
    made = named if announced.rows else order.launched
    refused = order.count - made - order.refused
    return Outcome(settled(order, made, error), rows, error, refused=refused)


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
    order: Order,
    launched: Launched,
    announced: Announced,
    *,
    rows: Sequence[Worker],
    followed: Sequence[WorkerKey],
    now: datetime,
) -> Outcome:
    """What an answer makes of its order: open while anything of it is unanswered."""
    refused = launched.refused + announced.never_made
    unanswered = launched.unanswered
    if unanswered is None:
        after = settled(order, order.count - refused, launched.error)
    else:
        earlier = len(announced.made)
        after = replace(
            order,
            refused=refused,
            barred=len(launched.not_made) + announced.never_made,
            launched=earlier + len(launched.machines),
        )
        if isinstance(unanswered, ThrottledError):
            after = _waiting(after, unanswered, now)
    return Outcome(
        after,
        rows,
        launched.error or unanswered,
        refused=max(0, refused - order.refused),
        followed=followed,
        follow_after=launched.follow_after,
        waits_alone=isinstance(unanswered, ThrottledError) and unanswered.waits_alone,
    )
