"""Our events as Taskcluster's other services hear them over AMQP ("Pulse").

Each event has an exchange of its own, a routing key of eight words, and a message with exactly the
reference's fields: its schemas are closed, so what we know beyond them (reasons, ids of events and
decisions) is left out, but for reasons on exchanges that the reference does not have.  Its queue
listens to ``worker-stopped`` and ``worker-removed``, and gives such a worker's tasks to others at
once.  Where to read next: ``worker_manager.pulse`` (the way to the broker).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker_manager.core import events
from worker_manager.core.ids import is_identifier

if TYPE_CHECKING:
    from collections.abc import Mapping

    from worker_manager.core.model import Json

ABSENT = "_"
"""A word of a routing key that has nothing to say."""

WORDS = ("providerId", "provisionerId", "workerType", "workerGroup", "workerId", "launchConfigId")
"""The words of a routing key between ``primary`` and the reserved last one."""


@dataclass(frozen=True, slots=True)
class Fields:
    """What a message must and may have.  Without ``is_routed`` its routing key says nothing."""

    required: frozenset[str]
    optional: frozenset[str] = frozenset()
    is_routed: bool = True


@dataclass(frozen=True, slots=True)
class PulseMessage:
    """One message: ``exchange`` in full; ``event_id`` is the same for a repeat."""

    exchange: str
    routing_key: str
    body: Json
    event_id: str | None = None


class UnfitEventError(ValueError):
    """An event of which no message can be made, whenever it is tried; the message says why."""


_POOL = frozenset({"workerPoolId", "providerId"})
_WORKER = _POOL | {"workerGroup", "workerId", "capacity", "timestamp"}
_ERROR = _POOL | {"errorId", "kind", "title", "timestamp"}
_LAUNCH_CONFIG = _POOL | {"launchConfigId"}
_CONFIG_ID = frozenset({"launchConfigId"})
_ERROR_OF = frozenset({"workerGroup", "workerId", "launchConfigId"})
_WHY = frozenset({"reason"})
_HELD = frozenset({"workerPoolId", "workerGroup", "workerId", "timestamp"})
_HELD_BY = frozenset({"quarantineUntil", "clientId"})
_CLOSED = frozenset({"workerPoolId", "timestamp"})
_CLOSED_BY = frozenset({"closedUntil", "clientId"})
_UNTIL = frozenset({"timestamp", "until"})
_RUN = frozenset({"runId", "action", "provisionerId", "requestedBy", "reason", "timestamp"})
_MACHINES = frozenset({"workerPoolId", "timestamp", "machines", "bad", "reason"})
_RUN_OF = frozenset({"workerPoolId", "workerGroup", "workerId"})

SCHEMAS: Mapping[str, Fields] = {
    events.WORKER_REQUESTED: Fields(_WORKER, _CONFIG_ID),
    events.WORKER_RUNNING: Fields(_WORKER, _CONFIG_ID),
    events.WORKER_STOPPED: Fields(_WORKER, _CONFIG_ID),
    events.WORKER_REMOVED: Fields(_WORKER | _WHY, _CONFIG_ID),
    events.POOL_CREATED: Fields(_POOL, is_routed=False),
    events.POOL_UPDATED: Fields(_POOL, frozenset({"previousProviderId"}), is_routed=False),
    events.POOL_ERROR: Fields(_ERROR, _ERROR_OF),
    events.LAUNCH_CONFIG_CREATED: Fields(_LAUNCH_CONFIG),
    events.LAUNCH_CONFIG_UPDATED: Fields(_LAUNCH_CONFIG),
    events.LAUNCH_CONFIG_ARCHIVED: Fields(_LAUNCH_CONFIG),
    # The reference has none of these.
    events.WORKER_ERROR: Fields(_ERROR | _WHY | {"workerGroup", "workerId"}, _CONFIG_ID),
    events.WORKER_STOPPING: Fields(_WORKER | _WHY, _CONFIG_ID),
    events.LAUNCH_CONFIG_PAUSED: Fields(_LAUNCH_CONFIG | _WHY, _UNTIL),
    events.LAUNCH_CONFIG_RESUMED: Fields(_LAUNCH_CONFIG | _WHY, _UNTIL),
    events.WORKER_QUARANTINED: Fields(_HELD | _WHY, _HELD_BY),
    events.WORKER_RELEASED: Fields(_HELD | _WHY, _HELD_BY),
    events.TASK_QUEUE_CLOSED: Fields(_CLOSED | _WHY, _CLOSED_BY),
    events.TASK_QUEUE_OPENED: Fields(_CLOSED | _WHY, _CLOSED_BY),
    events.ACTION_REQUESTED: Fields(_RUN, _RUN_OF),
    events.ACTION_RESOLVED: Fields(_RUN | {"state", "message"}, _RUN_OF),
    events.MACHINE_VERDICT: Fields(_HELD | _WHY | {"verdict", "previous"}),
    events.MACHINES_HELD: Fields(_MACHINES),
    events.MACHINES_FREED: Fields(_MACHINES),
}
"""Event name → fields of its message, in the order of the reference's documentation."""


def pulse_message(name: str, detail: Json, *, namespace: str) -> PulseMessage:
    """The message that tells of an event of our bus.

    ``namespace`` is the part of exchange names that says whose they are.  Raises
    ``UnfitEventError`` for an event that no schema knows, or that lacks what its schema requires.
    """
    fields = SCHEMAS.get(name)
    if fields is None:
        raise UnfitEventError(f"no exchange is known for {name!r}")
    body = {
        key: value
        for key, value in detail.items()
        if key in fields.required | fields.optional and value is not None
    }
    if missing := sorted(fields.required - body.keys()):
        raise UnfitEventError(f"{name} lacks {', '.join(missing)}")
    return PulseMessage(
        exchange=f"exchange/{namespace}/v1/{name}",
        routing_key=_routing_key(body if fields.is_routed else {}),
        body=body,
        event_id=detail.get("eventId"),
    )


def _routing_key(body: Json) -> str:
    """``primary``, six words from the message, and one that is reserved."""
    provisioner, _, worker_type = body.get("workerPoolId", "").partition("/")
    known = {**body, "provisionerId": provisioner, "workerType": worker_type}
    words = [str(known.get(name) or ABSENT) for name in WORDS]
    for name, word in zip(WORDS, words, strict=True):
        if not is_identifier(word):
            raise UnfitEventError(f"{name} {word!r} is no word of a routing key")
    return ".".join(("primary", *words, ABSENT))
