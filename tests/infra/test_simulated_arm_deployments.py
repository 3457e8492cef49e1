"""Template deployments of the simulated Azure: what they make, their records, their failures."""

from __future__ import annotations

import json
from typing import Any

import pytest

from infra.local.clouds.arm import ArmError, Fate, Kind, Outcome, Step
from infra.local.clouds.arm.expressions import evaluate
from infra.local.clouds.capacity import CapacityScope
from tests.infra.arm_calls import GROUP, SUBNET, TEMPLATE, Arm

ALL_KINDS = [kind.value for kind in Kind]


def state(arm: Arm, name: str = "deploy-1") -> str:
    found: str = arm.deployment(name).body["properties"]["provisioningState"]
    return found


def error_of(arm: Arm, name: str = "deploy-1") -> Any:
    return arm.deployment(name).body["properties"]["error"]


def operations(arm: Arm) -> list[tuple[str, str]]:
    """Type and state of what the deployment did, from the documented path."""
    listed = arm.send("GET", f"{GROUP}/deployments/deploy-1/operations").body["value"]
    return [
        (
            one["properties"]["targetResource"]["resourceType"].partition("/")[2],
            one["properties"]["provisioningState"],
        )
        for one in listed
    ]


def test_a_deployment_makes_a_machine_step_by_step(arm: Arm) -> None:
    sent = arm.deploy()
    assert sent.status == 201
    assert sent.body["properties"]["provisioningState"] == "Accepted"
    operation = sent.headers["Azure-AsyncOperation"]
    arm.clock.advance(0.1)
    assert state(arm) == "Running"
    assert operations(arm) == [("networkInterfaces", "Running")]
    arm.clock.advance(0.2)
    assert operations(arm)[1:] == [("virtualMachines", "Running")]
    assert arm.send("GET", operation).body["status"] == "InProgress"
    arm.clock.advance(1)
    assert arm.send("GET", operation).body["status"] == "Succeeded"
    body = arm.deployment().body
    assert body["properties"]["provisioningState"] == "Succeeded"
    made = [one["id"].rpartition("/")[2] for one in body["properties"]["outputResources"]]
    assert made == ["vm-1-nic", "vm-1"]
    assert (arm.deployment(method="HEAD").status, body["tags"]) == (204, {"order": "o1"})
    assert [one.tags for one in arm.cloud.resources(Kind.DISK)] == [{"order": "o1"}]
    machine = arm.cloud.machine("vm-1")
    assert (machine.spot, machine.size) == (True, "Standard_D4s_v5")
    assert machine.properties["evictionPolicy"] == "Delete"


def test_secure_parameters_are_not_shown(arm: Arm) -> None:
    shown = arm.deploy().body["properties"]["parameters"]
    assert shown["adminPassword"] == {"type": "securestring"}
    assert shown["vmName"]["value"] == "vm-1"


@pytest.mark.parametrize(("cascades", "left"), [(True, [0, 0, 0, 0]), (False, [0, 1, 1, 1])])
def test_the_template_says_what_goes_with_the_machine(
    arm: Arm, cascades: bool, left: list[int]
) -> None:
    arm.cloud.change_settings(template_public_ip=True, template_delete_option=cascades)
    arm.deploy()
    arm.clock.advance(3)
    arm.delete()
    arm.clock.advance(3)
    assert [len(arm.names(kind)) for kind in ALL_KINDS] == left


def test_records_are_deleted_apart_from_what_they_made(arm: Arm) -> None:
    arm.deploy()
    arm.clock.advance(3)
    deletion = arm.deployment(method="DELETE")
    assert (deletion.status, state(arm)) == (202, "Deleting")
    assert arm.send("GET", deletion.headers["Location"]).status == 202
    assert arm.deployment(method="DELETE").status == 202
    arm.clock.advance(1)
    assert arm.send("GET", deletion.headers["Location"]).status == 204
    missing = arm.deployment()
    assert (missing.status, missing.body["error"]["code"]) == (404, "DeploymentNotFound")
    assert arm.deployment(method="DELETE").status == 204
    assert arm.names("virtualMachines") == ["vm-1"]


def test_a_running_deployment_is_neither_replaced_nor_deleted_but_cancelled(arm: Arm) -> None:
    arm.deploy()
    for again in (arm.deploy(), arm.deployment(method="DELETE")):
        assert (again.status, again.body["error"]["code"]) == (409, "DeploymentActive")
    arm.clock.advance(0.1)
    assert arm.deployment(method="POST", rest="/cancel").status == 204
    arm.clock.advance(3)
    assert (state(arm), arm.names("networkInterfaces")) == ("Canceled", ["vm-1-nic"])
    assert arm.names("virtualMachines") == []
    refused = arm.deployment(method="POST", rest="/cancel")
    assert refused.body["error"]["code"] == "DeploymentCannotBeCancelled"
    assert arm.deploy().status == 200
    arm.clock.advance(3)
    assert (state(arm), arm.names("virtualMachines")) == ("Succeeded", ["vm-1"])


def test_a_group_has_room_for_so_many_records(arm: Arm) -> None:
    arm.cloud.change_settings(deployment_limit=2)
    for name in "ab":
        assert arm.deploy(name, vmName=f"vm-{name}").status == 201
    full = arm.deploy("c")
    assert (full.status, full.body["error"]["code"]) == (409, "DeploymentQuotaExceeded")
    arm.clock.advance(3)
    assert arm.deploy("a", vmName="vm-a").status == 200
    arm.deployment("b", method="DELETE")
    assert arm.deploy("c").status == 409
    arm.clock.advance(3)
    assert arm.deploy("c").status == 201


def test_records_are_listed_newest_first_in_pages_by_state(arm: Arm) -> None:
    for name in "abc":
        arm.deploy(name, vmName=f"vm-{name}")
    arm.clock.advance(3)
    arm.deploy("d", vmName="vm-d")
    path = f"{GROUP}/providers/Microsoft.Resources/deployments/"
    done = f"{path}?$filter=provisioningState eq 'Succeeded'&$top=2".replace(" ", "%20")
    first = arm.send("GET", done).body
    assert [one["name"] for one in first["value"]] == ["c", "b"]
    assert [one["name"] for one in arm.send("GET", first["nextLink"]).body["value"]] == ["a"]
    assert len(arm.send("GET", path).body["value"]) == 4
    assert arm.send("GET", f"{path}?$filter=name").body["error"]["code"].startswith("InvalidFilter")


def test_what_can_be_told_at_once_is_refused_at_once(arm: Arm) -> None:
    arm.cloud.capacity[CapacityScope("eastus", spot=True)] = 0
    sent = arm.deploy()
    assert (sent.status, sent.body["error"]["code"]) == (400, "InvalidTemplateDeployment")
    assert [one["code"] for one in sent.body["error"]["details"]] == ["SkuNotAvailable"]
    assert arm.deployment().status == 404
    assert arm.deploy(priority="Regular").status == 201


def test_without_that_check_the_refusal_is_text_in_the_details(arm: Arm) -> None:
    arm.cloud.change_settings(checks_before_deploying=False)
    arm.cloud.capacity[CapacityScope("eastus")] = 0
    arm.deploy()
    arm.clock.advance(1)
    error = error_of(arm)
    assert (error["code"], error["details"][0]["code"]) == ("DeploymentFailed", "Conflict")
    inner = json.loads(error["details"][0]["message"])
    assert inner["error"]["code"] == "SkuNotAvailable"
    assert operations(arm)[-1] == ("virtualMachines", "Failed")
    assert arm.names("networkInterfaces") == ["vm-1-nic"]


def test_a_machine_that_fails_later_is_nested_in_the_details(arm: Arm) -> None:
    arm.cloud.change_settings(no_capacity_code="OverconstrainedAllocationRequest")
    arm.cloud.capacity[CapacityScope("eastus")] = 0
    operation = arm.deploy().headers["Azure-AsyncOperation"]
    arm.clock.advance(3)
    [detail] = error_of(arm)["details"]
    assert detail["code"] == "ResourceDeploymentFailure"
    assert [one["code"] for one in detail["details"]] == ["OverconstrainedAllocationRequest"]
    assert arm.send("GET", operation).body["error"]["code"] == "DeploymentFailed"
    listed = arm.send("GET", f"{GROUP}/deployments/deploy-1/operations").body["value"]
    message = listed[-1]["properties"]["statusMessage"]
    assert message["error"]["code"] == "ResourceDeploymentFailure"
    assert arm.cloud.machine("vm-1").state == "Failed"


def test_a_deployment_can_fail_or_never_end_by_itself(arm: Arm) -> None:
    arm.cloud.fates.add(
        Fate(Step.CREATE, Outcome.FAIL, kind="deployments", code="InternalExecutionError")
    )
    arm.cloud.fates.add(Fate(Step.CREATE, Outcome.NEVER_ENDS, kind="deployments"))
    arm.deploy("failing")
    arm.deploy("endless")
    arm.clock.advance(3600)
    assert error_of(arm, "failing")["details"][0]["code"] == "InternalExecutionError"
    assert state(arm, "endless") == "Running"
    assert [len(arm.names(kind)) for kind in ALL_KINDS] == [0, 1, 0, 0]


def test_the_deletion_of_a_record_can_be_stuck_or_in_vain(arm: Arm) -> None:
    arm.deploy()
    arm.clock.advance(3)
    for outcome, expected in ((Outcome.NEVER_ENDS, "Deleting"), (Outcome.FAIL, "Succeeded")):
        arm.cloud.fates.add(Fate(Step.DELETE, outcome, kind="deployments"))
        arm.deployment(method="DELETE")
        arm.clock.advance(3600)
        assert state(arm) == expected
    arm.cloud.deployments.vanish("rg", "deploy-1")
    assert arm.deployment().status == 404


@pytest.mark.parametrize(
    ("properties", "code"),
    [
        ({}, "InvalidDeployment"),
        ({"templateLink": {"uri": "https://templates.example.com/gone"}}, "InvalidContentLink"),
        ({"templateLink": {"id": TEMPLATE}, "parameters": {}}, "InvalidTemplate"),
        ({"template": {"resources": [{"type": "t", "name": "[oops"}]}}, None),
        ({"template": {"resources": [{"type": "t", "name": "[oops()]"}]}}, "InvalidTemplate"),
        ({"template": {}, "parameters": {"x": {"value": 1}}}, "InvalidTemplate"),
    ],
)
def test_a_senseless_deployment_is_refused(arm: Arm, properties: Any, code: str | None) -> None:
    arm.cloud.deployments.templates["https://templates.example.com/gone"] = None
    path = f"{GROUP}/providers/Microsoft.Resources/deployments/d"
    sent = arm.send("PUT", path, {"properties": properties})
    assert sent.body.get("error", {}).get("code") == code


def test_a_template_in_the_request_is_deployed_with_its_expressions(arm: Arm) -> None:
    nic = {
        "type": "Microsoft.Network/networkInterfaces",
        "name": "[format('{0}-{1}', parameters('name'), variables('end'))]",
        "location": "[resourceGroup().location]",
        "properties": {
            "ipConfigurations": [{"name": "c", "properties": {"subnet": {"id": SUBNET}}}]
        },
    }
    template = {
        "parameters": {"name": {"type": "string"}, "many": {"type": "bool", "defaultValue": False}},
        "variables": {"end": "[toLower('NIC')]"},
        "resources": [
            nic,
            nic | {"name": "second", "condition": "[parameters('many')]"},
            {"type": "Microsoft.Storage/storageAccounts", "name": "other"},
        ],
    }
    body = {"properties": {"template": template, "parameters": {"name": {"value": "a"}}}}
    arm.send("PUT", f"{GROUP}/providers/Microsoft.Resources/deployments/deploy-1", body)
    arm.clock.advance(1)
    assert operations(arm) == [("storageAccounts", "Succeeded"), ("networkInterfaces", "Succeeded")]
    assert arm.names("networkInterfaces") == ["a-nic"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("plain", "plain"),
        ("[[not an expression]", "[not an expression]"),
        ("[concat('it''s', 1)]", "it's1"),
        ("[if(equals(1, 1), createArray('a', 'b')[1], null())]", "b"),
        ("[union(json('{\"a\": 1}'), json('{\"b\": 2}')).b]", 2),
        ("[string(not(empty('')))]", "false"),
    ],
)
def test_expressions_are_evaluated(text: str, value: Any) -> None:
    assert evaluate(text, {}) == value


@pytest.mark.parametrize("text", ["[f(]", "[concat('a') 'b']", "['a'.b]", "[#]", "[.]"])
def test_senseless_expressions_are_refused(text: str) -> None:
    with pytest.raises(ArmError):
        evaluate(text, {})
