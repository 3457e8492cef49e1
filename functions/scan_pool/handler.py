"""Settle one pool's workers in one location against a complete list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.utilities.batch import (
    BatchProcessor,
    EventType,
    process_partial_response,
)

from worker_manager import wiring
from worker_manager.reconcile.scan import read, scan

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
    from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
    from aws_lambda_powertools.utilities.typing import LambdaContext


def handle(event: dict[str, Any], context: LambdaContext) -> PartialItemFailureResponse:
    """Take records of ``scan.fifo``; a failed one comes again, and then the next list."""

    def one(record: SQSRecord) -> None:
        deps = wiring.loop()
        message = read(record.json_body, deps)
        if message is not None:
            scan(message, deps)

    processor = BatchProcessor(EventType.SQS, raise_on_entire_batch_failure=False)
    return process_partial_response(event, one, processor, context)
