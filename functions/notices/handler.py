"""Act on what EC2 tells of single machines: that they stopped, or are about to be taken back."""

from __future__ import annotations

from typing import Any

from worker_manager.metrics import meter
from worker_manager.providers.aws.notices import read_notice
from worker_manager.queues import come_again, read_records
from worker_manager.reconcile.notices import heed
from worker_manager.wiring import loops


@meter.written
@loops.when_ready
def handle(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Take records of ``notices``; what fails comes again, and at last to its dead letters."""
    deps = loops.loop()
    notices, failed = read_records(event, read_notice)
    again = heed(list(notices.values()), deps)
    failed += [name for name, notice in notices.items() if notice.notice_id in again]
    return come_again(failed)
