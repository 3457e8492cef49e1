"""The Describe actions of the simulated EC2, by the real SDK over HTTP."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from infra.local.clouds.ec2.actions import describe_instances
from infra.local.clouds.ec2.parameters import Parameters
from tests.infra.ec2_calls import launch, listed, refused, states

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_boto3_ec2 import EC2Client

    from infra.local.clouds.ec2 import Ec2Cloud
    from tests.infra.virtual_clock import VirtualClock


def tagged(value: str) -> Any:
    return {
        "TagSpecifications": [
            {"ResourceType": "instance", "Tags": [{"Key": "deployment", "Value": value}]}
        ]
    }


def by(name: str, *values: str) -> Any:
    return {"Filters": [{"Name": name, "Values": list(values)}]}


def test_lists_are_filtered_by_tag_state_and_id(ec2: EC2Client, clock: VirtualClock) -> None:
    ours = launch(ec2, 2, **tagged("ours"))
    other = launch(ec2, 1, **tagged("other"))
    clock.advance(5)
    ec2.terminate_instances(InstanceIds=ours[:1])

    def ids(arguments: Any) -> list[str]:
        return [i["InstanceId"] for i in listed(ec2, **arguments)]

    assert ids(by("tag:deployment", "ours")) == ours
    assert ids(by("tag:deployment", "ours", "other")) == ours + other
    assert ids(by("tag:deployment", "ou*")) == ours
    assert ids(by("tag-key", "deployment")) == ours + other
    assert ids(by("tag:absent", "*")) == []
    assert ids(by("instance-state-name", "running")) == [ours[1], *other]
    assert ids(by("instance-id", ours[0])) == ours[:1]
    both = by("tag:deployment", "ours")["Filters"] + by("instance-state-name", "running")["Filters"]
    assert ids({"Filters": both}) == ours[1:]


def test_an_unknown_filter_is_refused(ec2: EC2Client) -> None:
    refusal = refused(lambda: listed(ec2, **by("colour", "red")))
    assert refusal[:2] == ("InvalidParameterValue", "The filter 'colour' is invalid")


def test_pages_count_instances_and_may_cut_a_reservation(ec2: EC2Client) -> None:
    ids = launch(ec2, 7) + launch(ec2, 5)
    seen: list[str] = []
    sizes = []
    pages = ec2.get_paginator("describe_instances").paginate(PaginationConfig={"PageSize": 5})
    for page in pages:
        found = [i["InstanceId"] for r in page["Reservations"] for i in r["Instances"]]
        sizes.append((len(page["Reservations"]), len(found)))
        seen += found
    assert seen == ids
    assert sizes == [(1, 5), (2, 5), (1, 2)]


def test_a_full_last_page_has_no_token(ec2: EC2Client) -> None:
    launch(ec2, 5)
    assert "NextToken" not in ec2.describe_instances(MaxResults=5)


def test_a_list_without_page_size_still_ends_at_a_thousand(cloud: Ec2Cloud, ec2: EC2Client) -> None:
    cloud.seed("us-east-1", 1_200, tags={"deployment": "ours"})
    answer = ec2.describe_instances()
    assert sum(len(r["Instances"]) for r in answer["Reservations"]) == 1_000
    assert len(listed(ec2, NextToken=answer["NextToken"])) == 200


def test_page_sizes_and_tokens_are_checked(ec2: EC2Client) -> None:
    [instance_id] = launch(ec2)
    assert refused(lambda: listed(ec2, MaxResults=4))[0] == "InvalidParameterValue"
    assert refused(lambda: listed(ec2, MaxResults=1001))[0] == "InvalidParameterValue"
    assert refused(lambda: listed(ec2, NextToken="!"))[0] == "InvalidPaginationToken"
    both = refused(lambda: listed(ec2, InstanceIds=[instance_id], MaxResults=5))
    assert both[0] == "InvalidParameterCombination"


def test_one_unknown_id_spoils_the_call_and_is_named(ec2: EC2Client) -> None:
    known = launch(ec2, 2)
    lost = ["i-00000000000000001", "i-00000000000000002"]
    code, message, _ = refused(lambda: listed(ec2, InstanceIds=[known[0], lost[0]]))
    assert code == "InvalidInstanceID.NotFound"
    assert message == "The instance ID 'i-00000000000000001' does not exist"
    code, message, _ = refused(lambda: ec2.terminate_instances(InstanceIds=known + lost))
    assert code == "InvalidInstanceID.NotFound"
    assert message == f"The instance IDs '{lost[0]}, {lost[1]}' do not exist"
    assert states(ec2) == ["pending", "pending"]
    assert refused(lambda: listed(ec2, InstanceIds=["vm-1"]))[0] == "InvalidInstanceID.Malformed"


def test_lists_lag_behind_launches(cloud: Ec2Cloud, ec2: EC2Client, clock: VirtualClock) -> None:
    cloud.change_settings(list_lag_seconds=10)
    ids = launch(ec2)
    assert listed(ec2) == []
    assert ec2.describe_instance_status(IncludeAllInstances=True)["InstanceStatuses"] == []
    for call in (
        lambda: listed(ec2, InstanceIds=ids),
        lambda: ec2.terminate_instances(InstanceIds=ids),
    ):
        assert refused(call)[0] == "InvalidInstanceID.NotFound"
    clock.advance(10)
    assert states(ec2) == ["running"]
    assert len(listed(ec2, InstanceIds=ids)) == 1


def test_status_tells_of_running_instances_unless_all_are_asked_for(
    ec2: EC2Client, clock: VirtualClock
) -> None:
    ids = launch(ec2, 2)
    clock.advance(2)
    ec2.stop_instances(InstanceIds=ids[:1])
    running = ec2.describe_instance_status()["InstanceStatuses"]
    assert [s.get("InstanceId") for s in running] == ids[1:]
    everything = ec2.describe_instance_status(InstanceIds=ids, IncludeAllInstances=True)
    assert [s["InstanceState"]["Name"] for s in everything["InstanceStatuses"]] == [
        "stopping",
        "running",
    ]


def test_regions_are_apart(
    cloud: Ec2Cloud, ec2: EC2Client, ec2_in: Callable[[str], EC2Client]
) -> None:
    west = ec2_in("us-west-2")
    ids = launch(west)
    assert listed(ec2) == []
    assert refused(lambda: listed(ec2, InstanceIds=ids))[0] == "InvalidInstanceID.NotFound"
    assert len(listed(west)) == 1
    names = {r.get("RegionName") for r in ec2.describe_regions()["Regions"]}
    assert {"us-east-1", "us-west-2"} <= names
    assert cloud.calls["DescribeInstances", "us-east-1"] == 2
    assert cloud.calls["DescribeInstances", "us-west-2"] == 1
    assert cloud.calls_of("DescribeInstances") == 3
    assert cloud.refusals["InvalidInstanceID.NotFound", "us-east-1"] == 1
    assert refused(lambda: listed(ec2_in("mars-north-1")))[0] == "AuthFailure"


def test_a_page_of_a_thousand_costs_little(cloud: Ec2Cloud) -> None:
    cloud.seed("us-east-1", 5_000, tags={f"key-{n}": "value" for n in range(8)})
    parameters = Parameters.parse("MaxResults=1000&Filter.1.Name=tag:key-3&Filter.1.Value.1=value")
    started = time.process_time()
    text = describe_instances(cloud, "us-east-1", parameters)
    assert time.process_time() - started < 0.15
    assert text.count("<instanceId>") == 1_000
