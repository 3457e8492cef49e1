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
    NoRoomError,
    NotReachedError,
    ThrottledError,
)
from worker_manager.core.events import (
    WORKER_REQUESTED,
    WORKER_STOPPED,
    with_event,
    worker_event,
)
from worker_manager.core.lifecycle import OURSELVES
from worker_manager.core.model import LaunchOrder, Lifecycle, Sighting, State, Worker, WorkerKey
from worker_manager.core.plans import Order, OrderState, Plan
from worker_manager.providers.protocol import Launched, Names
from worker_manager.reconcile.healing import Outcome
from worker_manager.reconcile.room import give_back, make_room
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime, timedelta

    from worker_manager.core.model import LaunchConfig
    from worker_manager.reconcile.deps import Deps


@dataclass(slots=True)
class _Announced:
    """Rows written before the call, as they stand: by key, and which of them are new."""

    rows: dict[WorkerKey, Worker]
    written: list[Worker]


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
    announced = _Announced({}, [])
    try:
        if isinstance(deps.provider, Names):
            machines = deps.provider.machines(request)
            make_room(request, machines, deps)
            announced = _announce(plan, order, machines, lifecycle, deps)
            request = replace(request, only=_still_wanted(announced))
            if not request.only:
                return Outcome(settled(order, order.count), announced.written)
        launched = deps.provider.launch(request)
    except ThrottledError as error:
        later = replace(order, not_before=deps.clock() + error.retry_after)
        alone = isinstance(error, NoRoomError)
        return Outcome(later, announced.written, error, waits_alone=alone)
    except CloudError as error:
        lost = isinstance(error, CloudUnavailableError) and not isinstance(error, NotReachedError)
        if lost or order.doubtful:
            logger.warning("an order's answer was lost", order=order.order_id, error=str(error))
            return Outcome(order, announced.written, error)
        asked = frozenset(k for k in announced.rows if k.worker_id in (request.only or ()))
        nothing = Launched(refused=order.count, error=error, not_made=asked)
        rows = _written(announced, nothing, deps)
        return Outcome(settled(order, len(announced.rows) - len(asked), error), rows, error)
    now = deps.clock()
    if isinstance(deps.provider, Names):
        rows = _written(announced, launched, deps)
    else:
        rows = deps.stores.workers.put_all_new(
            [
                new_worker(plan, order, machine, lifecycle, now, launch_limit=deps.timing.launch)
                for machine in launched.machines
            ]
        )
    return _outcome(order, launched, rows, now)


def new_worker(
    plan: Plan,
    order: Order,
    machine: Sighting,
    lifecycle: Lifecycle,
    created: datetime,
    *,
    launch_limit: timedelta,
) -> Worker:
    """The row of a machine that was ordered, with the event that tells of it.

    ``launch_limit`` is how long the cloud may take until the machine runs, at least.
    """
    worker = Worker(
        key=machine.key,
        provider_id=plan.provider_id,
        location=machine.location,
        state=State.REQUESTED,
        capacity=order.capacity_per_instance,
        created=created,
        modified=created,
        version=1,
        launch_config_id=order.launch_config_id,
        order_id=order.order_id,
        deadline=created + max(launch_limit, lifecycle.registration_limit),
        registration=lifecycle.registration_limit,
        decision=plan.tick,
        reregistration=lifecycle.reregistration,
        queue_inactivity=lifecycle.queue_inactivity,
        identity=machine.identity,
    )
    event = worker_event(
        WORKER_REQUESTED, worker, at=created, reason=f"ordered by plan {plan.tick}"
    )
    return replace(worker, unsent=(event,))


def settled(order: Order, launched: int, error: CloudError | None = None) -> Order:
    """An order of which no more machines will come."""
    told = {"kind": error.kind, "code": error.code, "message": str(error)[:500]} if error else None
    return replace(order, state=OrderState.SETTLED, launched=launched, error=told, not_before=None)


def _outcome(order: Order, launched: Launched, rows: list[Worker], now: datetime) -> Outcome:
    """What an answer makes of its order: open while anything of it is unanswered."""
    followed = tuple(machine.key for machine in launched.machines)
    after = launched.follow_after
    unanswered = launched.unanswered
    if unanswered is None:
        count = order.count - launched.refused
        return Outcome(settled(order, count, launched.error), rows, launched.error, followed, after)
    if isinstance(unanswered, ThrottledError):
        order = replace(order, not_before=now + unanswered.retry_after)
    return Outcome(
        order,
        rows,
        launched.error or unanswered,
        followed,
        after,
        waits_alone=isinstance(unanswered, NoRoomError),
    )


def _announce(
    plan: Plan, order: Order, machines: Sequence[Sighting], lifecycle: Lifecycle, deps: Deps
) -> _Announced:
    """Write the rows of an order's machines; those of an earlier send are read instead."""
    now, limit = deps.clock(), deps.timing.launch
    rows = [
        new_worker(plan, order, machine, lifecycle, now, launch_limit=limit) for machine in machines
    ]
    written = deps.stores.workers.put_all_new(rows)
    known = {row.key: row for row in written}
    rest = [row.key for row in rows if row.key not in known]
    return _Announced({**known, **deps.stores.workers.get_many(rest)}, list(written))


def _still_wanted(announced: _Announced) -> frozenset[str]:
    """Names of the machines that may be asked for, again or for the first time."""
    return frozenset(
        key.worker_id for key, row in announced.rows.items() if row.state is State.REQUESTED
    )


def _written(announced: _Announced, launched: Launched, deps: Deps) -> list[Worker]:
    """The announced rows as they are after the answer: refused ones have ended."""
    rows = {row.key: row for row in announced.written}
    told = {machine.key: machine.identity for machine in launched.machines}
    for key, row in announced.rows.items():
        after: Worker | None = None
        if key in launched.not_made:
            after = _end(row, launched.error, deps)
        elif key in told and told[key] != row.identity:
            after = deps.stores.workers.change(row, identity=told[key])
        if after is not None:
            rows[key] = after
    give_back((announced.rows[key] for key in launched.not_made), deps)
    return list(rows.values())


def _end(row: Worker, error: CloudError | None, deps: Deps) -> Worker | None:
    """A machine that its cloud refused to make; the order's error says so to the pool's owner."""
    now = deps.clock()
    reason = str(error)[:500]
    changes = with_event(
        row,
        WORKER_STOPPED,
        at=now,
        reason=reason,
        state=State.STOPPED,
        stop_reason=reason,
        stopped_by=OURSELVES,
    )
    return deps.stores.workers.change(row, **changes)
