"""What a config on Azure may say, and what its launch configs ask of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.api.clouds import (
    AZURE,
    SUBSCRIPTION,
    a_deployment_config,
    a_machine_config,
    real_pools,
    taken,
    with_clouds,
)
from tests.api.world import BASE
from worker_manager.api.offerings import location_of, offering_of
from worker_manager.api.refusals import Refusal

if TYPE_CHECKING:
    from tests.api.world import Api

LC = "config.launchConfigs[0]"
ARM = f"{LC}.armDeployment"
SPEC = (
    f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg/providers/Microsoft.Resources"
    "/templateSpecs/worker/versions/1.0"
)
SECRET = {"reference": {"keyVault": {"id": "vault"}, "secretName": "password"}}


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in a_machine_config().items() if key != name}


def deployed(**deployment: Any) -> dict[str, Any]:
    return a_deployment_config(deployment)


def with_parameters(**parameters: Any) -> dict[str, Any]:
    return deployed(parameters={"location": {"value": "eastus"}, **parameters})


def managed(**options: Any) -> dict[str, Any]:
    return a_machine_config(workerManager=options)


@pytest.fixture
def clouds(api: Api) -> Api:
    return with_clouds(api)


def test_real_pools_are_taken_as_they_are(clouds: Api) -> None:
    for pool in real_pools("azure"):
        name = pool.pop("workerPoolId").replace("/", "%2F")
        created = clouds.ok("PUT", f"{BASE}/worker-pool/{name}", pool)
        assert created["config"] == pool["config"]


@pytest.mark.parametrize(
    ("launch_config", "what"),
    [
        *(
            (without(name), f"{LC}.{name}: field required")
            for name in (
                "location",
                "subnetId",
                "hardwareProfile",
                "storageProfile",
                "workerConfig",
            )
        ),
        ("x", f"{LC}: "),
        (
            a_machine_config(location="East US 2"),
            f"{LC}.location: must be Azure's short name in lower case, such as eastus2",
        ),
        (a_machine_config(location="größer"), f"{LC}.location: must be Azure's short name"),
        (a_machine_config(subnetId=""), f"{LC}.subnetId: "),
        (a_machine_config(hardwareProfile={}), f"{LC}.hardwareProfile.vmSize: field required"),
        (a_machine_config(storageProfile={}), f"{LC}.storageProfile.osDisk: field required"),
        (
            a_machine_config(storageProfile={"osDisk": {}, "dataDisks": ["x"]}),
            f"{LC}.storageProfile.dataDisks[0]: ",
        ),
        (a_machine_config(networkProfile={}), f"{LC}.networkProfile.networkInterfaces: field"),
        (a_machine_config(networkProfile=None), f"{LC}.networkProfile: "),
        (a_machine_config(billingProfile={"maxPrice": "1"}), f"{LC}.billingProfile.maxPrice: "),
        (a_machine_config(osProfile=[]), f"{LC}.osProfile: "),
        (a_machine_config(tags={"a": 1}), f"{LC}.tags.a: "),
        (managed(publicIp="yes"), f"{LC}.workerManager.publicIp: "),
        (managed(keepDeployment=1), f"{LC}.workerManager.keepDeployment: "),
        (
            managed(ignoreFailedProvisioningStates=["a", "a"]),
            f"{LC}.workerManager.ignoreFailedProvisioningStates: must not contain a value twice",
        ),
        (a_deployment_config(workerConfig=1), f"{LC}.workerConfig: "),
        (a_deployment_config(hardwareProfile={}), "must not contain hardwareProfile beside"),
        (a_deployment_config(armDeploymentResourceGroup="a/b"), f"{LC}.armDeploymentResourceGroup"),
        (a_deployment_config() | {"armDeployment": None}, f"{ARM}: "),
        (deployed(mode="Complete"), f"{ARM}.mode: "),
        (deployed(unknown=1), f"{ARM}.unknown: unknown field"),
        (deployed(template={}), f"{ARM}: must contain either template or templateLink"),
        (deployed(templateLink=None), f"{ARM}.templateLink: "),
        (deployed(templateLink={}), f"{ARM}.templateLink.uri: field required"),
        (deployed(templateLink={"id": "x"}), f"{ARM}.templateLink.id: "),
        (deployed(templateLink={"id": SPEC, "uri": "x"}), f"{ARM}.templateLink.uri: unknown field"),
        (deployed(parameters={}), f"{ARM}.parameters.location: field required"),
        (
            deployed(parameters={"location": SECRET}),
            f"{ARM}.parameters.location.value: field required",
        ),
        (with_parameters(location={"value": "East US"}), f"{ARM}.parameters.location.value: "),
        (with_parameters(size="x"), f"{ARM}.parameters.size: "),
        (with_parameters(size={"value": 1, "x": 1}), f"{ARM}.parameters.size.x: unknown field"),
        (
            with_parameters(password={"reference": {}}),
            "password.reference.keyVault: field required",
        ),
        (deployed(parametersLink={}), f"{ARM}.parametersLink.uri: field required"),
        (deployed(parametersLink=None), f"{ARM}.parametersLink: "),
        (deployed(debugSetting={"detailLevel": "all"}), f"{ARM}.debugSetting.detailLevel: "),
        (deployed(onErrorDeployment={"type": "x"}), f"{ARM}.onErrorDeployment.type: "),
        (
            deployed(expressionEvaluationOptions={"scope": "x"}),
            f"{ARM}.expressionEvaluationOptions.scope: ",
        ),
    ],
)
def test_a_launch_config_that_is_wrong_is_refused_by_field_name(
    launch_config: Any, what: str
) -> None:
    with pytest.raises(Refusal) as refused:
        taken(AZURE, launch_config)
    assert refused.value.code == "InputValidationError"
    assert what in refused.value.message


@pytest.mark.parametrize(
    "launch_config",
    [
        a_machine_config(
            priority="Spot",
            billingProfile={"maxPrice": -1},
            osProfile={"windowsConfiguration": {}},
            networkProfile={"networkInterfaces": [], "networkApiVersion": "2024-05-01"},
            ignoreFailedProvisioningStates=["OSProvisioningClientError"],
            zones=["1"],
        ),
        managed(publicIp=True, keepDeployment=True, ignoreFailedProvisioningStates=["a", "b"]),
        deployed(templateLink={"id": SPEC}, debugSetting={"detailLevel": "requestContent"}),
        with_parameters(password=SECRET, zones={"value": ["1"]}, nothing={"value": None}),
        {
            "armDeployment": {
                "mode": "Incremental",
                "template": {"resources": []},
                "parameters": {"location": {"value": "eastus"}},
            },
            "workerConfig": {},
            "location": "eastus",
        },
    ],
    ids=range(5),
)
def test_a_launch_config_that_is_right_is_taken_as_it_is(launch_config: dict[str, Any]) -> None:
    parts = taken(AZURE, launch_config)
    [body] = parts.bodies.values()
    manager = launch_config.get("workerManager", {})
    assert {**body, "workerManager": manager} == {"workerManager": {}, **launch_config}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (a_deployment_config(), "eastus/Standard_D2s_v5/spot"),
        (a_machine_config(), "eastus/Standard_D2s_v5/regular"),
        (a_machine_config(priority="Spot"), "eastus/Standard_D2s_v5/spot"),
        (a_machine_config(priority="Low"), "eastus/Standard_D2s_v5/spot"),
        (a_machine_config(priority="Regular"), "eastus/Standard_D2s_v5/regular"),
        (with_parameters(vmSize={"value": "Standard_D4s_v5"}), "eastus/Standard_D4s_v5/regular"),
        (with_parameters(vmSize=SECRET), None),
        (with_parameters(), None),
    ],
)
def test_an_offering_is_subscription_location_size_and_market(
    body: dict[str, Any], words: str | None
) -> None:
    assert offering_of(AZURE)(body) == (f"{SUBSCRIPTION}/{words}" if words else "")
    assert location_of(AZURE)(body) == SUBSCRIPTION
