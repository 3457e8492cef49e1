"""Machines of ours without a row: adopted if an open plan ordered them, else taken away.

A stray may be a launch whose answer was lost, or one that its plan's finishing has yet to write;
both carry an order id that an open plan knows.  One that no open plan ordered is only terminated
when it is old, an earlier list had strays too, and they were not so many that our own rows are the
likelier fault.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from worker_manager.core.errors import CloudError
from worker_manager.core.model import Lifecycle, MachineStatus, Sighting, State, Worker
from worker_manager.core.sightings import orphans
from worker_manager.reconcile.new_workers import new_worker
from worker_manager.reconcile.settling import terminate
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from worker_manager.core.messages import ScanPool
    from worker_manager.core.plans import Order, Plan
    from worker_manager.reconcile.deps import Deps


def deal_with_strays(message: ScanPool, strays: Sequence[Sighting], deps: Deps) -> bool:
    """Adopt what was ordered; terminate what is known to be over, and what is old and believed.

    Returns whether all that open plans ordered has its row now.
    """
    if not strays:
        return True
    pool, control = deps.stores.pools.get_with_control(message.pool_id)
    ordered = {
        order.order_id: (plan, order)
        for plan in deps.stores.plans.open_plans(control, deps.provider_id)
        for order in plan.orders
    }
    ours, rest = orphans(strays, ordered)
    complete = adopt(message, ours, ordered, pool.lifecycle if pool else Lifecycle(), deps)
    _take_away(message, [s for s in rest if s.status is not MachineStatus.STOPPING], deps)
    return complete


def _take_away(message: ScanPool, strays: Sequence[Sighting], deps: Deps) -> None:
    """Terminate machines whose row is stopped, and those without row that are old and believed.

    Only the live rows were compared with the list, so their rows are looked for first.
    """
    rows = deps.stores.workers.get_many(stray.key for stray in strays)
    over = [s for s in strays if s.key in rows and rows[s.key].state is State.STOPPED]
    unknown = [stray for stray in strays if stray.key not in rows]
    if unknown:
        deps.stores.places.found_strays(deps.provider_id, message.location, len(unknown))
    oldest = deps.clock() - deps.timing.stray_grace
    old = [s for s in unknown if s.launched is not None and s.launched < oldest]
    going = [*over, *old] if message.strays_reported else over
    if not going:
        return
    logger.error(
        "terminating machines without a live row",
        pool=message.pool_id,
        machines=[stray.key.worker_id for stray in going],
    )
    terminate(message.location, [_as_worker(stray, deps) for stray in going], deps)


def adopt(
    message: ScanPool,
    strays: Sequence[Sighting],
    ordered: Mapping[str, tuple[Plan, Order]],
    lifecycle: Lifecycle,
    deps: Deps,
) -> bool:
    """Write the rows that a lost answer left unwritten, with what the cloud says of each.

    Returns whether the cloud told enough of all of them.
    """
    if not strays:
        return True
    whole = _whole(message, strays, deps)
    rows = []
    for stray in whole:
        plan, order = ordered[stray.order_id or ""]
        limit = deps.timing.launch
        rows.append(new_worker(plan, order, stray, lifecycle, deps.clock(), launch_limit=limit))
    written = deps.stores.workers.put_all_new(rows)
    for row in written:
        logger.info("adopted", pool=message.pool_id, worker=row.key.worker_id)
    deps.outbox.send_workers(written)
    return len(whole) == len(strays)


def _whole(message: ScanPool, strays: Sequence[Sighting], deps: Deps) -> list[Sighting]:
    """The sightings with the facts that an identity proof must repeat."""
    try:
        found = deps.provider.lookup(
            message.location, [_as_worker(stray, deps) for stray in strays]
        )
    except CloudError as error:
        logger.warning("a lookup failed", place=message.location, code=error.code)
        return []
    answers = [(stray, found.get(stray.key)) for stray in strays]
    return [
        replace(stray, identity=answer.identity)
        for stray, answer in answers
        if answer is not None and answer.status is not MachineStatus.GONE
    ]


def _as_worker(stray: Sighting, deps: Deps) -> Worker:
    """A stray in the shape that providers take."""
    now = deps.clock()
    return Worker(
        key=stray.key,
        provider_id=deps.provider_id,
        location=stray.location,
        state=State.STOPPING,
        capacity=1,
        created=stray.launched or now,
        modified=now,
    )
