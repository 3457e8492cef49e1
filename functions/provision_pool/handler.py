"""Bring one worker pool towards its desired capacity."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.utilities.batch import (
    BatchProcessor,
    EventType,
    process_partial_response,
)

from worker_manager import wiring
from worker_manager.core.messages import ProvisionPool
from worker_manager.reconcile.deadline import Deadline
from worker_manager.reconcile.provision import provision

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
    from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
    from aws_lambda_powertools.utilities.typing import LambdaContext

RESERVE = timedelta(seconds=3)
"""Kept back for writing down what came of the last calls."""


def handle(event: dict[str, Any], context: LambdaContext) -> PartialItemFailureResponse:
    """Take records of ``provision.fifo``; a failed one comes again, and then the next tick."""

    def remaining() -> timedelta:
        return timedelta(milliseconds=context.get_remaining_time_in_millis()) - RESERVE

    def one(record: SQSRecord) -> None:
        message = ProvisionPool.from_json(record.json_body)
        provision(message, wiring.loop(), Deadline(remaining))

    processor = BatchProcessor(EventType.SQS, raise_on_entire_batch_failure=False)
    return process_partial_response(event, one, processor, context)
