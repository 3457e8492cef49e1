"""Following what a cloud accepted until the machine exists, or does not.

A cloud that answers "accepted" tells later what came of it.  The launch sends a delayed message,
and each look that finds something still in the making sends the next one.  A creation that failed
becomes an error of its launch config, counted and told to all pools as a refused call is (B33); a
worker that registered outlives any doubt about its creation (B32).  If a message is lost, lists
tell the same, only later and without the reason.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from worker_manager.core.errors import CloudError, ThrottledError
from worker_manager.core.lifecycle import Gone, Stop
from worker_manager.core.messages import Follow
from worker_manager.core.model import State, Worker
from worker_manager.providers.protocol import Failed, Made, Pending, Slots, Step, Stepwise
from worker_manager.queues import Message
from worker_manager.reconcile.healing import learn_late, learn_made
from worker_manager.reconcile.room import give_back
from worker_manager.reconcile.settling import Settling, terminate
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from worker_manager.core.model import Json, WorkerKey
    from worker_manager.core.plans import Order
    from worker_manager.reconcile.deps import Deps
    from worker_manager.reconcile.sending import Outcome

UNANSWERED = timedelta(seconds=30)
"""Until the next look at a machine of which the cloud told nothing."""
SOON = timedelta(seconds=5)
LONGEST = timedelta(hours=3)
"""After which nobody follows any more: the launch is overdue by then, and leftovers are swept."""


def follow_creation(outcomes: Iterable[Outcome], deps: Deps) -> None:
    """Have the machines that were accepted looked at again, an order a message."""
    messages = []
    for outcome in outcomes:
        if outcome.follow_after is not None and outcome.followed:
            order = outcome.order
            follow = Follow(
                order.location, tuple(outcome.followed), order.order_id, since=deps.clock()
            )
            messages.append(_message(follow, outcome.follow_after))
    if messages:
        deps.senders["advance"].send(messages)


def follow_orders(pool_id: str, orders: Iterable[Order], deps: Deps) -> None:
    """Have those machines looked at whose order ended without an answer, but that there are."""
    by_id = {order.order_id: order for order in orders}
    if not by_id or not isinstance(deps.provider, Stepwise):
        return
    found: dict[str, list[WorkerKey]] = {}
    for location in {order.location for order in by_id.values()}:
        for row in deps.stores.workers.live(pool_id, location):
            if row.order_id in by_id and row.state is State.REQUESTED:
                found.setdefault(row.order_id, []).append(row.key)
    now = deps.clock()
    deps.senders["advance"].send(
        _message(Follow(by_id[name].location, tuple(keys), name, since=now), SOON)
        for name, keys in found.items()
    )


def follow(message: Follow, deps: Deps) -> None:
    """Look once at these machines, write down what came of them, and come back for the others.

    Raises whatever keeps the table from being read or written: the message comes again.
    """
    provider = deps.provider
    if not isinstance(provider, Stepwise):
        return
    rows = [
        row for row in deps.stores.workers.get_many(message.keys).values() if _concerns(row, deps)
    ]
    if not rows:
        return
    try:
        steps = provider.follow(message.location, rows)
    except CloudError as error:
        wait = error.retry_after if isinstance(error, ThrottledError) else UNANSWERED
        logger.warning("creations were not followed", order=message.order_id, code=error.code)
        look_again_later(message, [row.key for row in rows], wait, deps)
        return
    settle_steps(rows, steps, message, deps)


@dataclass(slots=True)
class _Look:
    """What one look at an order's machines came to.

    ``ended`` are workers whose creation is over, ``failures`` those that this look ended.
    """

    waiting: list[WorkerKey] = field(default_factory=list)
    wait: timedelta | None = None
    made: list[Worker] = field(default_factory=list)
    ended: list[Worker] = field(default_factory=list)
    failures: list[tuple[Worker, CloudError]] = field(default_factory=list)

    def again(self, key: WorkerKey, after: timedelta) -> None:
        """Look at this one again, with the others that wait, as soon as the first asks for it."""
        self.waiting.append(key)
        self.wait = after if self.wait is None else min(self.wait, after)


def settle_steps(
    rows: Iterable[Worker], steps: Mapping[WorkerKey, Step], message: Follow, deps: Deps
) -> None:
    """Write down how far each creation is."""
    look, settling = _Look(), Settling(deps, deps.clock())
    for row in rows:
        match steps.get(row.key):
            case None:
                look.again(row.key, UNANSWERED)
            case Pending(after):
                look.again(row.key, after)
            case Made(identity):
                _write(row, identity, look, deps)
                if row.state in (State.REQUESTED, State.RUNNING):
                    look.made.append(row)
                look.ended.append(row)
            case Failed() as step:
                _fail(row, step, settling, look)
                look.ended.append(row)
    give_back(look.ended, deps)
    learn_made(look.made, deps)
    learn_late(look.failures, deps)
    terminate(message.location, settling.to_terminate, deps)
    settling.tell()
    if look.wait is not None:
        look_again_later(message, look.waiting, look.wait, deps)


def _write(row: Worker, identity: Json, look: _Look, deps: Deps) -> None:
    """Keep who a machine is; one that somebody else is at, as it registers, soon once more."""
    if identity != row.identity and deps.stores.workers.change(row, identity=identity) is None:
        look.again(row.key, SOON)


def _fail(row: Worker, step: Failed, settling: Settling, look: _Look) -> None:
    """End a worker whose machine was not made, unless it is there and registered, or told to go."""
    error = step.error
    if row.state is not State.REQUESTED:
        logger.warning(
            "a creation failed of a worker that is beyond it",
            pool=row.key.pool_id,
            worker=row.key.worker_id,
            state=row.state,
            code=error.code,
        )
        return
    ended = Gone if step.is_gone else Stop
    if settling.write(row, ended(str(error), error.kind, code=error.code)):
        look.failures.append((row, error))


def _concerns(row: Worker, deps: Deps) -> bool:
    """Whether there is anything to find out about a worker, or to tidy up after it."""
    if row.state in (State.REQUESTED, State.RUNNING):
        return True
    return isinstance(deps.provider, Slots) and deps.provider.slots_of(row) is not None


def look_again_later(
    message: Follow, keys: Iterable[WorkerKey], wait: timedelta, deps: Deps
) -> None:
    """Have these machines looked at again, unless that has gone on for too long."""
    if deps.clock() - message.since > LONGEST:
        logger.error("creations are no longer followed", order=message.order_id)
        return
    again = Follow(message.location, tuple(keys), message.order_id, message.since)
    deps.senders["advance"].send([_message(again, wait)])


def _message(follow: Follow, wait: timedelta) -> Message:
    return Message(follow.to_json(), delay=max(1, min(900, round(wait.total_seconds()))))
