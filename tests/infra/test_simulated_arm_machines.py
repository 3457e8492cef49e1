"""Machines of the simulated Azure: made with NIC, address and disks, and deleted with them."""

from __future__ import annotations

from typing import Any

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError

from infra.local.clouds.arm import Fate, Kind, Outcome, Power, Step
from tests.infra.arm_calls import SUBNET, SUBSCRIPTION, Arm, machine, refused

ALL_KINDS = [kind.value for kind in Kind]


def test_one_call_makes_a_machine_with_nic_address_and_disk(arm: Arm) -> None:
    made = arm.put(public_ip=True)
    assert made.properties.provisioning_state == "Creating"
    assert arm.statuses() == ["ProvisioningState/creating"]
    arm.clock.advance(1)
    assert arm.statuses() == ["ProvisioningState/succeeded", "PowerState/running"]
    found = arm.compute.virtual_machines.get("rg", "vm-1")
    assert found.properties is not None
    assert found.properties.vm_id == arm.cloud.machine("vm-1").vm_id
    assert found.properties.time_created is not None
    nic = arm.network.network_interfaces.get("rg", arm.names("networkInterfaces")[0])
    disk = arm.compute.disks.get("rg", arm.names("disks")[0])
    assert (nic.tags, disk.tags, disk.managed_by) == ({"order": "o1"}, {"order": "o1"}, found.id)
    assert nic.properties is not None
    assert nic.properties.virtual_machine is not None
    assert nic.properties.virtual_machine.id == found.id
    assert nic.properties.ip_configurations is not None
    address = nic.properties.ip_configurations[0].properties
    assert address is not None
    assert address.public_ip_address is not None
    assert str(address.public_ip_address.id).endswith(arm.names("publicIPAddresses")[0])


def test_secrets_are_not_shown_again(arm: Arm) -> None:
    profile = arm.put().properties.os_profile
    assert (profile.computer_name, profile.admin_password, profile.custom_data) == ("c", None, None)
    assert arm.cloud.machine("vm-1").secrets["customData"] == "aGVsbG8="


def test_the_same_request_again_changes_nothing(arm: Arm) -> None:
    first = arm.put()
    assert arm.put().properties.vm_id == first.properties.vm_id
    arm.clock.advance(1)
    assert arm.put().properties.provisioning_state == "Succeeded"
    assert [len(arm.names(kind)) for kind in ALL_KINDS] == [1, 1, 0, 1]


def test_a_machine_can_be_asked_for_only_if_there_is_none(arm: Arm) -> None:
    put: Any = arm.compute.virtual_machines.begin_create_or_update
    only_new: Any = {"match_condition": MatchConditions.IfMissing, "polling": False}
    assert put("rg", "vm-1", machine(), **only_new).result().name == "vm-1"
    for state in ("Creating", "Succeeded"):
        found = arm.compute.virtual_machines.get("rg", "vm-1")
        assert found.properties is not None
        assert found.properties.provisioning_state == state
        with pytest.raises(ResourceExistsError) as caught:
            put("rg", "vm-1", machine(location="westus"), **only_new)
        assert caught.value.status_code == 412
        arm.clock.advance(1)


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ({"location": "westus"}, (409, "InvalidResourceLocation")),
        ({"osProfile": {"computerName": "other"}}, (409, "PropertyChangeNotAllowed")),
    ],
)
def test_another_request_for_the_same_machine_is_refused(
    arm: Arm, overrides: dict[str, Any], expected: tuple[int, str]
) -> None:
    arm.put()
    assert refused(lambda: arm.put(**overrides)) == expected


@pytest.mark.parametrize(
    ("name", "overrides", "expected"),
    [
        ("v" * 65, {}, (400, "InvalidParameter")),
        ("vm-1", {"location": ""}, (400, "LocationRequired")),
        ("vm-1", {"location": "mars"}, (400, "LocationNotAvailableForResourceType")),
        ("vm-1", {"hardwareProfile": {}}, (400, "InvalidParameter")),
        ("vm-1", {"networkProfile": {}}, (400, "InvalidParameter")),
        (
            "vm-1",
            {"networkProfile": {"networkInterfaceConfigurations": [{"name": "n"}]}},
            (400, "InvalidParameter"),
        ),
        (
            "vm-1",
            {"networkProfile": {"networkInterfaces": [{"id": SUBNET}]}},
            (400, "InvalidResourceReference"),
        ),
        (
            "vm-1",
            {"osProfile": {"computerName": "c" * 16, "windowsConfiguration": {}}},
            (400, "InvalidParameter"),
        ),
        ("vm-1", {"osProfile": {"customData": "A" * 87_384}}, (400, "InvalidParameter")),
        ("vm-1", {"osProfile": {"customData": "no base64!"}}, (400, "InvalidParameter")),
        ("vm-1", {"tags": {"a<b": "c"}}, (400, "InvalidTagNameCharacters")),
        ("vm-1", {"tags": {str(n): "c" for n in range(51)}}, (400, "InvalidTagCount")),
        ("vm-1", {"tags": {"a": "c" * 257}}, (400, "InvalidTagNameOrValue")),
    ],
)
def test_a_malformed_request_is_refused(
    arm: Arm, name: str, overrides: dict[str, Any], expected: tuple[int, str]
) -> None:
    assert refused(lambda: arm.put(name, **overrides)) == expected
    assert [arm.names(kind) for kind in ALL_KINDS] == [[], [], [], []]


def test_a_deletion_takes_everything_with_it_one_after_the_other(arm: Arm) -> None:
    arm.put(public_ip=True)
    arm.clock.advance(1)
    arm.delete()
    assert arm.statuses() == ["ProvisioningState/deleting", "PowerState/running"]
    assert refused(arm.put) == (409, "OperationNotAllowed")
    arm.delete()
    arm.clock.advance(1)
    with pytest.raises(ResourceNotFoundError):
        arm.statuses()
    assert [len(arm.names(kind)) for kind in ALL_KINDS] == [0, 1, 1, 1]
    arm.clock.advance(0.2)
    assert [len(arm.names(kind)) for kind in ALL_KINDS] == [0, 0, 1, 0]
    arm.clock.advance(0.2)
    assert arm.names("publicIPAddresses") == []
    arm.delete()
    assert arm.cloud.refusals["ResourceNotFound", "-"] == 1


def test_what_is_not_told_to_go_with_its_machine_stays_and_can_be_deleted(arm: Arm) -> None:
    arm.put(storageProfile={"osDisk": {"name": "os", "createOption": "FromImage"}})
    arm.clock.advance(1)
    arm.delete()
    arm.clock.advance(2)
    assert [len(arm.names(kind)) for kind in ALL_KINDS] == [0, 0, 0, 1]
    assert arm.compute.disks.get("rg", "os").managed_by is None
    assert refused(
        lambda: arm.put(storageProfile={"osDisk": {"name": "os", "createOption": "FromImage"}})
    ) == (409, "ConflictingUserInput")
    arm.compute.disks.begin_delete("rg", "os", polling=False)
    arm.clock.advance(1)
    assert arm.names("disks") == []


def test_a_cascade_can_leave_something_behind(arm: Arm) -> None:
    arm.cloud.fates.add(Fate(Step.CASCADE, Outcome.LEFT_BEHIND, kind="networkInterfaces"))
    arm.put()
    arm.clock.advance(1)
    arm.delete()
    arm.clock.advance(2)
    assert [len(arm.names(kind)) for kind in ALL_KINDS] == [0, 1, 0, 0]


def test_machines_can_be_made_of_parts_and_parts_in_use_are_not_deleted(arm: Arm) -> None:
    group = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg/providers/Microsoft.Network"
    address: Any = {"location": "eastus"}
    arm.network.public_ip_addresses.begin_create_or_update("rg", "ip-1", address, polling=False)
    reference = {"id": f"{group}/publicIPAddresses/ip-1", "properties": {"deleteOption": "Delete"}}
    configuration = {"subnet": {"id": SUBNET}, "publicIPAddress": reference}
    nic: Any = {
        "location": "eastus",
        "properties": {"ipConfigurations": [{"name": "c", "properties": configuration}]},
    }
    arm.network.network_interfaces.begin_create_or_update("rg", "nic-1", nic, polling=False)
    profile = {"networkInterfaces": [{"id": f"{group}/networkInterfaces/nic-1"}]}
    arm.put(networkProfile=profile)
    arm.clock.advance(1)
    nics, addresses = arm.network.network_interfaces, arm.network.public_ip_addresses
    for call, expected in (
        (lambda: nics.begin_delete("rg", "nic-1", polling=False), (400, "NicInUse")),
        (
            lambda: addresses.begin_delete("rg", "ip-1", polling=False),
            (400, "PublicIPAddressCannotBeDeleted"),
        ),
        (
            lambda: arm.compute.disks.begin_delete("rg", arm.names("disks")[0], polling=False),
            (409, "OperationNotAllowed"),
        ),
        (lambda: arm.put("vm-2", networkProfile=profile), (400, "NicInUse")),
    ):
        assert refused(call) == expected
    arm.delete()
    arm.clock.advance(2)
    assert [len(arm.names(kind)) for kind in ALL_KINDS] == [0, 1, 1, 0]
    nics.begin_delete("rg", "nic-1", polling=False)
    arm.clock.advance(1)
    assert [len(arm.names(kind)) for kind in ALL_KINDS] == [0, 0, 0, 0]


def test_an_accepted_creation_tells_by_its_operation_how_it_fares(arm: Arm) -> None:
    path = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg/providers/Microsoft.Compute"
    sent = arm.send("PUT", f"{path}/virtualMachines/vm-1", machine())
    assert (sent.status, sent.headers["Retry-After"]) == (201, "10")
    operation = sent.headers["Azure-AsyncOperation"]
    assert arm.send("GET", operation).body["status"] == "InProgress"
    arm.clock.advance(1)
    ended = arm.send("GET", operation)
    assert ended.body["status"] == "Succeeded"
    assert "Retry-After" not in ended.headers
    deletion = arm.send("DELETE", f"{path}/virtualMachines/vm-1?forceDeletion=true")
    assert deletion.status == 202
    assert arm.send("GET", deletion.headers["Location"]).status == 202
    arm.clock.advance(1)
    assert arm.send("GET", deletion.headers["Location"]).status == 204
    assert arm.send("DELETE", f"{path}/virtualMachines/vm-1").status == 204
    arm.clock.advance(90_000)
    assert arm.send("GET", operation).status == 404


@pytest.mark.parametrize(
    ("outcome", "code", "statuses"),
    [
        (Outcome.FAIL, "AllocationFailed", ["ProvisioningState/failed/AllocationFailed"]),
        (
            Outcome.RUNS_ANYWAY,
            "OSProvisioningTimedOut",
            ["ProvisioningState/failed/OSProvisioningTimedOut", "PowerState/running"],
        ),
        (Outcome.NEVER_ENDS, "AllocationFailed", ["ProvisioningState/creating"]),
    ],
)
def test_a_creation_can_end_badly_or_never(
    arm: Arm, outcome: Outcome, code: str, statuses: list[str]
) -> None:
    arm.cloud.fates.add(
        Fate(Step.CREATE, outcome, kind="virtualMachines", location="eastus", code=code)
    )
    arm.put()
    arm.clock.advance(3600)
    assert arm.statuses() == statuses
    arm.put("vm-2")
    arm.clock.advance(1)
    assert arm.statuses("vm-2")[-1] == "PowerState/running"
    arm.delete()
    arm.clock.advance(2)
    assert [len(arm.names(kind)) for kind in ALL_KINDS] == [1, 1, 0, 1]


def test_a_failed_machine_is_tried_again_by_the_same_request(arm: Arm) -> None:
    arm.cloud.fates.add(Fate(Step.CREATE, Outcome.FAIL, kind="virtualMachines"))
    arm.put()
    arm.clock.advance(1)
    arm.put()
    arm.clock.advance(1)
    assert arm.statuses() == ["ProvisioningState/succeeded", "PowerState/running"]


@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        (Outcome.NO_EFFECT, "Succeeded"),
        (Outcome.FAIL, "Succeeded"),
        (Outcome.NEVER_ENDS, "Deleting"),
    ],
)
def test_a_deletion_can_have_no_effect_until_it_is_asked_for_again(
    arm: Arm, outcome: Outcome, state: str
) -> None:
    arm.cloud.fates.add(Fate(Step.DELETE, outcome, name="vm-1"))
    arm.put()
    arm.clock.advance(1)
    arm.delete()
    arm.clock.advance(3600)
    found: Any = arm.compute.virtual_machines.get("rg", "vm-1")
    assert found.properties.provisioning_state == state
    arm.delete()
    arm.clock.advance(1)
    assert arm.names("virtualMachines") == []


def test_a_machine_may_run_before_its_creation_has_ended(arm: Arm) -> None:
    arm.cloud.change_settings(vm_create_seconds=30, vm_boot_seconds=10)
    arm.put()
    arm.clock.advance(10)
    assert arm.statuses() == ["ProvisioningState/creating", "PowerState/running"]


def test_power_comes_and_goes(arm: Arm) -> None:
    machines = arm.compute.virtual_machines
    arm.put()
    assert refused(lambda: machines.begin_restart("rg", "vm-1", polling=False))[0] == 409
    arm.clock.advance(1)
    for begin, state in (
        (machines.begin_restart, "running"),
        (machines.begin_power_off, "stopped"),
        (machines.begin_start, "running"),
        (machines.begin_deallocate, "deallocated"),
    ):
        begin("rg", "vm-1", polling=False)
        arm.clock.advance(1)
        assert arm.statuses()[-1] == f"PowerState/{state}"


def test_only_a_running_machine_is_restarted(arm: Arm) -> None:
    machines = arm.compute.virtual_machines
    arm.put()
    arm.clock.advance(1)
    machines.begin_restart("rg", "vm-1", polling=False)
    machines.begin_power_off("rg", "vm-1", polling=False)
    arm.clock.advance(1)
    assert refused(lambda: machines.begin_restart("rg", "vm-1", polling=False))[0] == 409
    assert arm.cloud.machine("vm-1").reboots == 1


@pytest.mark.parametrize(
    ("policy", "left"), [({"evictionPolicy": "Delete"}, []), ({}, [Power.DEALLOCATED])]
)
def test_spot_machines_are_taken_back_as_their_policy_says(
    arm: Arm, policy: dict[str, str], left: list[Power]
) -> None:
    arm.put(priority="Spot", **policy)
    arm.clock.advance(1)
    arm.cloud.evict(["vm-1"])
    arm.clock.advance(2)
    assert [one.power for one in arm.cloud.machines()] == left


def test_tags_are_replaced_by_a_patch(arm: Arm) -> None:
    arm.put()
    change: Any = {"tags": {"a": "b"}}
    machines = arm.compute.virtual_machines
    patched = machines.begin_update("rg", "vm-1", change, polling=False).result()
    assert patched.tags == {"a": "b"}
