"""Compute Engine's errors in our words, whatever their shape."""

from __future__ import annotations

import json
import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
import requests
from google.api_core.exceptions import BadRequest
from google.auth.exceptions import RefreshError, TransportError
from google.cloud.compute_v1.types import Operation

from tests.providers.google.wire import Answer, a_worker, refusal
from worker_manager.core.errors import (
    BadCredentialsError,
    CloudError,
    CloudUnavailableError,
    InvalidLaunchConfigError,
    NotAuthorizedError,
    NotReachedError,
    OutOfCapacityError,
    QuotaExceededError,
    ThrottledError,
)
from worker_manager.providers.google.errors import Told, cloud_errors, judge, operation_error

if TYPE_CHECKING:
    from tests.providers.google.wire import Wire


def untyped(kind: Any, *args: Any, **given: Any) -> Any:
    """One of the SDK's exceptions, whose constructors have no types."""
    return kind(*args, **given)


NO_ROOM = (
    "The zone 'projects/p/zones/us-central1-a' does not have enough resources available to fulfill "
    "the request.  Try a different zone, or try again later."
)


@pytest.mark.parametrize(
    ("code", "message", "expected"),
    [
        ("ZONE_RESOURCE_POOL_EXHAUSTED", NO_ROOM, OutOfCapacityError),
        ("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", "", OutOfCapacityError),
        ("RESOURCE_POOL_EXHAUSTED", "", OutOfCapacityError),
        ("GPU_STOCKOUT", "", OutOfCapacityError),
        ("insufficientCapacity", "", OutOfCapacityError),
        ("SOMETHING_NEW", NO_ROOM, OutOfCapacityError),
        ("UNSUPPORTED_OPERATION", "failed to start due to preemption", OutOfCapacityError),
        ("UNSUPPORTED_OPERATION", "no such thing", InvalidLaunchConfigError),
        ("QUOTA_EXCEEDED", "Quota 'CPUS' exceeded.  Limit: 24.0", QuotaExceededError),
        ("quotaExceeded", "Quota 'CPUS' exceeded", QuotaExceededError),
        ("limitExceeded", "", QuotaExceededError),
        ("IP_SPACE_EXHAUSTED_WITH_DETAILS", "", QuotaExceededError),
        ("quotaExceeded", "Quota exceeded for 'Queries per minute'", ThrottledError),
        ("rateLimitExceeded", "", ThrottledError),
        ("userRateLimitExceeded", "", ThrottledError),
        ("RATE_LIMIT_EXCEEDED", "", ThrottledError),
        ("RESOURCE_OPERATION_RATE_EXCEEDED", "", ThrottledError),
        ("CONCURRENT_OPERATIONS_QUOTA_EXCEEDED", "", ThrottledError),
        ("forbidden", "", NotAuthorizedError),
        ("insufficientPermissions", "", NotAuthorizedError),
        ("IAM_PERMISSION_DENIED", "", NotAuthorizedError),
        ("SERVICE_ACCOUNT_ACCESS_DENIED", "", NotAuthorizedError),
        ("accessNotConfigured", "", BadCredentialsError),
        ("BILLING_DISABLED", "", BadCredentialsError),
        ("invalid", "", InvalidLaunchConfigError),
        ("INVALID_FIELD_VALUE", "", InvalidLaunchConfigError),
        ("required", "", InvalidLaunchConfigError),
        ("badRequest", "", InvalidLaunchConfigError),
        ("notFound", "The resource 'an-image' was not found", InvalidLaunchConfigError),
        ("EXTERNAL_RESOURCE_NOT_FOUND", "", InvalidLaunchConfigError),
        ("RESOURCE_IN_USE_BY_ANOTHER_RESOURCE", "", InvalidLaunchConfigError),
        ("CONDITION_NOT_MET", "Constraint compute.vmExternalIpAccess", InvalidLaunchConfigError),
        ("backendError", "", CloudUnavailableError),
        ("INTERNAL_ERROR", "", CloudUnavailableError),
        ("resourceNotReady", "", CloudUnavailableError),
    ],
)
def test_a_code_is_known_by_its_family(
    code: str, message: str, expected: type[CloudError], caplog: pytest.LogCaptureFixture
) -> None:
    """B50: capacity, quota, permission and trouble of the moment ask for different answers."""
    found = judge([Told(code, message)], status=400, launching=True)

    assert type(found) is expected
    assert found.code == code
    assert not caplog.records


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (400, CloudUnavailableError),
        (401, BadCredentialsError),
        (403, NotAuthorizedError),
        (412, CloudUnavailableError),
        (418, CloudUnavailableError),
        (429, ThrottledError),
        (503, CloudUnavailableError),
    ],
)
def test_a_code_that_nobody_met_is_judged_by_its_status_and_blames_no_launch_config(
    status: int, expected: type[CloudError], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    found = judge([Told("brandNew", "")], status=status, launching=True)

    assert type(found) is expected
    logged = [record.message for record in caplog.records]
    is_told = status in (401, 403, 429, 503)
    assert logged == ([] if is_told else ["unknown Compute Engine error code"])


def test_nothing_but_a_launch_blames_a_launch_config() -> None:
    found = judge([Told("invalid", "bad filter")], status=400, launching=False)

    assert type(found) is CloudUnavailableError


def test_of_several_errors_the_one_that_says_most_counts_and_all_are_told() -> None:
    told = [Told("INTERNAL_ERROR", "oops"), Told("QUOTA_EXCEEDED", "Quota 'CPUS' exceeded")]
    found = judge(told, status=0, launching=True)

    assert type(found) is QuotaExceededError
    assert found.code == "QUOTA_EXCEEDED"
    assert str(found) == "INTERNAL_ERROR: oops; QUOTA_EXCEEDED: Quota 'CPUS' exceeded"


def refused(wire: Wire, answer: Answer) -> CloudError:
    """What a read of a machine raises when it is answered like this."""
    wire.says(answer)
    with pytest.raises(CloudError) as caught:
        wire.provider().lookup(a_worker().location, [a_worker()])
    return caught.value


ERROR_INFO = {
    "code": 403,
    "message": "Quota exceeded",
    "errors": [{"reason": "forbidden", "message": "Quota exceeded"}],
    "status": "PERMISSION_DENIED",
    "details": [
        {
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": "RATE_LIMIT_EXCEEDED",
            "domain": "googleapis.com",
        }
    ],
}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (refusal(403, "quotaExceeded"), QuotaExceededError),
        (refusal(403, "rateLimitExceeded"), ThrottledError),
        (refusal(401, "required"), BadCredentialsError),
        (Answer(403, {"error": {"code": 403, "message": "no"}}), NotAuthorizedError),
        (Answer(403, {"error": ERROR_INFO}), ThrottledError),
        (Answer(503, "<html>Service unavailable</html>"), CloudUnavailableError),
        (Answer(500, {"error": "a text"}), CloudUnavailableError),
        (Answer(200, "not JSON"), CloudUnavailableError),
        (Answer(0, ""), CloudUnavailableError),
        # A project that is not found proves nothing about a machine.
        (
            refusal(404, "notFound", "The resource 'projects/p' was not found"),
            CloudUnavailableError,
        ),
    ],
)
def test_a_refusal_of_any_shape_is_understood(
    wire: Wire, answer: Answer, expected: type[CloudError]
) -> None:
    """B33: the immediate shape, the nested one, and none at all."""
    found = refused(wire, answer)

    assert type(found) is expected
    assert wire.url not in str(found)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, 20),
        ({"Retry-After": "17"}, 17),
        ({"Retry-After": "99999"}, 300),
        ({"Retry-After": "x"}, 20),
    ],
)
def test_the_wait_that_the_cloud_asks_for_is_kept_within_bounds(
    wire: Wire, headers: dict[str, str], expected: int
) -> None:
    found = refused(wire, refusal(429, "rateLimitExceeded", **headers))

    assert isinstance(found, ThrottledError)
    assert found.retry_after == timedelta(seconds=expected)


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ({"status": "RUNNING"}, None),
        ({"status": "DONE"}, None),
        (
            {"error": {"errors": [{"code": "ZONE_RESOURCE_POOL_EXHAUSTED", "message": "full"}]}},
            OutOfCapacityError,
        ),
        (
            {
                "httpErrorStatusCode": 403,
                "httpErrorMessage": "FORBIDDEN",
                "error": {
                    "errors": [{"code": "QUOTA_EXCEEDED", "message": "Quota 'CPUS' exceeded"}]
                },
            },
            QuotaExceededError,
        ),
        ({"httpErrorStatusCode": 403, "httpErrorMessage": "FORBIDDEN"}, NotAuthorizedError),
        ({"httpErrorStatusCode": 409, "httpErrorMessage": "CONFLICT"}, CloudUnavailableError),
    ],
)
def test_the_error_of_an_operation_is_found_wherever_it_stands(
    operation: dict[str, Any], expected: type[CloudError] | None
) -> None:
    """B33: an operation may have a list of errors, or nothing but a status."""
    found = operation_error(Operation.from_json(json.dumps(operation)))

    assert (None if found is None else type(found)) is expected


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (requests.ConnectTimeout("slow"), NotReachedError),
        (requests.exceptions.ProxyError("no"), NotReachedError),
        (requests.ReadTimeout("slow"), CloudUnavailableError),
        (requests.ConnectionError("aborted"), CloudUnavailableError),
        (requests.exceptions.ChunkedEncodingError("cut"), CloudUnavailableError),
        (untyped(RefreshError, "invalid_grant: Invalid JWT Signature."), BadCredentialsError),
        (untyped(TransportError, "no token server"), NotReachedError),
        (ZeroDivisionError("whatever"), CloudUnavailableError),
    ],
)
def test_what_is_raised_without_an_answer_is_understood(
    raised: Exception, expected: type[CloudError]
) -> None:
    with pytest.raises(CloudError) as caught, cloud_errors():
        raise raised
    assert type(caught.value) is expected
    assert caught.value.code == type(raised).__name__


def test_where_nobody_listens_nothing_was_sent(wire: Wire) -> None:
    provider = wire.provider()
    provider._clients.base = "http://127.0.0.1:1/compute/v1"
    with pytest.raises(NotReachedError):
        list(provider.instances(a_worker().location))


def test_what_was_sent_is_not_repeated_in_messages() -> None:
    refusal = untyped(BadRequest, "Invalid value 's3cret'", errors=[{"reason": "invalid"}])
    with (
        pytest.raises(InvalidLaunchConfigError) as caught,
        cloud_errors(launching=True, hide="s3cret"),
    ):
        raise refusal
    assert "s3cret" not in str(caught.value)
