"""Tell Taskcluster's other services, over AMQP, what our bus tells everybody."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from worker_manager.core.pulse import pulse_message
from worker_manager.telemetry import logger
from worker_manager.wiring.pulse import pulse

if TYPE_CHECKING:
    from worker_manager.core.pulse import PulseMessage


def handle(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Take records of ``pulse``; what fails comes again, and at last to its dead letters."""
    deps = pulse()
    messages: dict[str, PulseMessage] = {}
    for record in event["Records"]:
        try:
            told = json.loads(record["body"])
            messages[record["messageId"]] = pulse_message(
                told["detail-type"], told["detail"], namespace=deps.namespace
            )
        except Exception:
            logger.exception("a message failed, it comes again", body=record["body"])
    confirmed = deps.broker.publish(messages)
    names = [record["messageId"] for record in event["Records"]]
    return {
        "batchItemFailures": [{"itemIdentifier": name} for name in names if name not in confirmed]
    }
