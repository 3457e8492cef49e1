"""Answers are read as far as needed, and times as the SDK reads them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.utils import parse_timestamp

from worker_manager.providers.aws.reading import (
    NEEDED,
    moment,
    read_only_needed,
    read_times_fast,
)


def test_a_time_of_ec2_is_an_aware_time() -> None:
    expected = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
    assert moment("2026-01-02T03:04:05.678Z") == expected


@pytest.mark.parametrize(
    "value",
    [
        "2026-01-02T03:04:05.000Z",
        "2026-01-02T03:04:05Z",
        "2026-01-02T03:04:05+02:00",
        "2026-01-02T03:04:05",
        "Fri, 02 Jan 2026 03:04:05 GMT",
        "1767323045",
        1767323045,
        1767323045.5,
    ],
)
def test_every_spelling_means_what_the_sdk_takes_it_for(value: Any) -> None:
    assert moment(value) == parse_timestamp(value)


def test_what_is_no_time_is_refused() -> None:
    with pytest.raises(ValueError, match="tomorrow"):
        moment("tomorrow")


def test_clients_of_a_session_read_times_so() -> None:
    session = boto3.Session()
    read_times_fast(session)
    factory = session._session.get_component("response_parser_factory")
    assert factory.create_parser("ec2")._timestamp_parser is moment


ANSWERS = {
    "DescribeInstances": "<DescribeInstancesResponse><reservationSet><item>{}</item>"
    "</reservationSet></DescribeInstancesResponse>",
    "RunInstances": "<RunInstancesResponse>{}</RunInstancesResponse>",
}
RESERVATION = (
    "<ownerId>1234</ownerId><instancesSet><item>"
    "<instanceId>i-1</instanceId><imageId>ami-1</imageId><instanceType>m5.large</instanceType>"
    "<architecture>x86_64</architecture><launchTime>2026-01-02T03:04:05.000Z</launchTime>"
    "<privateIpAddress>10.0.0.1</privateIpAddress><instanceState><name>running</name>"
    "</instanceState><placement><availabilityZone>us-east-1a</availabilityZone></placement>"
    "<tagSet><item><key>k</key><value>v</value></item></tagSet>"
    "<keyName>unused</keyName><ebsOptimized>false</ebsOptimized>"
    "</item></instancesSet>"
)


def read(client: Any, operation: str) -> Any:
    """What a client's parser makes of an answer with one instance."""
    shape = client.meta.service_model.operation_model(operation).output_shape
    body = ANSWERS[operation].format(RESERVATION).encode()
    answer = {"status_code": 200, "headers": {}, "body": body, "context": {}}
    parsed = client._response_parser.parse(answer, shape)
    return parsed["Reservations"][0] if operation == "DescribeInstances" else parsed


@pytest.mark.parametrize("operation", ANSWERS)
def test_of_an_instance_only_what_is_needed_is_read(operation: str) -> None:
    client = boto3.Session().client("ec2", region_name="us-east-1")
    read_only_needed(client)
    reservation = read(client, operation)
    (instance,) = reservation["Instances"]
    assert instance.keys() == NEEDED
    assert reservation["OwnerId"] == "1234"
    assert instance["Tags"] == [{"Key": "k", "Value": "v"}]


def test_other_clients_read_on_as_before() -> None:
    session = boto3.Session()
    read_only_needed(session.client("ec2", region_name="us-east-1"))
    other = session.client("ec2", region_name="us-east-1")
    assert read(other, "RunInstances")["Instances"][0]["KeyName"] == "unused"
