"""An order as requests, and their answers as what was launched."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.providers.google.wire import ACCOUNT, BODY, PROJECT, ZONE, an_order
from worker_manager.core.errors import (
    InvalidLaunchConfigError,
)
from worker_manager.providers.google.launch import (
    inserts,
    machine_name,
    request_id,
)

DATA = Path(__file__).resolve().parents[2] / "data"


def the_instance(**body: Any) -> dict[str, Any]:
    """What is sent for the first machine of an order with this body."""
    asked = inserts(an_order(body={**BODY, **body}), service_account=ACCOUNT)
    first = asked.requests[0].instance_resource
    sent: dict[str, Any] = json.loads(
        type(first).to_json(first, always_print_fields_with_no_presence=False)
    )
    return sent


def without_fields(**body: Any) -> dict[str, Any]:
    return {key: value for key, value in the_instance(**body).items() if key in body}


def test_fields_of_the_launch_config_are_passed_through_untouched() -> None:
    given = {
        "machineType": f"zones/{ZONE}/machineTypes/n2-standard-2",
        "minCpuPlatform": "Intel Cascadelake",
        "guestAccelerators": [{"acceleratorType": "nvidia-tesla-t4", "acceleratorCount": 1}],
        "advancedMachineFeatures": {"enableNestedVirtualization": True},
        "networkInterfaces": [{"network": "global/networks/n", "accessConfigs": [{"name": "nat"}]}],
        "canIpForward": True,
        "tags": {"items": ["a", "b"]},
    }

    assert without_fields(**given) == given


def test_what_is_not_the_clouds_is_not_sent() -> None:
    sent = the_instance()

    assert not sent.keys() & {"region", "workerConfig", "capacityPerInstance", "zone"}


def test_what_is_ours_wins_over_the_launch_config() -> None:
    sent = the_instance(
        labels={"owner": "me", "team": "a"},
        serviceAccounts=[{"email": "other", "scopes": []}],
        scheduling={"automaticRestart": True, "provisioningModel": "SPOT"},
        metadata={"items": [{"key": "taskcluster", "value": "x"}, {"key": "k", "value": "v"}]},
    )

    assert sent["labels"]["owner"] == "owner-example-com"
    assert sent["labels"]["team"] == "a"
    assert [account["email"] for account in sent["serviceAccounts"]] == [ACCOUNT]
    assert sent["serviceAccounts"][0]["scopes"] == [
        "https://www.googleapis.com/auth/cloud-platform"
    ]
    assert sent["scheduling"] == {"automaticRestart": False, "provisioningModel": "SPOT"}
    first, second = sent["metadata"]["items"]
    assert first == {"key": "k", "value": "v"}
    assert json.loads(second["value"]) == {
        "workerPoolId": "proj/linux",
        "providerId": "google",
        "workerGroup": ZONE,
        "rootUrl": "https://tc.example.com",
        "workerConfig": {"idleTimeoutSecs": 300},
    }


def test_a_description_of_its_own_comes_before_the_pools() -> None:
    assert the_instance()["description"] == "Linux for everybody"
    assert the_instance(description="mine")["description"] == "mine"


def test_a_pools_description_is_cut_to_what_the_cloud_takes() -> None:
    order = an_order(inputs={**an_order().inputs, "description": "x" * 5_000})
    (request, _) = inserts(order, service_account=ACCOUNT).requests
    assert request.instance_resource.description == "x" * 2_048


def test_only_disks_that_the_cloud_makes_and_keeps_are_labelled() -> None:
    """B34: a local SSD with labels is refused, and so is one that exists already."""
    disks = [
        {"boot": True, "initializeParams": {"labels": {"a": "1"}}, "labels": {"b": "2"}},
        {"type": "SCRATCH", "labels": {"c": "3"}, "initializeParams": {"diskType": "local-ssd"}},
        {"type": "PERSISTENT", "source": "zones/z/disks/d"},
    ]
    boot, scratch, existing = the_instance(disks=disks)["disks"]

    assert boot["initializeParams"]["labels"].keys() >= {"a", "b", "worker-manager-deployment"}
    assert scratch == {"type": "SCRATCH", "initializeParams": {"diskType": "local-ssd"}}
    assert existing == {"type": "PERSISTENT", "source": "zones/z/disks/d"}


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"futureField": 1}, "futureField"),
        ({"scheduling": {"futureField": 1}}, "futureField"),
        ({"disks": [{"initializeParams": {"futureField": 1}}]}, "disks[0].initializeParams"),
        ({"canIpForward": "perhaps"}, "canIpForward"),
        ({"disks": ["a"]}, "disks"),
        ({"metadata": ["a"]}, "metadata"),
        ({"labels": "a"}, "labels"),
    ],
)
def test_what_the_cloud_would_not_understand_is_refused_by_name(
    body: dict[str, Any], named: str
) -> None:
    """The SDK would drop it without a word."""
    with pytest.raises(InvalidLaunchConfigError, match=re.escape(named)) as caught:
        the_instance(**body)
    assert "Available Fields" not in str(caught.value)


def test_the_launch_configs_of_real_pools_are_understood() -> None:
    pools = json.loads((DATA / "worker-pools-google.json").read_text())
    bodies = [config for pool in pools for config in pool["config"]["launchConfigs"]]
    asked = [inserts(an_order(body=body, count=1), service_account=ACCOUNT) for body in bodies]

    assert len(asked) > 40
    assert {one.requests[0].zone for one in asked} == {body["zone"] for body in bodies}


def test_the_same_order_is_the_same_requests() -> None:
    once, again = (inserts(an_order(), service_account=ACCOUNT).requests for _ in range(2))

    assert once == again
    assert [one.instance_resource.name for one in once] == [
        machine_name(an_order(), index) for index in range(2)
    ]
    assert [one.request_id for one in once] == [request_id(an_order(), i) for i in range(2)]
    assert {(one.project, one.zone) for one in once} == {(PROJECT, ZONE)}


@pytest.mark.parametrize(
    "pool_id", ["proj/linux", "9_P/w", "-x/y", "Proj-" + "x" * 33 + "/" + "w" * 38]
)
def test_names_are_what_the_cloud_takes_and_no_two_are_alike(pool_id: str) -> None:
    orders = [an_order(pool_id=pool_id, order_id=one) for one in ("Order-a", "Order-A")]
    names = {machine_name(order, index) for order in orders for index in range(100)}
    ids = {request_id(order, index) for order in orders for index in range(100)}

    assert len(names) == len(ids) == 200
    assert all(re.fullmatch(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", name) for name in names)
    assert all(UUID(one).int for one in ids)


def test_only_the_machines_that_are_still_wanted_are_asked_for() -> None:
    wanted = machine_name(an_order(), 1)
    (request,) = inserts(an_order(only=frozenset({wanted})), service_account=ACCOUNT).requests

    assert request.instance_resource.name == wanted
