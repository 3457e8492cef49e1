"""What follows at once or after a delay: deletes asked for through the API, and resumed pools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker_manager.core.errors import ThrottledError
from worker_manager.core.messages import ProvisionPool, Resume, Terminate
from worker_manager.core.model import State, WorkerKey
from worker_manager.queues import Message
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker_manager.reconcile.deps import Deps


class DeleteFailedError(RuntimeError):
    """The cloud did not take a delete; the message comes again."""


def advance(message: Terminate | Resume, deps: Deps) -> None:
    """Do what one message asks for.  Raises when it should come again."""
    match message:
        case Resume():
            resume(message, deps)
        case Terminate():
            if delete_machines([message], deps):
                raise DeleteFailedError(message.key.worker_id)


def resume(message: Resume, deps: Deps) -> None:
    """Let the pool be planned again, now that its wait is over."""
    provision = ProvisionPool(message.pool_id, message.tick)
    deps.senders["provision"].send(
        [Message(provision.to_json(), group=message.pool_id, dedup=provision.dedup)]
    )


def delete_machines(messages: Sequence[Terminate], deps: Deps) -> frozenset[WorkerKey]:
    """Delete the machines of workers that are stopping; returns those that failed.

    A worker that is no longer stopping needs nothing.  When the cloud asks to wait, the messages
    are sent again with that delay and count as done.
    """
    keys = dict.fromkeys(message.key for message in messages)
    rows = [row for key in keys if (row := deps.stores.workers.get(key)) is not None]
    stopping = [row for row in rows if row.state is State.STOPPING]
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
    for row in stopping:
        if row.key in result.done:
            deps.stores.places.told_to_stop(deps.provider_id, row.location, 1)
    for key, failure in result.failed.items():
        logger.warning("a delete failed", worker=key.worker_id, code=failure.code)
    return frozenset(result.failed)
