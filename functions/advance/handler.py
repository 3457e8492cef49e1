"""What must happen at once or after a delay: deletes asked for by the API, resumed pools, looks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from worker_manager.core.messages import advance_from_json
from worker_manager.metrics import meter
from worker_manager.queues import come_again, read_records
from worker_manager.reconcile.advance import advance
from worker_manager.reconcile.deadline import Deadline
from worker_manager.wiring import loops

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext


@meter.written
@loops.when_ready
def handle(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Take records of ``advance``; what fails comes again, and at last to its dead letters."""
    deps = loops.loop()
    messages, failed = read_records(event, advance_from_json)
    again = advance(list(messages.values()), deps, Deadline.of(context))
    failed += [name for name, message in messages.items() if message in again]
    return come_again(failed)
