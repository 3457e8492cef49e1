"""Every few minutes: how machines are, and what is done about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from worker_manager.metrics import meter
from worker_manager.reconcile.deadline import Deadline
from worker_manager.reconcile.examine import examine
from worker_manager.wiring.examining import examining

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext


@meter.written
def handle(_event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Take the schedule's event."""
    return examine(examining(), Deadline.of(context))
