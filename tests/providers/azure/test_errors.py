"""Azure's errors in our words."""

from __future__ import annotations

import json
import logging
from datetime import timedelta
from typing import Any

import pytest
from azure.core import exceptions as sdk

from worker_manager.core.errors import (
    BadCredentialsError,
    CloudError,
    CloudUnavailableError,
    InvalidLaunchConfigError,
    NoRoomError,
    NotAuthorizedError,
    NotReachedError,
    OutOfCapacityError,
    QuotaExceededError,
    ThrottledError,
)
from worker_manager.providers.azure.errors import (
    cloud_errors,
    failure,
    is_missing,
    says_little,
    unless_missing,
)


class Response:
    """An HTTP answer, as the SDK's errors hold it."""

    reason = "reason"

    def __init__(self, status: int, body: Any, **headers: str) -> None:
        self.status_code = status
        self._text = body if isinstance(body, str) else json.dumps(body)
        self.headers = {name.replace("_", "-"): text for name, text in headers.items()}

    def text(self, encoding: str | None = None) -> str:
        return self._text


def answered(status: int, body: Any, **headers: str) -> sdk.HttpResponseError:
    return sdk.HttpResponseError(response=Response(status, body, **headers))  # type: ignore[arg-type]


def said(code: str, message: str = "no", **more: Any) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, **more}}


def ours(error: Exception, *, launching: bool = True, hide: tuple[str, ...] = ()) -> CloudError:
    with pytest.raises(CloudError) as caught, cloud_errors(launching=launching, hide=hide):
        raise error
    return caught.value


QUOTA = "Operation could not be completed as it results in exceeding approved Total Cores quota."
SLOW = "The server rejected the request because too many requests have been received."


@pytest.mark.parametrize(
    ("status", "code", "message", "kind"),
    [
        (409, "SkuNotAvailable", "", OutOfCapacityError),
        (409, "AllocationFailed", "", OutOfCapacityError),
        (409, "ZonalAllocationFailed", "", OutOfCapacityError),
        (409, "OverconstrainedAllocationRequest", "", OutOfCapacityError),
        (409, "OverconstrainedZonalAllocationRequest", "", OutOfCapacityError),
        (409, "CapacityReservationFull", "", OutOfCapacityError),
        (409, "QuotaExceeded", "", QuotaExceededError),
        (409, "OperationNotAllowed", QUOTA, QuotaExceededError),
        (400, "PublicIPCountLimitReached", "", QuotaExceededError),
        (400, "SubnetIsFull", "", QuotaExceededError),
        (429, "OperationNotAllowed", SLOW, ThrottledError),
        (409, "OperationNotAllowed", SLOW, ThrottledError),
        (429, "AnythingAtAll", "", ThrottledError),
        (409, "OperationPreempted", "", ThrottledError),
        (409, "DeploymentQuotaExceeded", "", NoRoomError),
        (403, "AuthorizationFailed", "", NotAuthorizedError),
        (403, "LinkedAuthorizationFailed", "", NotAuthorizedError),
        (403, "SomethingForbidden", "", NotAuthorizedError),
        (401, "ExpiredAuthenticationToken", "", BadCredentialsError),
        (401, "InvalidAuthenticationTokenTenant", "", BadCredentialsError),
        (404, "SubscriptionNotFound", "", BadCredentialsError),
        (400, "InvalidParameter", "", InvalidLaunchConfigError),
        (400, "InvalidTemplate", "", InvalidLaunchConfigError),
        (400, "BadRequest", "", InvalidLaunchConfigError),
        (404, "ResourceNotFound", "", InvalidLaunchConfigError),
        (404, "ImageNotFound", "", InvalidLaunchConfigError),
        (400, "VMSizeNotSupported", "", InvalidLaunchConfigError),
        (403, "RequestDisallowedByPolicy", "", InvalidLaunchConfigError),
        (409, "OperationNotAllowed", "The VM is being deleted.", CloudUnavailableError),
        (409, "PropertyChangeNotAllowed", "", CloudUnavailableError),
        (400, "NicInUse", "", CloudUnavailableError),
        (409, "OSProvisioningTimedOut", "", CloudUnavailableError),
        (500, "InternalServerError", "", CloudUnavailableError),
        (503, "ServerTimeout", "", CloudUnavailableError),
        (502, "NeverHeardOf", "", CloudUnavailableError),
    ],
)
def test_codes_mean_what_their_family_means(
    status: int, code: str, message: str, kind: type[CloudError]
) -> None:
    error = ours(answered(status, said(code, message)))
    assert type(error) is kind
    assert error.code == code


@pytest.mark.parametrize(
    ("status", "code", "missing"),
    [
        (404, "ResourceNotFound", True),
        (404, "NotFound", True),
        (404, "DeploymentNotFound", True),
        (404, "ResourceGroupNotFound", True),
        (404, "SubscriptionNotFound", False),
        (404, "InvalidResourceType", False),
        (404, "NeverHeardOf", False),
        (400, "ResourceNotFound", False),
    ],
)
def test_not_every_404_says_that_a_thing_is_gone(status: int, code: str, missing: bool) -> None:
    """B37: a subscription that is not found, or a path, proves nothing."""
    error = answered(status, said(code))
    assert is_missing(error) is missing
    assert not is_missing(answered(404, "<html>"))

    def call() -> None:
        raise error

    if missing:
        assert unless_missing(call) is None
        return
    with pytest.raises(CloudError):
        unless_missing(call)


def test_the_launch_config_is_to_blame_only_where_one_was_sent() -> None:
    error = ours(answered(404, said("ResourceNotFound")), launching=False)
    assert type(error) is CloudUnavailableError


QUOTED = json.dumps(
    {
        "status": "Failed",
        "error": {
            "code": "ResourceDeploymentFailure",
            "message": "It ended in state 'Failed'.",
            "details": [{"code": "AllocationFailed", "message": "no room"}],
        },
    }
)


@pytest.mark.parametrize(
    "answer",
    [
        said("InvalidTemplateDeployment", details=[{"code": "SkuNotAvailable", "message": "x"}]),
        said("DeploymentFailed", details=[{"code": "Conflict", "message": QUOTED}]),
        said("BadRequest", innererror={"code": "SkuNotAvailable", "message": "x"}),
        said(
            "DeploymentFailed",
            details=[
                {"code": "Conflict", "message": "no JSON"},
                {"code": "BadRequest", "message": QUOTED},
            ],
        ),
    ],
)
def test_the_innermost_telling_code_wins(answer: dict[str, Any]) -> None:
    error = ours(answered(400, answer))
    assert type(error) is OutOfCapacityError
    assert error.code in ("SkuNotAvailable", "AllocationFailed")
    assert not says_little(answer)


def test_an_error_without_a_telling_code_says_what_it_says() -> None:
    answer = said("DeploymentFailed", "At least one operation failed.")
    assert says_little(answer)
    assert str(failure(answer)) == "DeploymentFailed: At least one operation failed."


def test_nesting_without_end_is_not_followed() -> None:
    answer: dict[str, Any] = {"code": "SkuNotAvailable", "message": "x"}
    for _ in range(5_00):
        answer = {"code": "Conflict", "message": "x", "details": [answer]}
    assert failure(answer).code == "Conflict"


@pytest.mark.parametrize(
    ("given", "seconds"), [("17", 17), ("100000", 300), ("0", 10), ("soon", 10), ("-1", 10)]
)
def test_azure_says_how_long_to_wait_within_bounds(given: str, seconds: int) -> None:
    error = ours(answered(429, said("TooManyRequests"), Retry_After=given))
    assert isinstance(error, ThrottledError)
    assert error.retry_after == timedelta(seconds=seconds)


def test_a_full_resource_group_is_left_alone_for_a_while() -> None:
    """B16: no storm of retries while there is no room for more records."""
    error = ours(answered(409, said("DeploymentQuotaExceeded")))
    assert isinstance(error, ThrottledError)
    assert error.retry_after == timedelta(seconds=30)


def test_an_unknown_code_is_the_clouds_trouble_and_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING):
        error = ours(answered(418, said("NeverHeardOf")))
    assert type(error) is CloudUnavailableError
    (record,) = caplog.records
    assert record.message == "unknown Azure error code"
    assert record.__dict__["code"] == "NeverHeardOf"


@pytest.mark.parametrize("body", ["<html>Bad Gateway</html>", "", "[]", '{"error": 7}'])
def test_an_answer_without_a_code_is_told_by_its_status(body: str) -> None:
    error = ours(answered(502, body))
    assert type(error) is CloudUnavailableError
    assert error.code == "HTTP502"


def test_nothing_that_was_sent_is_repeated() -> None:
    answer = said("InvalidParameter", "adminPassword pa55 of\r\n customData ZGF0YQ== is bad" * 100)
    text = str(ours(answered(400, answer), hide=("pa55", "ZGF0YQ==", "")))
    assert "pa55" not in text
    assert "ZGF0YQ==" not in text
    assert "\n" not in text
    assert len(text) < 1_100


REFUSED_TOKEN = {"error": "invalid_client", "error_description": "AADSTS7000215: Invalid secret"}


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (answered(401, REFUSED_TOKEN), BadCredentialsError),
        (sdk.ClientAuthenticationError("no token"), BadCredentialsError),
        (sdk.ServiceRequestError("no route"), NotReachedError),
        (sdk.ServiceRequestTimeoutError("too slow to connect"), NotReachedError),
        (sdk.ServiceResponseTimeoutError("too slow to answer"), CloudUnavailableError),
        (sdk.ServiceResponseError("hung up"), CloudUnavailableError),
        (sdk.DecodeError("garbled"), CloudUnavailableError),
        (sdk.HttpResponseError("of unknown origin"), CloudUnavailableError),
    ],
)
def test_errors_of_the_sdk_are_told_apart(error: Exception, kind: type[CloudError]) -> None:
    assert type(ours(error)) is kind


def test_what_nobody_foresaw_is_logged_and_ends_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    error = ours(ZeroDivisionError("secret"))
    assert type(error) is CloudUnavailableError
    assert "secret" not in str(error)
    assert caplog.records[0].message == "an unforeseen error"
