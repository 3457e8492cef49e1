"""The table of EC2's errors."""

from __future__ import annotations

import base64
import json
import logging
from datetime import timedelta
from fnmatch import fnmatchcase

import pytest
from botocore import exceptions as sdk

from tests.providers.aws.wire import Answer, Wire, refusal
from tests.providers.orders import BODY, OREGON, an_order
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
from worker_manager.providers.aws.errors import RULES

IN_ZONE = "Your requested instance type is not supported in your requested Availability Zone (x)."

CODES: dict[type[CloudError], tuple[str, ...]] = {
    OutOfCapacityError: (
        "InsufficientInstanceCapacity",
        "InsufficientHostCapacity",
        "InsufficientReservedInstanceCapacity",
        "InsufficientCapacity",
        "InsufficientCapacityOnOutpost",
        "InsufficientVolumeCapacity",
        "InsufficientAddressCapacity",
        "InsufficientFreeAddressesInSubnet",
        "UnfulfillableCapacity",
        "ReservationCapacityExceeded",
        "SpotMaxPriceTooLow",
    ),
    QuotaExceededError: (
        "InstanceLimitExceeded",
        "VcpuLimitExceeded",
        "MaxSpotInstanceCountExceeded",
        "MaxIOPSLimitExceeded",
        "VolumeLimitExceeded",
        "VolumeIOPSLimit",
        "NetworkInterfaceLimitExceeded",
        "AddressLimitExceeded",
        "ResourceCountExceeded",
        "ResourceLimitExceeded",
    ),
    ThrottledError: (
        "RequestLimitExceeded",
        "BandwidthLimitExceeded",
        "Throttling",
        "ThrottlingException",
        "EC2ThrottledException",
        "RequestThrottled",
        "RequestThrottledException",
        "TooManyRequestsException",
        "SlowDown",
    ),
    NotAuthorizedError: (
        "UnauthorizedOperation",
        "AccessDenied",
        "AccessDeniedException",
    ),
    BadCredentialsError: (
        "AuthFailure",
        "ExpiredToken",
        "ExpiredTokenException",
        "RequestExpired",
        "InvalidClientTokenId",
        "InvalidAccessKeyId",
        "InvalidToken",
        "UnrecognizedClientException",
        "SignatureDoesNotMatch",
        "IncompleteSignature",
        "MissingAuthenticationToken",
        "MissingAuthenticationTokenException",
        "OptInRequired",
        "PendingVerification",
        "Blocked",
    ),
    InvalidLaunchConfigError: (
        "InvalidAMIID.NotFound",
        "InvalidAMIID.Unavailable",
        "InvalidAMIID.Malformed",
        "InvalidBlockDeviceMapping",
        "InvalidGroup.NotFound",
        "InvalidInstanceType",
        "InvalidKeyPair.NotFound",
        "InvalidParameter",
        "InvalidParameterCombination",
        "InvalidParameterValue",
        "InvalidSubnetID.NotFound",
        "InvalidUserData.Malformed",
        "InvalidLaunchTemplateName.NotFoundException",
        "MissingParameter",
        "MalformedQueryString",
        "UnknownParameter",
        "Unsupported",
        "UnsupportedOperation",
        "UnsupportedInstanceAttribute",
        "VPCIdNotSpecified",
        "VolumeTypeNotAvailableInZone",
        "SomethingNew.NotFound",
        "SomethingNew.NotFoundException",
        "SomethingNew.Malformed",
        "TagLimitExceeded",
        "SecurityGroupsPerInstanceLimitExceeded",
        "AttachmentLimitExceeded",
        "ValidationError",
        "DryRunOperation",
        "OperationNotPermitted",
        "ZonesMismatched",
    ),
    CloudUnavailableError: (
        "IdempotentParameterMismatch",
        "IdempotentInstanceTerminated",
        "InternalError",
        "InternalFailure",
        "Unavailable",
        "ServiceUnavailable",
        "ServiceUnavailableException",
        "RequestTimeout",
        "ConcurrentTagAccess",
        "IncorrectState",
        "IncorrectInstanceState",
        "NeverHeardOfIt",
    ),
}
TABLE = [(code, error) for error, codes in CODES.items() for code in codes]


def error_of(answer: Answer | Exception) -> CloudError:
    with pytest.raises(CloudError) as caught:
        Wire([answer]).provider().launch(an_order())
    return caught.value


@pytest.mark.parametrize(("code", "error"), TABLE)
def test_a_code_of_ec2_becomes_our_error_and_is_kept(code: str, error: type[CloudError]) -> None:
    """B50: capacity goes elsewhere, quota caps, authorisation stops, the rest is tried again."""
    raised = error_of(refusal(code, "so it is"))
    assert type(raised) is error
    assert raised.code == code
    assert str(raised) == f"{code}: so it is"


def test_the_table_of_cases_reaches_every_rule() -> None:
    unsaid = [rule for rule in RULES if not rule.says]
    met = {next((r for r in unsaid if fnmatchcase(code, r.code)), None) for code, _ in TABLE}
    assert set(unsaid) <= met


@pytest.mark.parametrize(
    ("code", "message", "error"),
    [
        ("Unsupported", IN_ZONE, OutOfCapacityError),
        ("AuthFailure", "Not authorized for images: [ami-1]", InvalidLaunchConfigError),
        ("OptInRequired", "In order to use this AWS Marketplace product", InvalidLaunchConfigError),
    ],
)
def test_a_code_with_two_meanings_is_told_by_its_message(
    code: str, message: str, error: type[CloudError]
) -> None:
    assert type(error_of(refusal(code, message))) is error


@pytest.mark.parametrize(("status", "error"), [(429, ThrottledError), (500, CloudUnavailableError)])
def test_a_code_nobody_knows_is_judged_by_its_http_status(
    status: int, error: type[CloudError]
) -> None:
    assert type(error_of(refusal("NeverHeardOfIt", status=status))) is error


def test_a_shortage_is_a_shortage_though_ec2_calls_it_a_server_error() -> None:
    raised = error_of(refusal("InsufficientInstanceCapacity", status=500))
    assert type(raised) is OutOfCapacityError


def test_an_unknown_code_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        error_of(refusal("NeverHeardOfIt"))
    (record,) = caplog.records
    assert record.getMessage() == "unknown EC2 error code"
    assert record.__dict__["code"] == "NeverHeardOfIt"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 5),
        ({"Retry_After": "17"}, 17),
        ({"Retry_After": "99999999"}, 300),
        ({"Retry_After": "soon"}, 5),
    ],
)
def test_throttling_says_how_long_to_wait(headers: dict[str, str], seconds: int) -> None:
    raised = error_of(refusal("RequestLimitExceeded", status=503, **headers))
    assert isinstance(raised, ThrottledError)
    assert raised.retry_after == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("raised", "error"),
    [
        (sdk.ReadTimeoutError(endpoint_url="https://ec2"), CloudUnavailableError),
        (sdk.ConnectTimeoutError(endpoint_url="https://ec2"), NotReachedError),
        (sdk.EndpointConnectionError(endpoint_url="https://ec2"), NotReachedError),
        (sdk.ConnectionClosedError(endpoint_url="https://ec2"), CloudUnavailableError),
        (sdk.HTTPClientError(error="reset"), CloudUnavailableError),
        (RuntimeError("nobody foresaw this"), CloudUnavailableError),
        (OverflowError("nor that"), CloudUnavailableError),
        (sdk.NoCredentialsError(), NotAuthorizedError),
        (sdk.CredentialRetrievalError(provider="role", error_msg="gone"), NotAuthorizedError),
    ],
)
def test_an_error_of_the_sdk_becomes_ours(raised: Exception, error: type[CloudError]) -> None:
    ours = error_of(raised)
    assert type(ours) is error
    assert ours.code == type(raised).__name__


@pytest.mark.parametrize("status", [200, 400, 502])
def test_an_answer_that_is_no_xml_is_the_clouds_trouble(status: int) -> None:
    assert type(error_of(Answer(status, "<html>oops"))) is CloudUnavailableError


def test_a_parameter_that_boto3_refuses_is_the_launch_configs_fault_and_hidden() -> None:
    launch_config = {**BODY["launchConfig"], "KeyName": {"secret": "hunter2"}}
    wire = Wire([])
    with pytest.raises(InvalidLaunchConfigError) as caught:
        wire.provider().launch(an_order(body={**BODY, "launchConfig": launch_config}))
    assert "KeyName" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_a_region_that_cannot_be_one_is_the_launch_configs_fault() -> None:
    with pytest.raises(InvalidLaunchConfigError):
        Wire([]).provider().launch(an_order(location="not a region"))


def test_an_error_never_repeats_the_user_data() -> None:
    """B35: neither as it was written nor as it travelled, nor the encoded refused request."""
    body = {**BODY, "workerConfig": {"password": "hunter2"}}
    wire = Wire([refusal("InvalidParameterValue")])
    with pytest.raises(CloudError):
        wire.provider().launch(an_order(body=body))
    encoded = wire.parameters()[0]["UserData"]
    assert json.loads(base64.b64decode(encoded))["workerConfig"] == body["workerConfig"]
    for answer in (
        refusal("InvalidParameterValue", f"Value ({encoded}) for parameter userData is invalid"),
        refusal("UnauthorizedOperation", "No. Encoded authorization failure message: hunter2"),
    ):
        with pytest.raises(CloudError) as caught:
            Wire([answer]).provider().launch(an_order(body=body))
        assert encoded not in str(caught.value)
        assert "hunter2" not in str(caught.value)
        assert caught.value.__suppress_context__


def test_a_list_that_ec2_calls_invalid_is_nobodys_launch_config() -> None:
    with pytest.raises(CloudError) as caught:
        list(Wire([refusal("InvalidParameterValue")]).provider().instances(OREGON))
    assert type(caught.value) is CloudUnavailableError
