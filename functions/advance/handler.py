"""What must happen at once or after a delay: deletes asked for by the API, resumed pools."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from worker_manager.core.messages import advance_from_json
from worker_manager.metrics import meter
from worker_manager.reconcile.advance import advance
from worker_manager.telemetry import logger
from worker_manager.wiring import loops

if TYPE_CHECKING:
    from worker_manager.core.messages import Resume, Terminate


@meter.written
@loops.when_ready
def handle(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Take records of ``advance``; what fails comes again, and at last to its dead letters."""
    deps = loops.loop()
    messages: dict[str, Terminate | Resume] = {}
    failed = []
    for record in event["Records"]:
        try:
            messages[record["messageId"]] = advance_from_json(json.loads(record["body"]))
        except Exception:
            meter.crashed()
            logger.exception("a message failed, it comes again", body=record["body"])
            failed.append(record["messageId"])
    again = advance(list(messages.values()), deps)
    failed += [name for name, message in messages.items() if message in again]
    return {"batchItemFailures": [{"itemIdentifier": name} for name in failed]}
