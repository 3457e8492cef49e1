"""Telling an outage of AWS from a fault of ours: only the first is worth the caller's retry."""

from __future__ import annotations

from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError
from pynamodb.exceptions import PynamoDBException

TRANSIENT = frozenset(
    {
        "InternalError",
        "InternalFailure",
        "InternalServerError",
        "LimitExceededException",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestTimeout",
        "ServiceUnavailable",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
        "TransactionConflictException",
        "TransactionInProgressException",
        "503",
        "500",
    }
)
"""Codes of DynamoDB and SQS that say: nothing is wrong with what you asked, ask again."""

_CANCELLED_FOR = ("TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded")


def is_outage(error: BaseException) -> bool:
    """Whether ``error`` says that a table or queue was too busy or could not be reached."""
    if isinstance(error, PynamoDBException):
        reasons = getattr(error, "cancellation_reasons", [])
        if any(reason and reason.code in _CANCELLED_FOR for reason in reasons):
            return True
        return error.cause_response_code in TRANSIENT or _is_unreachable(error.cause)
    if isinstance(error, ClientError):
        return error.response.get("Error", {}).get("Code") in TRANSIENT
    return _is_unreachable(error)


def _is_unreachable(error: BaseException | None) -> bool:
    return isinstance(error, HTTPClientError) or (
        isinstance(error, BotoCoreError) and "Connect" in type(error).__name__
    )
