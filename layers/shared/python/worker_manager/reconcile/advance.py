"""What follows at once or after a delay.

Deletes asked for through the API, pools whose wait is over, creations that take their time,
reboots.  Where to read next: ``following``, ``rebooting``.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from worker_manager.core.errors import ThrottledError
from worker_manager.core.messages import (
    Advance,
    Follow,
    ProvisionPool,
    Reboot,
    Resume,
    Terminate,
)
from worker_manager.core.model import State, WorkerKey
from worker_manager.queues import Message
from worker_manager.reconcile.deadline import UNLIMITED, Deadline
from worker_manager.reconcile.following import SOON, follow, look_again_later
from worker_manager.reconcile.rebooting import reboot
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from worker_manager.reconcile.deps import Deps


def advance(
    messages: Sequence[Advance], deps: Deps, deadline: Deadline = UNLIMITED
) -> frozenset[Advance]:
    """Do what the messages ask for; returns those that failed and should come again.

    All machines are deleted with one call; no message's trouble stops the others.
    """
    deletes = [message for message in messages if isinstance(message, Terminate)]
    failed: set[Advance] = set()
    try:
        keys = delete_machines({message.key for message in deletes}, deps)
        failed |= {message for message in deletes if message.key in keys}
    except Exception:
        logger.exception("deletes failed, they come again", count=len(deletes))
        failed |= set(deletes)
    for message in messages:
        match message:
            case Resume() if not _resumed(message, deps):
                failed.add(message)
            case Follow() if not _followed(message, deps, deadline):
                failed.add(message)
    return frozenset(failed) | _rebooted(messages, deps, deadline)


def _rebooted(messages: Sequence[Advance], deps: Deps, deadline: Deadline) -> frozenset[Advance]:
    """Reboot machines; the messages of those that should come again."""
    reboots = [message for message in messages if isinstance(message, Reboot)]
    try:
        return frozenset(reboot(reboots, deps, deadline))
    except Exception:
        logger.exception("reboots failed, they come again", count=len(reboots))
        return frozenset(reboots)


def _followed(message: Follow, deps: Deps, deadline: Deadline) -> bool:
    """Look at how creations go on; whether that could be written down.

    What the time left does not allow comes as a message of its own: one cloud that hangs must not
    make a message fail again and again, that others stand beside.
    """
    try:
        if deadline.allows(deps.call_limit):
            follow(message, deps)
        else:
            look_again_later(message, message.keys, SOON, deps)
    except Exception:
        logger.exception("creations were not followed, they come again", order=message.order_id)
        return False
    return True


def _resumed(message: Resume, deps: Deps) -> bool:
    """Let the pool be planned again, now that its wait is over; whether that was asked for."""
    provision = ProvisionPool(message.pool_id, message.tick)
    try:
        deps.senders["provision"].send(
            [Message(provision.to_json(), group=message.pool_id, dedup=provision.dedup)]
        )
    except Exception:
        logger.exception("a pool was not resumed, it comes again", pool=message.pool_id)
        return False
    return True


def delete_machines(keys: Iterable[WorkerKey], deps: Deps) -> frozenset[WorkerKey]:
    """Delete the machines of workers that are stopping; returns those that failed.

    A worker that is no longer stopping needs nothing.  When the cloud asks to wait, the messages
    are sent again with that delay and count as done.
    """
    rows = deps.stores.workers.get_many(keys)
    stopping = [row for row in rows.values() if row.state is State.STOPPING]
    if not stopping:
        return frozenset()
    try:
        result = deps.provider.terminate(stopping)
    except ThrottledError as error:
        delay = max(1, int(error.retry_after.total_seconds()))
        deps.senders["advance"].send(
            Message(Terminate(row.key).to_json(), delay=delay) for row in stopping
        )
        return frozenset()
    told = Counter(row.location for row in stopping if row.key in result.done)
    for location, count in told.items():
        deps.stores.places.told_to_stop(deps.provider_id, location, count)
    for key, failure in result.failed.items():
        logger.warning("a delete failed", worker=key.worker_id, code=failure.code)
    return frozenset(result.failed)
