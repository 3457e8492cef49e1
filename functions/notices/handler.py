"""Act on what EC2 tells of single machines: that they stopped, or are about to be taken back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from worker_manager.metrics import meter
from worker_manager.providers.aws.notices import read_notice
from worker_manager.reconcile.notices import heed
from worker_manager.telemetry import logger
from worker_manager.wiring import loops

if TYPE_CHECKING:
    from worker_manager.core.notices import Notice


@meter.written
@loops.when_ready
def handle(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Take records of ``notices``; what fails comes again, and at last to its dead letters."""
    deps = loops.loop()
    notices: dict[str, Notice] = {}
    failed = []
    for record in event["Records"]:
        try:
            notices[record["messageId"]] = read_notice(json.loads(record["body"]))
        except Exception:
            meter.crashed()
            logger.exception("a notice failed, it comes again", body=record["body"])
            failed.append(record["messageId"])
    again = heed(list(notices.values()), deps)
    failed += [name for name, notice in notices.items() if notice.notice_id in again]
    return {"batchItemFailures": [{"itemIdentifier": name} for name in failed]}
