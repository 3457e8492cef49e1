"""How simulated instances end, stop, start and are tagged, by the real SDK over HTTP."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.infra.ec2_calls import launch, listed, refused, states

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

    from infra.local.clouds.ec2 import Ec2Cloud
    from tests.infra.virtual_clock import VirtualClock

SPOT: Any = {"InstanceMarketOptions": {"MarketType": "spot"}}


@pytest.fixture(autouse=True)
def durations(cloud: Ec2Cloud) -> None:
    cloud.change_settings(
        pending_seconds=10,
        shutting_down_seconds=20,
        stopping_seconds=5,
        gone_after_seconds=60,
    )


def test_a_terminated_instance_shuts_down_stays_listed_and_vanishes(
    ec2: EC2Client, clock: VirtualClock
) -> None:
    ids = launch(ec2)
    clock.advance(10)
    answer = ec2.terminate_instances(InstanceIds=ids)["TerminatingInstances"][0]
    assert answer.get("PreviousState") == {"Code": 16, "Name": "running"}
    assert answer.get("CurrentState") == {"Code": 32, "Name": "shutting-down"}
    clock.advance(20)
    [ended] = listed(ec2)
    assert ended["State"] == {"Code": 48, "Name": "terminated"}
    assert ended["StateReason"]["Code"] == "Client.UserInitiatedShutdown"
    assert "PrivateIpAddress" not in ended
    assert ended["BlockDeviceMappings"] == []
    assert ec2.describe_volumes()["Volumes"] == []
    clock.advance(60)
    assert listed(ec2) == []
    refusal = refused(lambda: ec2.terminate_instances(InstanceIds=ids))
    assert refusal[0] == "InvalidInstanceID.NotFound"


def test_terminating_twice_is_fine(ec2: EC2Client, clock: VirtualClock) -> None:
    ids = launch(ec2)
    ec2.terminate_instances(InstanceIds=ids)
    clock.advance(20)
    again = ec2.terminate_instances(InstanceIds=ids)["TerminatingInstances"][0]
    assert (
        again.get("PreviousState")
        == again.get("CurrentState")
        == {
            "Code": 48,
            "Name": "terminated",
        }
    )


def test_a_reboot_leaves_the_state_and_passes_over_the_terminated(
    ec2: EC2Client, cloud: Ec2Cloud, clock: VirtualClock
) -> None:
    running, terminated, stopped = launch(ec2, 3)
    clock.advance(10)
    ec2.terminate_instances(InstanceIds=[terminated])
    ec2.stop_instances(InstanceIds=[stopped])
    clock.advance(20)
    for _ in range(2):
        ec2.reboot_instances(InstanceIds=[running, terminated])
    assert states(ec2) == ["running", "terminated", "stopped"]
    assert [instance.reboots for instance in cloud.instances()] == [2, 0, 0]
    for other, code in (
        (stopped, "IncorrectInstanceState"),
        ("i-0123456789abcdef0", "InvalidInstanceID.NotFound"),
    ):
        ask = partial(ec2.reboot_instances, InstanceIds=[running, other])
        assert refused(ask)[0] == code
    assert cloud.instance(running).reboots == 2


def test_a_stopped_instance_stays_until_it_is_started_or_terminated(
    ec2: EC2Client, clock: VirtualClock
) -> None:
    ids = launch(ec2, 2)
    clock.advance(10)
    ec2.stop_instances(InstanceIds=ids)
    assert states(ec2) == ["stopping", "stopping"]
    clock.advance(10_000)
    assert states(ec2) == ["stopped", "stopped"]
    ec2.start_instances(InstanceIds=ids[:1])
    ec2.terminate_instances(InstanceIds=ids[1:])
    assert states(ec2) == ["pending", "terminated"]
    clock.advance(10)
    assert states(ec2) == ["running", "terminated"]


def test_states_from_which_there_is_no_way_are_refused(ec2: EC2Client) -> None:
    ids = launch(ec2)
    code, _, _ = refused(lambda: ec2.start_instances(InstanceIds=ids))
    assert code == "IncorrectInstanceState"
    assert refused(lambda: ec2.stop_instances(InstanceIds=ids))[0] == "IncorrectInstanceState"


def test_a_machine_that_shuts_down_is_stopped_unless_told_to_terminate(
    cloud: Ec2Cloud, ec2: EC2Client, clock: VirtualClock
) -> None:
    ids = launch(ec2)
    ids += launch(ec2, InstanceInitiatedShutdownBehavior="terminate")
    ids += launch(ec2, **SPOT)
    clock.advance(10)
    for instance_id in ids:
        cloud.shut_down_from_inside(instance_id)
    clock.advance(20)
    assert states(ec2) == ["stopped", "terminated", "terminated"]
    assert {i["StateReason"]["Code"] for i in listed(ec2)} == {"Client.InstanceInitiatedShutdown"}


def test_a_spot_instance_can_be_taken_back(
    cloud: Ec2Cloud, ec2: EC2Client, clock: VirtualClock
) -> None:
    ids = launch(ec2, 2, **SPOT)
    cloud.interrupt(ids[:1])
    clock.advance(20)
    assert states(ec2) == ["terminated", "running"]
    assert listed(ec2)[0]["StateReason"]["Code"] == "Server.SpotInstanceTermination"


def test_instances_can_vanish_without_a_trace(cloud: Ec2Cloud, ec2: EC2Client) -> None:
    ids = launch(ec2, 2)
    cloud.forget(ids[:1])
    assert [i["InstanceId"] for i in listed(ec2)] == ids[1:]


def test_tags_can_be_added_and_overwritten(ec2: EC2Client) -> None:
    [instance_id] = launch(ec2)
    [volume] = ec2.describe_volumes()["Volumes"]
    volume_id = volume.get("VolumeId", "")
    for value in ("one", "two & <three>"):
        ec2.create_tags(Resources=[instance_id, volume_id], Tags=[{"Key": "Name", "Value": value}])
        assert listed(ec2)[0]["Tags"] == [{"Key": "Name", "Value": value}]
    [volume] = ec2.describe_volumes(VolumeIds=[volume_id])["Volumes"]
    assert volume.get("Tags") == [{"Key": "Name", "Value": "two & <three>"}]
    tag: Any = [{"Key": "Name", "Value": "x"}]
    refusal = refused(lambda: ec2.create_tags(Resources=["vol-0"], Tags=tag))
    assert refusal[0] == "InvalidVolume.NotFound"
