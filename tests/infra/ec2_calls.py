"""Calls that tests of the simulated EC2 make again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_boto3_ec2 import EC2Client

IMAGE = "ami-0123456789abcdef0"


def launch(ec2: EC2Client, count: int = 1, **overrides: Any) -> list[str]:
    """Launch up to ``count`` (at least one) and tell the ids."""
    arguments: dict[str, Any] = {
        "ImageId": IMAGE,
        "InstanceType": "m5.large",
        "MinCount": 1,
        "MaxCount": count,
    }
    return [i["InstanceId"] for i in ec2.run_instances(**arguments | overrides)["Instances"]]


def listed(ec2: EC2Client, **arguments: Any) -> list[Any]:
    """The instances of one DescribeInstances answer."""
    answer = ec2.describe_instances(**arguments)
    return [i for reservation in answer["Reservations"] for i in reservation["Instances"]]


def states(ec2: EC2Client) -> list[str]:
    """The states of all listed instances, in order of launch."""
    return [i["State"]["Name"] for i in listed(ec2)]


def refused(call: Callable[[], object]) -> tuple[str, str, int]:
    """Code, message and HTTP status of the refusal of a call."""
    with pytest.raises(ClientError) as caught:
        call()
    response = caught.value.response
    return (
        response["Error"]["Code"],
        response["Error"]["Message"],
        response["ResponseMetadata"]["HTTPStatusCode"],
    )
