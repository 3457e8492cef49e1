"""Do what runs of actions ask for; each minute, look after all that are not over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from worker_manager.core.messages import Act
from worker_manager.metrics import meter
from worker_manager.queues import come_again, read_records
from worker_manager.reconcile.act import act, sweep_runs
from worker_manager.reconcile.deadline import Deadline
from worker_manager.wiring import acting

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext


@meter.written
def handle(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Take the schedule's event, or records of the queue ``actions``."""
    deps = acting.acting()
    if "Records" not in event:
        return dict(sweep_runs(deps, Deadline.of(context)))
    messages, failed = read_records(event, Act.from_json)
    return come_again([*failed, *act(messages, deps)])
