"""RunInstances of the simulated EC2, by the real SDK over HTTP."""

from __future__ import annotations

import base64
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from infra.local.clouds.ec2 import CapacityScope, Ec2Cloud, InstanceState, Quota
from tests.infra.ec2_calls import IMAGE, launch, listed, refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_boto3_ec2 import EC2Client

    from tests.infra.virtual_clock import VirtualClock


def test_a_launched_instance_looks_like_one_of_ec2(ec2: EC2Client, clock: VirtualClock) -> None:
    answer = ec2.run_instances(
        ImageId=IMAGE,
        InstanceType="m6g.xlarge",
        MinCount=1,
        MaxCount=1,
        ClientToken="order-1",
        Placement={"AvailabilityZone": "us-east-1b"},
        InstanceMarketOptions={"MarketType": "spot"},
        TagSpecifications=[
            {"ResourceType": "instance", "Tags": [{"Key": "Name", "Value": "a/b <&>"}]},
            {"ResourceType": "volume", "Tags": [{"Key": "Of", "Value": "disk"}]},
        ],
    )
    assert answer["OwnerId"] == "123456789012"
    assert re.fullmatch(r"r-[0-9a-f]{17}", answer["ReservationId"])
    instance = answer["Instances"][0]
    assert re.fullmatch(r"i-[0-9a-f]{17}", instance["InstanceId"])
    assert instance["State"] == {"Code": 0, "Name": "pending"}
    assert instance["Placement"]["AvailabilityZone"] == "us-east-1b"
    assert instance["Architecture"] == "arm64"
    assert instance["InstanceLifecycle"] == "spot"
    assert instance["InstanceType"] == "m6g.xlarge"
    assert instance["ImageId"] == IMAGE
    assert instance["ClientToken"] == "order-1"
    assert instance["PrivateIpAddress"].startswith("10.")
    assert instance["LaunchTime"] == datetime.fromtimestamp(clock.now, UTC)
    assert instance["Tags"] == [{"Key": "Name", "Value": "a/b <&>"}]
    assert instance["BlockDeviceMappings"][0]["DeviceName"] == "/dev/xvda"
    assert instance["NetworkInterfaces"][0]["PrivateIpAddress"] == instance["PrivateIpAddress"]
    shown = listed(ec2)[0]
    assert shown["InstanceId"] == instance["InstanceId"]
    assert shown["Tags"] == instance["Tags"]


def test_volumes_carry_their_own_tags(ec2: EC2Client) -> None:
    [instance_id] = launch(
        ec2,
        TagSpecifications=[
            {"ResourceType": "volume", "Tags": [{"Key": "Of", "Value": "disk"}]},
        ],
        BlockDeviceMappings=[
            {"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 64}},
            {"DeviceName": "/dev/sdb", "VirtualName": "ephemeral0"},
        ],
    )
    launch(ec2)
    volumes = ec2.describe_volumes(Filters=[{"Name": "tag:Of", "Values": ["disk"]}])["Volumes"]
    assert [(v["Size"], v["Attachments"][0].get("InstanceId")) for v in volumes] == [
        (64, instance_id)
    ]
    assert len(ec2.describe_volumes()["Volumes"]) == 2


def test_user_data_is_kept(ec2: EC2Client) -> None:
    [instance_id] = launch(ec2, UserData='{"rootUrl": "x"}')
    answer = ec2.describe_instance_attribute(InstanceId=instance_id, Attribute="userData")
    assert base64.b64decode(answer["UserData"]["Value"]) == b'{"rootUrl": "x"}'


def test_user_data_of_16_kb_is_accepted_and_a_byte_more_is_refused(ec2: EC2Client) -> None:
    launch(ec2, UserData="x" * 16_384)
    code, message, status = refused(lambda: launch(ec2, UserData="x" * 16_385))
    assert (code, message, status) == (
        "InvalidParameterValue",
        "User data is limited to 16384 bytes",
        400,
    )


def test_the_same_token_gives_the_same_instances_even_when_they_are_terminated(
    ec2: EC2Client, clock: VirtualClock
) -> None:
    first = launch(ec2, 3, ClientToken="t")
    assert launch(ec2, 3, ClientToken="t") == first
    ec2.terminate_instances(InstanceIds=first)
    clock.advance(2)
    again = ec2.run_instances(
        ImageId=IMAGE, InstanceType="m5.large", MinCount=1, MaxCount=3, ClientToken="t"
    )
    assert [i["InstanceId"] for i in again["Instances"]] == first
    assert {i["State"]["Name"] for i in again["Instances"]} == {"terminated"}
    assert len(listed(ec2)) == 3


def test_a_token_with_other_parameters_is_a_mismatch(ec2: EC2Client) -> None:
    launch(ec2, 3, ClientToken="t")
    code, _, status = refused(lambda: launch(ec2, 4, ClientToken="t"))
    assert (code, status) == ("IdempotentParameterMismatch", 400)


def test_a_token_is_regional_and_forgotten_after_a_day(
    ec2: EC2Client, ec2_in: Callable[[str], EC2Client], clock: VirtualClock
) -> None:
    first = launch(ec2, ClientToken="t")
    assert launch(ec2_in("us-west-2"), ClientToken="t") != first
    clock.advance(86_401)
    assert launch(ec2, ClientToken="t") != first


def test_a_refused_launch_does_not_use_its_token_up(cloud: Ec2Cloud, ec2: EC2Client) -> None:
    cloud.limits.capacity[CapacityScope("us-east-1")] = 0
    assert refused(lambda: launch(ec2, ClientToken="t"))[0] == "InsufficientInstanceCapacity"
    cloud.limits.capacity.clear()
    assert len(launch(ec2, ClientToken="t")) == 1


def test_a_launch_succeeds_in_part_down_to_its_minimum(cloud: Ec2Cloud, ec2: EC2Client) -> None:
    cloud.limits.capacity[CapacityScope("us-east-1", "m5.large")] = 7
    assert len(launch(ec2, 10)) == 7
    code, message, status = refused(lambda: launch(ec2, 1))
    assert (code, status) == ("InsufficientInstanceCapacity", 500)
    assert "m5.large" in message
    assert len(launch(ec2, 10, InstanceType="c5.large")) == 10
    assert refused(lambda: launch(ec2, 10, MinCount=10))[0] == "InsufficientInstanceCapacity"


def test_capacity_is_freed_when_instances_are_gone(
    cloud: Ec2Cloud, ec2: EC2Client, clock: VirtualClock
) -> None:
    cloud.limits.capacity[CapacityScope("us-east-1")] = 2
    ec2.terminate_instances(InstanceIds=launch(ec2, 2))
    assert refused(lambda: launch(ec2))[0] == "InsufficientInstanceCapacity"
    clock.advance(2)
    assert len(launch(ec2, 5)) == 2


def test_capacity_may_be_set_for_a_zone_and_for_spot_alone(cloud: Ec2Cloud, ec2: EC2Client) -> None:
    cloud.limits.capacity[CapacityScope("us-east-1a", spot=True)] = 0
    spot: Any = {"InstanceMarketOptions": {"MarketType": "spot"}}
    in_zone: Any = {"Placement": {"AvailabilityZone": "us-east-1a"}}
    assert refused(lambda: launch(ec2, **spot, **in_zone))[0] == "InsufficientInstanceCapacity"
    assert launch(ec2, **in_zone)
    launch(ec2, 4, **spot)
    zones = {i["Placement"]["AvailabilityZone"] for i in listed(ec2) if "InstanceLifecycle" in i}
    assert zones <= {"us-east-1b", "us-east-1c"}


@pytest.mark.parametrize(
    ("quota", "limit", "arguments", "code"),
    [
        (Quota.ON_DEMAND, 2, {}, "InstanceLimitExceeded"),
        (Quota.VCPUS, 5, {}, "VcpuLimitExceeded"),
        (
            Quota.SPOT,
            2,
            {"InstanceMarketOptions": {"MarketType": "spot"}},
            "MaxSpotInstanceCountExceeded",
        ),
    ],
)
def test_a_quota_limits_launches_and_then_refuses_them(
    cloud: Ec2Cloud, ec2: EC2Client, *, quota: Quota, limit: int, arguments: Any, code: str
) -> None:
    cloud.limits.quotas["us-east-1", quota] = limit
    assert len(launch(ec2, 5, **arguments)) == 2
    refusal = refused(lambda: launch(ec2, 5, **arguments))
    assert (refusal[0], refusal[2]) == (code, 400)


def test_a_listed_bad_image_does_not_exist(cloud: Ec2Cloud, ec2: EC2Client) -> None:
    cloud.bad_images.add("ami-0bad")
    code, message, _ = refused(lambda: launch(ec2, ImageId="ami-0bad"))
    assert code == "InvalidAMIID.NotFound"
    assert message == "The image id '[ami-0bad]' does not exist"


@pytest.mark.parametrize(
    ("overrides", "code"),
    [
        ({"ImageId": "windows"}, "InvalidAMIID.Malformed"),
        ({"InstanceType": "large"}, "InvalidParameterValue"),
        ({"MinCount": 3, "MaxCount": 2}, "InvalidParameterCombination"),
        ({"MaxCount": 0}, "InvalidParameterValue"),
        ({"ClientToken": "x" * 65}, "InvalidParameterValue"),
        ({"Placement": {"AvailabilityZone": "eu-west-1a"}}, "InvalidParameterValue"),
        (
            {"TagSpecifications": [{"ResourceType": "instance", "Tags": []}] * 2},
            "InvalidParameterValue",
        ),
        (
            {
                "TagSpecifications": [
                    {"ResourceType": "instance", "Tags": [{"Key": "aws:x", "Value": ""}]}
                ]
            },
            "InvalidParameterValue",
        ),
        (
            {
                "TagSpecifications": [
                    {"ResourceType": "instance", "Tags": [{"Key": "k", "Value": "v" * 257}]}
                ]
            },
            "InvalidParameterValue",
        ),
        (
            {
                "TagSpecifications": [
                    {
                        "ResourceType": "instance",
                        "Tags": [{"Key": str(n), "Value": ""} for n in range(51)],
                    }
                ]
            },
            "TagLimitExceeded",
        ),
        ({"DryRun": True}, "DryRunOperation"),
    ],
)
def test_a_malformed_launch_is_refused_and_launches_nothing(
    cloud: Ec2Cloud, ec2: EC2Client, overrides: Any, code: str
) -> None:
    assert refused(lambda: launch(ec2, **overrides))[0] == code
    assert cloud.instances() == []


def test_an_instance_becomes_running_after_its_time(
    cloud: Ec2Cloud, ec2: EC2Client, clock: VirtualClock
) -> None:
    cloud.change_settings(pending_seconds=30)
    [instance_id] = launch(ec2)
    clock.advance(29)
    assert cloud.instance(instance_id).state is InstanceState.PENDING
    clock.advance(1)
    assert listed(ec2)[0]["State"] == {"Code": 16, "Name": "running"}


def test_two_thousand_launches_are_quick(cloud: Ec2Cloud, ec2: EC2Client) -> None:
    for number in range(20):
        assert len(launch(ec2, 100, ClientToken=f"order-{number}")) == 100
    assert cloud.calls_of("RunInstances") == 20
    assert len(cloud.instances()) == 2_000
