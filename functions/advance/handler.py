"""What must happen at once or after a delay: deletes asked for by the API, resumed pools."""

from __future__ import annotations

from typing import Any

from worker_manager.core.messages import advance_from_json
from worker_manager.metrics import meter
from worker_manager.queues import come_again, read_records
from worker_manager.reconcile.advance import advance
from worker_manager.wiring import loops


@meter.written
@loops.when_ready
def handle(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Take records of ``advance``; what fails comes again, and at last to its dead letters."""
    deps = loops.loop()
    messages, failed = read_records(event, advance_from_json)
    again = advance(list(messages.values()), deps)
    failed += [name for name, message in messages.items() if message in again]
    return come_again(failed)
