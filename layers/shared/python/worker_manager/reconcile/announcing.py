"""Rows of machines that are being asked for, where their names are ours.

They are written before the call, so that no machine can exist without one.  A machine that was
refused, or of which a later look shows that it was never made, has ended without having lived.
Where to read next: ``sending`` (the call), ``finishing`` (orders that were never answered).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker_manager.core.errors import CloudError
from worker_manager.core.events import (
    WORKER_STOPPED,
    with_event,
)
from worker_manager.core.lifecycle import OURSELVES, was_never_made
from worker_manager.core.model import Lifecycle, Sighting, State, Worker, WorkerKey
from worker_manager.providers.protocol import Slots
from worker_manager.reconcile.new_workers import new_worker
from worker_manager.reconcile.room import give_back
from worker_manager.reconcile.side_by_side import side_by_side
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker_manager.core.plans import Order, Plan
    from worker_manager.providers.protocol import Launched
    from worker_manager.reconcile.deps import Deps

ACCEPTED = "accepted"
"""In a row's ``identity``, until its creation is over: its cloud took the call."""
NEVER_MADE = "it was never made"


@dataclass(slots=True)
class Announced:
    """Rows written before the call, as they stand: by key, and which of them are new.

    Of the machines in ``made`` the cloud has told something: they exist, or did.
    """

    rows: dict[WorkerKey, Worker]
    written: list[Worker]
    made: frozenset[WorkerKey] = frozenset()

    @property
    def wanted(self) -> frozenset[str]:
        """Names of the machines that may be asked for, again or for the first time."""
        return frozenset(
            key.worker_id
            for key, row in self.rows.items()
            if row.state is State.REQUESTED and key not in self.made
        )

    @property
    def never_made(self) -> int:
        """How many of them were refused by an earlier answer."""
        return sum(
            was_never_made(
                state=row.state,
                launched=row.launched,
                registered=row.registered,
                stopped_by=row.stopped_by,
            )
            for row in self.rows.values()
        )


def announce(
    plan: Plan, order: Order, machines: Sequence[Sighting], lifecycle: Lifecycle, deps: Deps
) -> Announced:
    """Write the rows of an order's machines; those of an earlier send are read instead."""
    now, limit = deps.clock(), deps.timing.launch
    rows = [
        new_worker(plan, order, machine, lifecycle, now, launch_limit=limit) for machine in machines
    ]
    is_first = order.first_sent == order.last_sent
    earlier = {} if is_first else deps.stores.workers.get_many(row.key for row in rows)
    written = deps.stores.workers.put_all_new([row for row in rows if row.key not in earlier])
    known = {**earlier, **{row.key: row for row in written}}
    rest = [row.key for row in rows if row.key not in known]
    planned = {row.key: row.identity for row in rows}
    known |= deps.stores.workers.get_many(rest)
    made = frozenset(key for key, row in known.items() if row.identity != planned[key])
    return Announced(known, list(written), made)


def write_answer(announced: Announced, launched: Launched, deps: Deps) -> list[Worker]:
    """The announced rows as they are after the answer: refused ones have ended.

    Where the order will be sent again, those that were accepted are marked, and not asked for
    again.
    """
    told = {machine.key: machine.identity for machine in launched.machines}
    mark = {ACCEPTED: True} if launched.unanswered is not None else {}

    def write(row: Worker) -> Worker | None:
        if row.key in launched.not_made:
            return _end(row, str(launched.error), deps)
        identity = {**row.identity, **told[row.key], **mark}
        if identity == row.identity:
            return None
        return deps.stores.workers.change(row, identity=identity)

    concerned = [
        row for key, row in announced.rows.items() if key in told or key in launched.not_made
    ]
    changed = side_by_side(write, concerned, parallel=deps.parallel)
    give_back((announced.rows[key] for key in launched.not_made), deps)
    rows = {row.key: row for row in announced.written}
    return list({**rows, **{row.key: row for row in changed if row is not None}}.values())


def end_never_made(pool_id: str, order: Order, deps: Deps) -> bool:
    """End those machines of an unanswered order that its cloud knows nothing of.

    The order keeps room for the others only.  False, and nothing done, if the cloud could not be
    asked; one of which it does not tell counts as made.
    """
    live = [
        worker
        for worker in deps.stores.workers.live(pool_id, order.location)
        if worker.order_id == order.order_id and worker.state is not State.STOPPED
    ]
    asked = [worker.key for worker in live if worker.state is State.REQUESTED]
    rows = list(deps.stores.workers.get_many(asked).values())
    try:
        found = deps.provider.lookup(order.location, rows) if rows else {}
    except CloudError as error:
        logger.warning("a lookup failed", place=order.location, code=error.code)
        return False
    missing = [row for row in rows if found.get(row.key, row) is None]
    ended = [after for row in missing if (after := _end(row, NEVER_MADE, deps)) is not None]
    if isinstance(deps.provider, Slots):
        gone = {row.key for row in missing}
        kept = {worker.key.worker_id for worker in live if worker.key not in gone}
        deps.stores.slots.keep_only(deps.provider_id, order.order_id, kept)
    deps.outbox.send_workers(ended)
    return True


def _end(row: Worker, reason: str, deps: Deps) -> Worker | None:
    """A machine that was not made; the order's error says so to the pool's owner."""
    reason = reason[:500]
    changes = with_event(
        row,
        WORKER_STOPPED,
        at=deps.clock(),
        reason=reason,
        state=State.STOPPED,
        stop_reason=reason,
        stopped_by=OURSELVES,
    )
    return deps.stores.workers.change(row, **changes)
