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
from worker_manager.core.model import (
    Lifecycle,
    MachineStatus,
    Order,
    Plan,
    Sighting,
    State,
    Worker,
)
from worker_manager.core.sightings import orphans
from worker_manager.reconcile.launching import new_worker
from worker_manager.reconcile.settling import terminate
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from worker_manager.core.messages import ScanPool
    from worker_manager.reconcile.deps import Deps


def deal_with_strays(message: ScanPool, strays: Sequence[Sighting], deps: Deps) -> None:
    """Adopt what was ordered; count the rest, and terminate what is old and believed."""
    if not strays:
        return
    pool, control = deps.stores.pools.get_with_control(message.pool_id)
    ordered = {
        order.order_id: (plan, order)
        for plan in deps.stores.plans.open_plans(control, deps.provider_id)
        for order in plan.orders
    }
    ours, unordered = orphans(strays, ordered)
    if ours:
        adopt(message, ours, ordered, pool.lifecycle if pool else Lifecycle(), deps)
    unknown = [stray for stray in unordered if _has_no_row(stray, deps)]
    if not unknown:
        return
    deps.stores.places.found_strays(deps.provider_id, message.location, len(unknown))
    oldest = deps.clock() - deps.timing.stray_grace
    old = [s for s in unknown if s.launched is not None and s.launched < oldest]
    if message.strays_reported and old:
        logger.error(
            "terminating strays", pool=message.pool_id, machines=[s.key.worker_id for s in old]
        )
        terminate(message.location, [_as_worker(stray, deps) for stray in old], deps)


def adopt(
    message: ScanPool,
    strays: Sequence[Sighting],
    ordered: Mapping[str, tuple[Plan, Order]],
    lifecycle: Lifecycle,
    deps: Deps,
) -> None:
    """Write the rows that a lost answer left unwritten, with what the cloud says of each."""
    written = []
    for stray in _whole(message, strays, deps):
        plan, order = ordered[stray.order_id or ""]
        row = new_worker(plan, order, stray, lifecycle, deps.clock())
        if deps.stores.workers.put_new(row):
            written.append(row)
            logger.info("adopted", pool=message.pool_id, worker=stray.key.worker_id)
    deps.outbox.send_workers(written)


def _whole(message: ScanPool, strays: Sequence[Sighting], deps: Deps) -> list[Sighting]:
    """The sightings with the facts that an identity proof must repeat."""
    try:
        found = deps.provider.lookup(
            message.location, [_as_worker(stray, deps) for stray in strays]
        )
    except CloudError as error:
        logger.warning("a lookup failed", location=message.location, code=error.code)
        return []
    answers = [(stray, found.get(stray.key)) for stray in strays]
    return [
        replace(stray, identity=answer.identity)
        for stray, answer in answers
        if answer is not None and answer.status is not MachineStatus.GONE
    ]


def _has_no_row(stray: Sighting, deps: Deps) -> bool:
    """Whether there is really no row: the live ones lack those that are stopped already."""
    return deps.stores.workers.get(stray.key) is None


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
