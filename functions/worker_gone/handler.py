"""A worker has ended, our bus says: what it was working on is somebody else's to do, at once."""

from __future__ import annotations

from typing import Any

from worker_manager.metrics import meter
from worker_manager.queues import come_again, read_records
from worker_manager.reconcile.worker_ends import end_workers, read_end
from worker_manager.wiring import sightings


@meter.written
def handle(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Take records of ``worker-gone``; what fails comes again, and at last to its dead letters."""
    deps = sightings.worker_ends()
    ends, failed = read_records(event, read_end)
    return come_again([*failed, *end_workers(ends, deps)])
