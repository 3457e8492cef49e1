"""What must happen at once or after a delay: deletes asked for by the API, resumed pools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.utilities.batch import (
    BatchProcessor,
    EventType,
    process_partial_response,
)

from worker_manager.core.messages import advance_from_json
from worker_manager.reconcile.advance import advance
from worker_manager.telemetry import logger
from worker_manager.wiring import loops

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
    from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
    from aws_lambda_powertools.utilities.typing import LambdaContext


def handle(event: dict[str, Any], context: LambdaContext) -> PartialItemFailureResponse:
    """Take records of ``advance``; what fails comes again, and at last to its dead letters."""
    deps = loops.loop()

    def one(record: SQSRecord) -> None:
        try:
            advance(advance_from_json(record.json_body), deps)
        except Exception:
            logger.exception("a message failed, it comes again", body=record.body)
            raise

    processor = BatchProcessor(EventType.SQS, raise_on_entire_batch_failure=False)
    return process_partial_response(event, one, processor, context)
