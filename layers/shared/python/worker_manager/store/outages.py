"""Telling an outage of AWS from a fault of ours: only the first is worth the caller's retry."""

from __future__ import annotations

from botocore.exceptions import ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as UnreachableError
from pynamodb.exceptions import PynamoDBException

TRANSIENT = frozenset(
    {
        "InternalError",
        "InternalFailure",
        "InternalServerError",
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
        return error.cause is not None and is_outage(error.cause)
    if isinstance(error, ClientError):
        return error.response.get("Error", {}).get("Code") in TRANSIENT
    return isinstance(error, HTTPClientError | UnreachableError)
