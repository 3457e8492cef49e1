"""What a pool's config may say: each refusal names its field, and nothing is written."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.api.world import BASE, POOL_PATH, a_definition, a_launch_config, a_static_definition
from worker_manager.api.offerings import offering_of
from worker_manager.settings import ProviderSettings

if TYPE_CHECKING:
    from tests.api.world import Api


def launch(**parameters: Any) -> dict[str, Any]:
    return a_launch_config(launchConfig={"ImageId": "ami-1", **parameters})


def managed(**options: Any) -> dict[str, Any]:
    return a_launch_config(workerManager=options)


def lcs(*configs: Any) -> dict[str, Any]:
    return a_definition(config={"launchConfigs": list(configs)})


def config(**values: Any) -> dict[str, Any]:
    return a_definition(config=values)


LC = "config.launchConfigs[0]"


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({}, "providerId: field required"),
        (a_definition(owner="nobody"), "owner: "),
        (a_definition(description="x" * 10_241), "description: "),
        (a_definition(emailOnError="yes"), "emailOnError: "),
        (a_definition() | {"config": []}, "config: "),
        (a_definition(extra=1), "extra: unknown field"),
        (a_definition(provider_id="aws"), "provider_id: unknown field"),
        (a_definition(providerId="a.b"), "providerId: "),
        (a_definition() | {"config": {}}, "config.launchConfigs: field required"),
        (config(unknown=1), "config.unknown: unknown field"),
        (config(minCapacity=-1), "config.minCapacity: "),
        (config(minCapacity=1.5), "config.minCapacity: "),
        (config(minCapacity=True), "config.minCapacity: must be a number"),
        (config(maxCapacity="10"), "config.maxCapacity: must be a number"),
        (config(maxCapacity=10**12), "config.maxCapacity: "),
        (config(minCapacity=11), "config: minCapacity must not be greater than maxCapacity"),
        (config(scalingRatio=1.1), "config.scalingRatio: "),
        (config(scalingRatio=-0.1), "config.scalingRatio: "),
        (config(lifecycle={"queueInactivityTimeout": 1199}), "queueInactivityTimeout: "),
        (config(lifecycle={"reregistrationTimeout": 2_592_001}), "reregistrationTimeout: "),
        (config(lifecycle={"registrationTimeout": -1}), "registrationTimeout: "),
        (config(lifecycle={"x": 1}), "config.lifecycle.x: unknown field"),
        (config(lifecycle=None), "config.lifecycle: "),
        (lcs("x"), f"{LC}: "),
        (lcs({"launchConfig": {"ImageId": "ami-1"}}), f"{LC}.region: field required"),
        (lcs(a_launch_config(), {}), "config.launchConfigs[1].region: field required"),
        (lcs(a_launch_config(region="Mars")), f"{LC}.region: "),
        (lcs({"region": "us-east-1"}), f"{LC}.launchConfig: field required"),
        (lcs(a_launch_config(launchConfig={})), f"{LC}.launchConfig: ImageId: field required"),
        (lcs(a_launch_config(launchConfig={"ImageId": 1})), f"{LC}.launchConfig: ImageId"),
        (lcs(launch(IamInstanceProfile={})), "must not contain IamInstanceProfile"),
        (lcs(launch(UserData="")), "must not contain UserData"),
        (lcs(launch(MinCount=1)), "must not contain MinCount"),
        (lcs(launch(MaxCount=1)), "must not contain MaxCount"),
        (lcs(launch(ClientToken="x")), "must not contain ClientToken"),
        (lcs(launch(DryRun=True)), "must not contain DryRun"),
        (lcs(a_launch_config(workerConfig=[])), f"{LC}.workerConfig: "),
        (lcs(a_launch_config(capacityPerInstance=0)), f"{LC}.capacityPerInstance: "),
        (lcs(a_launch_config(zone="a")), f"{LC}.zone: unknown field"),
        *(
            (lcs(a_launch_config(additionalUserData={name: "x"})), f"must not contain {name}")
            for name in (
                "rootUrl",
                "workerPoolId",
                "providerId",
                "workerGroup",
                "workerConfig",
                "launchConfigId",
            )
        ),
        (lcs(managed(launchConfigId="a b")), f"{LC}.workerManager.launchConfigId: "),
        (lcs(managed(launchConfigId="x" * 39)), f"{LC}.workerManager.launchConfigId: "),
        (lcs(managed(launchConfigId=None)), f"{LC}.workerManager.launchConfigId: "),
        (lcs(managed(capacityPerInstance=0)), f"{LC}.workerManager.capacityPerInstance: "),
        (lcs(managed(initialWeight=2)), f"{LC}.workerManager.initialWeight: "),
        (lcs(managed(initialWeight=None)), f"{LC}.workerManager.initialWeight: "),
        (lcs(managed(maxCapacity=-1)), f"{LC}.workerManager.maxCapacity: "),
        (lcs(managed(publicIp=True)), f"{LC}.workerManager.publicIp: unknown field"),
        (a_definition(providerId="static"), f"{LC}.region: unknown field"),
        (a_static_definition(config={"lifecycle": {"registrationTimeout": 1}}), "unknown field"),
        (a_static_definition(config={"workerConfig": 1}), "config.workerConfig: "),
        (a_static_definition(providerId="aws"), "config.launchConfigs: field required"),
        (
            a_definition(providerId="null-provider", config={"launchConfigs": "x"}),
            "config.launchConfigs: ",
        ),
    ],
)
def test_a_config_that_is_wrong_is_refused_by_field_name(
    api: Api, body: dict[str, Any], told: str
) -> None:
    before = api.contents()
    response = api("PUT", POOL_PATH, body)
    assert (response.status, response.code) == (400, "InputValidationError")
    assert told in response.message
    assert api.contents() == before
    assert api.provision.messages == []
    assert api.bus.events == []


@pytest.mark.parametrize(
    "body",
    [
        lcs(),
        lcs(launch(InstanceType="m5.large", TagSpecifications=[], SecurityGroupIds=["sg-1"])),
        lcs(managed(launchConfigId="a_b-C", capacityPerInstance=3, initialWeight=0, maxCapacity=0)),
        lcs(a_launch_config(capacityPerInstance=2, workerConfig={}, additionalUserData={"x": 1})),
        config(minCapacity=10, maxCapacity=10, scalingRatio=0),
        config(minCapacity=2.0),
        a_static_definition(config={}),
        a_static_definition(config={"lifecycle": {"reregistrationTimeout": 3600}}),
        a_definition(providerId="null-provider") | {"config": {"anything": [1, None]}},
    ],
)
def test_a_config_that_is_right_is_taken_as_it_is(api: Api, body: dict[str, Any]) -> None:
    expected = dict(body["config"])
    if not expected.get("launchConfigs", True):
        del expected["launchConfigs"]
    assert api.ok("PUT", POOL_PATH, body)["config"] == expected


def test_defaults_of_a_lifecycle_that_is_given_are_written_into_it(api: Api) -> None:
    created = api.ok("PUT", POOL_PATH, config(lifecycle={"registrationTimeout": 1800}))
    assert created["config"]["lifecycle"] == {
        "registrationTimeout": 1800,
        "reregistrationTimeout": 345_600,
        "queueInactivityTimeout": 7200,
    }


def test_every_fault_is_told_at_once_but_not_hundreds(api: Api) -> None:
    response = api("PUT", POOL_PATH, lcs(*({} for _ in range(50))))
    assert response.message.count("field required") == 20
    assert "and 80 more" in response.message


def test_user_data_that_ec2_would_not_take_is_refused_when_it_is_written(api: Api) -> None:
    """B35: bugzilla 1631824, taskcluster PR#2790; not when it is launched."""
    fitting = a_launch_config(additionalUserData={"x": "y" * 16_000})
    api.ok("PUT", POOL_PATH, lcs(fitting))
    before = api.contents()
    secret = "hunter2" * 2500
    too_long = a_launch_config(additionalUserData={"password": secret}) | {
        "workerManager": {"launchConfigId": "lc-b"}
    }
    response = api("POST", POOL_PATH, lcs(fitting, too_long))
    assert (response.status, response.code) == (400, "InputValidationError")
    assert "config.launchConfigs[1]: user data would be" in response.message
    assert "hunter2" not in response.message
    assert api.contents() == before
    assert all("hunter2" not in str(event) for event in api.bus.events)


def test_a_launch_config_that_no_item_could_hold_is_refused(api: Api) -> None:
    response = api("PUT", POOL_PATH, lcs(launch(Text="x" * 351_000)))
    assert response.status == 400
    assert "at most 350000 can be stored" in response.message


def test_more_launch_configs_than_a_pool_can_have_are_refused(api: Api) -> None:
    many = [managed(launchConfigId=f"lc-{number}") for number in range(501)]
    response = api("PUT", POOL_PATH, lcs(*many))
    assert response.status == 400
    assert "config.launchConfigs: has 501 items, over 500" in response.message


def test_a_definition_that_no_item_could_hold_is_refused(api: Api) -> None:
    body = a_static_definition(config={"workerConfig": {"x": "y" * 350_000}})
    response = api("PUT", POOL_PATH, body)
    assert response.status == 400
    assert "at most 340000 can be stored" in response.message


def test_the_largest_change_of_a_pool_can_be_written(api: Api) -> None:
    def definition(letter: str) -> dict[str, Any]:
        ids = [f"lc-{letter}-{'x' * 30}{number:03}" for number in range(500)]
        return lcs(*(managed(launchConfigId=name, initialWeight=0.123) for name in ids))

    path = f"{BASE}/worker-pool/{'p' * 38}%2F{'w' * 38}"
    api.ok("PUT", path, definition("a"))
    api.bus.refuses = True
    api.ok("POST", path, definition("b"))
    [waiting] = api.deps.stores.places.unpublished()
    assert len(waiting.events) == 1001


def test_a_config_that_could_not_be_read_back_is_refused(api: Api) -> None:
    """Quotes count twice in an answer: it is JSON inside JSON on its way to the gateway."""
    body = {**a_launch_config(), "workerConfig": {}}
    configs = [
        {
            **body,
            "launchConfig": {"ImageId": "ami-1", "Rest": ["", "", ""] * 20_000},
            "workerManager": {"launchConfigId": f"lc-{number}"},
        }
        for number in range(20)
    ]
    response = api("PUT", POOL_PATH, raw=compact(lcs(*configs)))
    assert response.status == 400
    assert "bytes when sent; at most 4500000" in response.message


def compact(body: dict[str, Any]) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()


@pytest.mark.parametrize(
    ("parameters", "offering"),
    [
        ({"InstanceType": "m5.large"}, "us-east-1/any/m5.large/on-demand"),
        (
            {
                "InstanceType": "u-6tb1.metal",
                "SubnetId": "subnet-0123456789abcdef0",
                "InstanceMarketOptions": {"MarketType": "spot"},
            },
            "us-east-1/subnet-0123456789abcdef0/u-6tb1.metal/spot",
        ),
        ({}, ""),
        ({"InstanceType": "m5.large", "Placement": {"AvailabilityZone": "a/b"}}, ""),
        ({"InstanceType": "m" * 2000}, ""),
        ({"InstanceType": "größer"}, ""),
    ],
)
def test_what_may_be_no_key_is_an_offering_of_its_own(
    parameters: dict[str, Any], offering: str
) -> None:
    assert offering_of(ProviderSettings("aws", "aws"))(launch(**parameters)) == offering
