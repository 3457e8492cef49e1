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
    from worker_manager.core.pulse import PulseMessage


@meter.written
def handle(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Take records of ``pulse``: what the broker does not confirm comes again.

    An event of which no message can be made would fail for ever: it goes to the dead letters.
    """
    deps = pulse()
    messages: dict[str, PulseMessage] = {}
    for record in event["Records"]:
        told = json.loads(record["body"])
        try:
            messages[record["messageId"]] = pulse_message(
                told["detail-type"], told["detail"], namespace=deps.namespace
            )
        except UnfitEventError:
            meter.crashed()
            logger.exception("no message can be made of an event", body=record["body"])
            deps.dead.send([Message(told)])
    confirmed = deps.broker.publish(messages)
    return {
        "batchItemFailures": [
            {"itemIdentifier": name} for name in messages if name not in confirmed
        ]
    }
