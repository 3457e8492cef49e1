"""Every few minutes: what a Taskcluster queue knows of workers, into the registry."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from worker_manager.metrics import meter
from worker_manager.reconcile.deadline import Deadline
from worker_manager.telemetry import logger
from worker_manager.wiring import sightings

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext


LONGEST = timedelta(seconds=15)
"""What one look at one task queue may take."""


@meter.written
def handle(_event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Take the schedule's event."""
    deadline = Deadline.of(context)
    report = dict(sightings.backend().refresh(lambda: not deadline.allows(LONGEST)))
    logger.info("observed", report=report)
    return report
