"""Which failures of AWS are worth another try."""

from __future__ import annotations

import pytest
from botocore.exceptions import (
    ClientError,
    ConnectTimeoutError,
    NoCredentialsError,
    ReadTimeoutError,
)
from pynamodb.exceptions import CancellationReason, PutError, TransactWriteError, VerboseClientError

from worker_manager.store.outages import is_outage


def client_error(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": ""}}, "Operation")


def cancelled(*codes: str) -> TransactWriteError:
    cause = VerboseClientError(
        {"Error": {"Code": "TransactionCanceledException", "Message": ""}},
        "TransactWriteItems",
        cancellation_reasons=[CancellationReason(code) if code else None for code in codes],
    )
    return TransactWriteError("cancelled", cause)


@pytest.mark.parametrize(
    "error",
    [
        client_error("ThrottlingException"),
        client_error("ServiceUnavailable"),
        PutError("slow", client_error("ProvisionedThroughputExceededException")),
        PutError("gone", ReadTimeoutError(endpoint_url="https://example.com")),
        ConnectTimeoutError(endpoint_url="https://example.com"),
        cancelled("", "TransactionConflict"),
        cancelled("ThrottlingError"),
    ],
)
def test_what_passes_by_itself_is_an_outage(error: Exception) -> None:
    assert is_outage(error)


@pytest.mark.parametrize(
    "error",
    [
        client_error("AccessDeniedException"),
        client_error("ValidationException"),
        PutError("wrong", client_error("ConditionalCheckFailedException")),
        PutError("wrong"),
        NoCredentialsError(),
        cancelled("ConditionalCheckFailed"),
        ValueError("ours"),
    ],
)
def test_what_would_fail_again_is_a_fault_of_ours(error: Exception) -> None:
    assert not is_outage(error)
