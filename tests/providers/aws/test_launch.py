"""From an order to a request and back."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.providers.aws.wire import Wire, instance, ran
from tests.providers.orders import BODY, an_order
from worker_manager.core.errors import InvalidLaunchConfigError, OutOfCapacityError
from worker_manager.providers.aws.launch import run_instances_request, tag_specifications

OURS = {"Name": "proj/linux", "worker-manager:order": "o-1"}


def tags_of(spec: dict[str, Any]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in spec["Tags"]}


def test_an_order_is_one_call_with_its_id_as_token() -> None:
    wire = Wire([ran(instance("i-1"), instance("i-2"))])
    wire.provider().launch(an_order())
    (sent,) = wire.parameters()
    assert sent["Action"] == "RunInstances"
    assert (sent["MinCount"], sent["MaxCount"]) == ("1", "2")
    assert sent["ClientToken"] == "wm-0123456789abcdef"
    assert sent["ImageId"] == BODY["launchConfig"]["ImageId"]
    assert json.loads(base64.b64decode(sent["UserData"]))["workerPoolId"] == "proj/linux"


def test_the_same_order_gives_a_byte_equal_request() -> None:
    """S8: a repeated request is recognised only when nothing in it changed."""
    wire = Wire([ran(instance("i-1"), instance("i-2")) for _ in range(2)])
    wire.provider().launch(an_order())
    wire.provider().launch(an_order(body=json.loads(json.dumps(BODY))))
    assert wire.sent[0] == wire.sent[1]


def test_the_caller_cannot_set_what_the_order_decides() -> None:
    launch_config = {**BODY["launchConfig"], "MinCount": 7, "UserData": "x", "ClientToken": "mine"}
    request = run_instances_request(an_order(body={**BODY, "launchConfig": launch_config}))
    assert (request["MinCount"], request["ClientToken"]) == (1, "wm-0123456789abcdef")
    assert request["UserData"] != "x"


def test_instances_and_volumes_carry_all_our_tags() -> None:
    specs = run_instances_request(an_order())["TagSpecifications"]
    assert [spec["ResourceType"] for spec in specs] == ["instance", "volume"]
    for spec in specs:
        assert tags_of(spec) == {
            "Name": "proj/linux",
            "CreatedBy": "taskcluster-wm-aws",
            "Owner": "owner@example.com",
            "ManagedBy": "taskcluster",
            "WorkerPoolId": "proj/linux",
            "worker-manager:deployment": "wm-test",
            "worker-manager:pool": "proj/linux",
            "worker-manager:launch-config": "lc-6350aa384f6ab04fc4d1",
            "worker-manager:order": "wm-0123456789abcdef",
        }


def test_the_callers_tags_come_first_and_ours_win_without_a_key_twice() -> None:
    given = [
        {"ResourceType": "instance", "Tags": [{"Key": "team", "Value": "a"}]},
        {"ResourceType": "instance", "Tags": [{"Key": "Name", "Value": "theirs"}]},
        {"ResourceType": "volume", "Tags": [{"Key": "cost", "Value": "b"}]},
    ]
    machine, volume = tag_specifications(given, OURS)
    assert [tag["Key"] for tag in machine["Tags"]] == ["team", "Name", "worker-manager:order"]
    assert tags_of(machine)["Name"] == "proj/linux"
    assert list(tags_of(volume)) == ["cost", "Name", "worker-manager:order"]


def test_other_resource_types_keep_what_the_caller_gave() -> None:
    spot = {"ResourceType": "spot-instances-request", "Tags": [{"Key": "team", "Value": "a"}]}
    assert tag_specifications([spot], OURS)[0] == spot


@pytest.mark.parametrize(
    "given", [7, ["x"], [{"Tags": []}], [{"ResourceType": "instance", "Tags": [{}]}]]
)
def test_unreadable_tag_specifications_are_the_launch_configs_fault(given: object) -> None:
    with pytest.raises(InvalidLaunchConfigError):
        tag_specifications(given, OURS)


def a_spot_request(valid_until: object) -> dict[str, Any]:
    return {"InstanceMarketOptions": {"SpotOptions": {"ValidUntil": valid_until}}}


@pytest.mark.parametrize(
    "parameters",
    [
        {"self": 1},
        {"": 1},
        {"ImageId": None},
        {"SecurityGroupIds": "sg-1"},
        *map(a_spot_request, (1e300, 10**400, "infinity", "9999-12-31T23:59:59-14:00")),
    ],
)
def test_what_the_sdk_cannot_send_is_the_launch_configs_fault(parameters: dict[str, Any]) -> None:
    wire = Wire([])
    body = {**BODY, "launchConfig": {**BODY["launchConfig"], **parameters}}
    with pytest.raises(InvalidLaunchConfigError):
        wire.provider().launch(an_order(body=body))
    assert wire.sent == []


def test_machines_come_back_with_what_their_identity_document_will_say() -> None:
    wire = Wire([ran(instance("i-1", state="pending"), instance("i-2", address=None))])
    first, second = wire.provider().launch(an_order()).machines
    assert (first.key.worker_id, first.key.group, first.status) == ("i-1", "us-west-2", "pending")
    assert first.order_id == "wm-0123456789abcdef"
    assert first.identity == {
        "accountId": "123456789012",
        "architecture": "x86_64",
        "availabilityZone": "us-west-2b",
        "imageId": "ami-1",
        "instanceType": "m5.large",
        "privateIp": "10.0.0.7",
        "region": "us-west-2",
    }
    assert "privateIp" not in second.identity


def test_fewer_machines_than_ordered_is_a_result_with_its_reason() -> None:
    """B40: what was launched is kept; the rest is a shortage, not a failure of the order."""
    machines = [instance(f"i-{index}") for index in range(7)]
    result = Wire([ran(*machines)]).provider().launch(an_order(count=10))
    assert len(result.machines) == 7
    assert result.refused == 3
    assert isinstance(result.error, OutOfCapacityError)
    assert result.error.code == "InsufficientInstanceCapacity"


def test_an_answer_without_machines_is_a_shortage() -> None:
    with pytest.raises(OutOfCapacityError):
        Wire([ran()]).provider().launch(an_order())
