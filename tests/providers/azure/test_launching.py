"""From orders to requests, and what answers to them mean."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from infra.local.clouds.arm import ArmFault
from infra.local.clouds.faults import FaultKind
from tests.providers.orders import INPUTS
from tests.providers.stages_azure import AZURE_BODY, AZURE_TEMPLATE_BODY, SUBNET
from worker_manager.core.errors import (
    CloudError,
    CloudUnavailableError,
    InvalidLaunchConfigError,
    NotAuthorizedError,
    OutOfCapacityError,
    QuotaExceededError,
    ThrottledError,
)
from worker_manager.core.model import WorkerKey
from worker_manager.providers.azure.deployments import deployment
from worker_manager.providers.azure.inline import virtual_machine
from worker_manager.providers.azure.naming import machine_names
from worker_manager.providers.azure.tags import order_tags
from worker_manager.providers.protocol import Names, Slots, SlotsOf

if TYPE_CHECKING:
    from tests.providers.stages_azure import AzureStage

NAMES = machine_names("wm-0123456789abcdef", 0, deployment="wm-test")


def fault(stage: AzureStage, kind: FaultKind, action: str, **given: Any) -> None:
    stage.cloud.faults.add(ArmFault(kind, action, **given))


def request(stage: AzureStage, **given: Any) -> dict[str, Any]:
    order = stage.order(**given)
    shape = deployment if "armDeployment" in order.body else virtual_machine
    tags = order_tags(order, group="eastus", machine=NAMES.machine)
    return shape(order, NAMES, tags=tags, password="pa55", custom_data="ZGF0YQ==")


def test_everything_carries_the_callers_tags_the_references_and_ours(azure: AzureStage) -> None:
    assert request(azure)["tags"] == {
        "team": "a",
        "created-by": "taskcluster-wm-azure",
        "managed-by": "taskcluster",
        "provider-id": "azure",
        "worker-group": "eastus",
        "worker-pool-id": "proj/linux",
        "root-url": "https://tc.example.com",
        "owner": "owner@example.com",
        "launch-config-id": "lc-6350aa384f6ab04fc4d1",
        "worker-manager:deployment": "wm-test",
        "worker-manager:pool": "proj/linux",
        "worker-manager:launch-config": "lc-6350aa384f6ab04fc4d1",
        "worker-manager:order": "wm-0123456789abcdef",
        "worker-manager:ordered": "2031-05-17T12:00:00+00:00",
        "worker-manager:machine": NAMES.machine,
    }


def test_the_older_shape_is_one_request_in_which_all_goes_with_the_machine(
    azure: AzureStage,
) -> None:
    sent = request(azure)
    tags, properties = sent["tags"], sent["properties"]
    assert sent.keys() == {"location", "tags", "properties"}
    assert properties == {
        "hardwareProfile": AZURE_BODY["hardwareProfile"],
        "priority": "Spot",
        "evictionPolicy": "Deallocate",
        "billingProfile": {"maxPrice": -1},
        "osProfile": {
            "computerName": NAMES.computer,
            "adminUsername": NAMES.user,
            "adminPassword": "pa55",
            "customData": "ZGF0YQ==",
        },
        "storageProfile": {
            "imageReference": AZURE_BODY["storageProfile"]["imageReference"],
            "osDisk": {
                "createOption": "FromImage",
                "diskSizeGB": 75,
                "name": NAMES.disk(0),
                "deleteOption": "Delete",
            },
            "dataDisks": [
                {
                    "lun": 0,
                    "createOption": "Empty",
                    "diskSizeGB": 32,
                    "name": NAMES.disk(1),
                    "deleteOption": "Delete",
                }
            ],
        },
        "networkProfile": {
            "networkApiVersion": "2022-11-01",
            "networkInterfaceConfigurations": [
                {
                    "name": NAMES.nic,
                    "tags": tags,
                    "properties": {
                        "primary": True,
                        "deleteOption": "Delete",
                        "ipConfigurations": [
                            {
                                "name": NAMES.nic,
                                "properties": {"primary": True, "subnet": {"id": SUBNET}},
                            }
                        ],
                    },
                }
            ],
        },
    }


@pytest.mark.parametrize(
    ("manager", "is_public"),
    [({}, False), ({"publicIp": True}, True), ({"publicIp": "yes"}, False)],
)
def test_a_public_address_comes_only_where_it_is_asked_for(
    azure: AzureStage, manager: dict[str, Any], is_public: bool
) -> None:
    body = {**AZURE_BODY, "workerConfig": {"workerManager": {"publicIp": True}}}
    sent = request(azure, manager=manager, body=body)
    (interface,) = sent["properties"]["networkProfile"]["networkInterfaceConfigurations"]
    (address,) = interface["properties"]["ipConfigurations"]
    assert ("publicIPAddressConfiguration" in address["properties"]) is is_public
    if is_public:
        ip = address["properties"]["publicIPAddressConfiguration"]
        assert ip["properties"]["deleteOption"] == "Delete"
        assert ip["tags"] == sent["tags"]


def test_what_a_launch_config_says_beside_properties_stays_beside(azure: AzureStage) -> None:
    body = {
        **AZURE_BODY,
        "zones": ["1"],
        "identity": {"type": "SystemAssigned"},
        "osProfile": {"windowsConfiguration": {"timeZone": "UTC"}, "adminPassword": "theirs"},
        "networkProfile": {"networkInterfaces": [{"enableAcceleratedNetworking": True, "id": "x"}]},
        "ignoreFailedProvisioningStates": ["OSProvisioningClientError"],
    }
    sent = request(azure, body=body)
    assert (sent["zones"], sent["identity"]) == (["1"], {"type": "SystemAssigned"})
    assert sent["properties"].keys().isdisjoint({"zones", "identity", "subnetId", "tags"})
    assert sent["properties"]["osProfile"]["windowsConfiguration"] == {"timeZone": "UTC"}
    assert sent["properties"]["osProfile"]["adminPassword"] == "pa55"
    network = sent["properties"]["networkProfile"]
    (interface,) = network["networkInterfaceConfigurations"]
    assert interface["properties"]["enableAcceleratedNetworking"] is True
    assert "networkInterfaces" not in network
    assert sent["tags"]["worker-manager:tolerated"] == "OSProvisioningClientError"


def test_a_template_goes_as_it_is_but_for_the_machines_own_parameters(
    azure_by_template: AzureStage,
) -> None:
    sent = request(azure_by_template)
    given = AZURE_TEMPLATE_BODY["armDeployment"]
    assert sent["properties"].keys() == given.keys()
    assert sent["properties"]["templateLink"] == given["templateLink"]
    assert sent["properties"]["parameters"] == {
        **given["parameters"],
        "tags": {"value": sent["tags"]},
        "vmName": {"value": NAMES.machine},
        "computerName": {"value": NAMES.computer},
        "adminUsername": {"value": NAMES.user},
        "adminPassword": {"value": "pa55"},
        "customData": {"value": "ZGF0YQ=="},
    }
    assert "worker-manager:keep" not in sent["tags"]
    kept = request(azure_by_template, manager={"keepDeployment": True})
    assert kept["tags"]["worker-manager:keep"] == "true"


def test_a_machine_is_told_what_a_stock_worker_runner_reads(azure: AzureStage) -> None:
    azure.provider.launch(azure.order())
    told = azure.cloud.machines()[0].secrets["customData"]
    assert json.loads(base64.b64decode(told)) == {
        "workerPoolId": "proj/linux",
        "workerGroup": "eastus",
        "providerId": "azure",
        "rootUrl": "https://tc.example.com",
        "workerConfig": {},
    }


def test_names_are_known_before_any_call_and_are_those_of_the_launch(
    stage_of_both: AzureStage,
) -> None:
    stage = stage_of_both
    assert isinstance(stage.provider, Names)
    expected = stage.provider.machines(stage.order())
    assert not stage.cloud.calls
    found = stage.provider.launch(stage.order()).machines
    assert [one.key for one in found] == [one.key for one in expected]
    for before, after in zip(expected, found, strict=True):
        assert before.identity.items() <= after.identity.items()
        assert before.identity["resourceGroup"] == (
            "rg" if stage.body is AZURE_BODY else "rg-templates"
        )


def test_only_the_machines_that_are_still_wanted_are_launched(stage_of_both: AzureStage) -> None:
    stage = stage_of_both
    (_, second) = stage.provider.machines(stage.order())
    only = stage.order(only=frozenset({second.key.worker_id}))
    assert [one.key for one in stage.provider.launch(only).machines] == [second.key]
    assert len(stage.cloud.machines()) == 1


def test_some_machines_of_an_order_may_be_refused_for_good(azure: AzureStage) -> None:
    keys = [one.key for one in azure.provider.machines(azure.order(count=3))]
    fault(
        azure, FaultKind.ERROR, "virtualMachines.put", code="QuotaExceeded", name=keys[1].worker_id
    )
    result = azure.provider.launch(azure.order(count=3))
    assert {one.key for one in result.machines} == {keys[0], keys[2]}
    assert (result.refused, result.not_made) == (1, frozenset({keys[1]}))
    assert isinstance(result.error, QuotaExceededError)
    assert result.unanswered is None


def test_lost_answers_leave_an_order_open_and_its_repetition_finds_the_machines(
    stage_of_both: AzureStage,
) -> None:
    """S8: the same names, so no second machine."""
    stage = stage_of_both
    action = "virtualMachines.put" if stage.body is AZURE_BODY else "deployments.put"
    fault(stage, FaultKind.LOST, action)
    first = stage.provider.launch(stage.order(count=3))
    assert (len(first.machines), first.refused) == (2, 0)
    assert isinstance(first.unanswered, CloudUnavailableError)
    second = stage.provider.launch(stage.order(count=3))
    assert (len(second.machines), second.unanswered) == (3, None)
    assert len(stage.cloud.machines()) == 3


def test_a_machine_that_is_there_already_is_left_as_it_is(azure: AzureStage) -> None:
    """Put only where there is none; a refusal for that reason is as good as an acceptance."""
    azure.provider.launch(azure.order())
    azure.cloud.reset_counts()
    changed = azure.order(body={**AZURE_BODY, "tags": {"team": "b"}})
    result = azure.provider.launch(changed)
    assert (len(result.machines), result.error, result.unanswered) == (2, None, None)
    assert azure.cloud.refusals["PreconditionFailed", "eastus"] == 2
    assert {one.tags["team"] for one in azure.cloud.machines()} == {"a"}


def test_a_throttled_order_waits_as_long_as_it_is_told(azure: AzureStage) -> None:
    fault(
        azure,
        FaultKind.ERROR,
        "virtualMachines.put",
        code="TooManyRequests",
        retry_after=42,
        times=9,
    )
    with pytest.raises(ThrottledError) as caught:
        azure.provider.launch(azure.order())
    assert caught.value.retry_after == timedelta(seconds=42)
    assert not azure.cloud.machines()


def test_a_wait_beside_a_lost_answer_leaves_in_doubt_what_was_done(
    stage_of_both: AzureStage,
) -> None:
    stage = stage_of_both
    action = "virtualMachines.put" if stage.body is AZURE_BODY else "deployments.put"
    fault(stage, FaultKind.LOST, action)
    fault(stage, FaultKind.ERROR, action, code="TooManyRequests", times=2)
    with pytest.raises(ThrottledError) as caught:
        stage.provider.launch(stage.order(count=3))
    assert caught.value.is_doubtful


def test_once_azure_says_to_wait_nothing_more_is_begun(azure: AzureStage) -> None:
    fault(azure, FaultKind.ERROR, "virtualMachines.put", code="TooManyRequests", times=None)
    with pytest.raises(ThrottledError):
        azure.provider.launch(azure.order(count=100))
    assert azure.cloud.calls_of("virtualMachines.put") <= 32


def test_a_resource_group_that_is_missing_is_made_once(azure_by_template: AzureStage) -> None:
    stage = azure_by_template
    body = {**AZURE_TEMPLATE_BODY, "armDeploymentResourceGroup": "RG-New"}
    stage.provider.launch(stage.order(count=8, body=body))
    assert len(stage.cloud.machines()) == 8
    assert stage.cloud.calls_of("resourceGroups.put") == 1
    made = stage.cloud.estate.groups["rg-new"]
    assert (made.location, made.tags["worker-manager:deployment"]) == ("eastus", "wm-test")


def test_a_resource_group_that_was_deleted_is_made_anew(azure_by_template: AzureStage) -> None:
    stage = azure_by_template
    for order_id in ("wm-1", "wm-2"):
        stage.cloud.estate.groups.pop("rg-templates")
        assert len(stage.provider.launch(stage.order(order_id=order_id)).machines) == 2


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("AuthorizationFailed", NotAuthorizedError),
        ("TooManyRequests", ThrottledError),
        ("InternalServerError", CloudUnavailableError),
    ],
)
def test_a_resource_group_that_cannot_be_made_is_the_answer(
    azure_by_template: AzureStage, code: str, error: type[CloudError]
) -> None:
    stage = azure_by_template
    stage.cloud.estate.groups.pop("rg-templates")
    fault(stage, FaultKind.ERROR, "resourceGroups.put", code=code)
    with pytest.raises(error) as caught:
        stage.provider.launch(stage.order(count=8))
    assert caught.value.code == code
    assert stage.cloud.calls_of("resourceGroups.put") == 1


def test_a_resource_group_that_somebody_made_elsewhere_meanwhile_is_as_good(
    azure_by_template: AzureStage,
) -> None:
    stage = azure_by_template
    fault(
        stage,
        FaultKind.ERROR,
        "deployments.put",
        code="ResourceGroupNotFound",
        times=2,
        message="Resource group 'RG-Templates' could not be found.",
    )
    fault(stage, FaultKind.ERROR, "resourceGroups.put", code="InvalidResourceGroupLocation")
    assert len(stage.provider.launch(stage.order()).machines) == 2


def test_a_resource_group_that_a_template_misses_is_nobodys_to_make(
    azure_by_template: AzureStage,
) -> None:
    stage = azure_by_template
    fault(
        stage,
        FaultKind.ERROR,
        "deployments.put",
        code="ResourceGroupNotFound",
        times=2,
        message="Resource group 'theirs' could not be found.",
    )
    with pytest.raises(InvalidLaunchConfigError):
        stage.provider.launch(stage.order())
    assert not stage.cloud.calls_of("resourceGroups.put")


def test_the_providers_own_resource_group_is_never_made(azure_by_template: AzureStage) -> None:
    stage = azure_by_template
    stage.cloud.estate.groups.pop("rg")
    body = {key: AZURE_TEMPLATE_BODY[key] for key in ("armDeployment", "workerConfig")}
    with pytest.raises(InvalidLaunchConfigError) as caught:
        stage.provider.launch(stage.order(body=body))
    assert caught.value.code == "ResourceGroupNotFound"
    assert not stage.cloud.calls_of("resourceGroups.put")


def test_what_is_refused_at_once_inside_a_deployment_has_its_own_error(
    azure_by_template: AzureStage,
) -> None:
    azure_by_template.allow(0)
    with pytest.raises(OutOfCapacityError) as caught:
        azure_by_template.provider.launch(azure_by_template.order())
    assert caught.value.code == "SkuNotAvailable"


@pytest.mark.parametrize(
    "body",
    [
        {"workerConfig": {}},
        {"location": 7},
        {"armDeployment": {"mode": "Incremental"}, "location": "eastus"},
        {**AZURE_BODY, "tags": ["a"]},
        {**AZURE_BODY, "storageProfile": ["a"]},
        {**AZURE_BODY, "networkProfile": {"networkInterfaces": ["a"]}},
    ],
)
def test_a_launch_config_that_can_make_nothing_is_to_blame(
    azure: AzureStage, body: dict[str, Any]
) -> None:
    with pytest.raises(InvalidLaunchConfigError):
        azure.provider.launch(azure.order(body=body))
    assert not azure.cloud.calls


def test_a_location_may_be_written_as_people_do(azure: AzureStage) -> None:
    order = azure.order(body={**AZURE_BODY, "location": "East US"}, count=1)
    (machine,) = azure.provider.launch(order).machines
    assert machine.key == WorkerKey("proj/linux", "eastus", machine.key.worker_id)
    assert [seen.key for seen in azure.provider.instances(azure.location)] == [machine.key]


def test_records_take_up_room_in_their_resource_group(
    azure: AzureStage, azure_by_template: AzureStage
) -> None:
    stage = azure_by_template
    assert isinstance(stage.provider, Slots)
    assert stage.provider.slots(stage.order()) == SlotsOf("rg-templates", 400)
    assert stage.provider.slots(azure.order()) is None
    assert stage.provider.slots_of(stage.absent) == "rg"
    settled = replace(stage.absent, identity={"resourceGroup": "rg", "vmId": "1"})
    assert stage.provider.slots_of(settled) is None


def test_another_deployment_makes_other_machines_of_an_order(azure: AzureStage) -> None:
    theirs = azure.order(inputs={**INPUTS, "deployment": "wm-else"})
    names = {one.key for one in azure.provider.machines(theirs)}
    assert names.isdisjoint({one.key for one in azure.provider.machines(azure.order())})
