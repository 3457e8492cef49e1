"""Tell Taskcluster's other services, over AMQP, what our bus tells everybody."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from worker_manager.core.pulse import UnfitEventError, pulse_message
from worker_manager.metrics import meter
from worker_manager.queues import Message
from worker_manager.telemetry import logger
from worker_manager.wiring.pulse import pulse

if TYPE_CHECKING:
    from worker_manager.core.model import Json
    from worker_manager.core.pulse import PulseMessage
    from worker_manager.wiring.pulse import Pulse


@meter.written
def handle(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Take records of ``pulse``: what the broker does not confirm comes again.

    An event of which no message can be made would fail for ever: it goes to the dead letters.
    Whatever else is wrong with a record is its own trouble, and no other's.
    """
    deps = pulse()
    messages: dict[str, PulseMessage] = {}
    failed = []
    for record in event["Records"]:
        try:
            message = _message(json.loads(record["body"]), deps)
        except Exception:
            meter.crashed()
            logger.exception("an event failed, it comes again", body=record["body"])
            failed.append(record["messageId"])
            continue
        if message is not None:
            messages[record["messageId"]] = message
    confirmed = deps.broker.publish(messages)
    failed += [name for name in messages if name not in confirmed]
    return {"batchItemFailures": [{"itemIdentifier": name} for name in failed]}


def _message(told: Json, deps: Pulse) -> PulseMessage | None:
    """The message of an event; ``None`` for one that is put to the dead letters."""
    try:
        return pulse_message(told["detail-type"], told["detail"], namespace=deps.namespace)
    except UnfitEventError:
        meter.crashed()
        logger.exception("no message can be made of an event", body=told)
        deps.dead.send([Message(told)])
        return None
