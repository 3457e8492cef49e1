"""Lists of the simulated Azure: pages, what they show and what they lack, lag."""

from __future__ import annotations

import time
from typing import Any

import pytest

from infra.local.clouds.arm import ArmCloud, Kind
from tests.infra.arm_calls import GROUP, SUBSCRIPTION, Arm, machine, refused

ALL = f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Compute/virtualMachines"


def pages(arm: Arm, path: str) -> list[list[Any]]:
    """The entries of all pages of a list."""
    found, url = [], path
    while url:
        body = arm.send("GET", url).body
        found.append(body["value"])
        url = body.get("nextLink", "")
    return found


@pytest.fixture
def groups(arm: Arm) -> Arm:
    arm.cloud.change_settings(resource_groups=("rg", "Other"), page_size=2)
    arm.cloud.seed("rg", 3, tags={"a": "b"}, prefix="one-")
    arm.cloud.seed("other", 2, tags={}, prefix="two-", with_parts=False)
    return arm


def test_lists_come_in_pages_of_the_subscription_and_of_a_group(groups: Arm) -> None:
    assert [len(page) for page in pages(groups, ALL)] == [2, 2, 1]
    listed = groups.compute.virtual_machines.list_all()
    assert len({found.id for found in listed}) == 5
    of_group = [found.name or "" for found in groups.compute.virtual_machines.list("OTHER")]
    assert [name.partition("-")[0] for name in of_group] == ["two", "two"]
    for listing in (
        groups.network.network_interfaces.list_all(),
        groups.network.network_interfaces.list("rg"),
        groups.compute.disks.list(),
        groups.compute.disks.list_by_resource_group("rg"),
    ):
        assert len(list(listing)) == 3
    assert list(groups.network.public_ip_addresses.list_all()) == []


def test_compute_writes_groups_in_upper_case_in_lists(groups: Arm) -> None:
    first = next(iter(groups.compute.virtual_machines.list_all()))
    assert "/resourceGroups/RG/" in str(first.id)
    assert first.tags == {"a": "b"}
    assert first.properties is not None
    assert first.properties.instance_view is None


def test_a_list_of_states_has_neither_tags_nor_model(groups: Arm) -> None:
    found = next(iter(groups.compute.virtual_machines.list_all(status_only="true")))
    assert (found.tags, found.location) == (None, "eastus")
    assert found.properties is not None
    assert (found.properties.hardware_profile, found.properties.vm_id) == (None, None)
    view = found.properties.instance_view
    assert view is not None
    codes = [status.code for status in view.statuses or []]
    assert codes == ["ProvisioningState/succeeded", "PowerState/running"]
    for path in (f"{ALL}?statusOnly=true", f"{GROUP}{ALL[51:]}"):
        assert len(pages(groups, path)[0]) == 2


def test_a_list_with_states_and_model_is_refused(groups: Arm) -> None:
    listing = groups.compute.virtual_machines.list_all(expand="instanceView")
    assert refused(lambda: list(listing)) == (400, "InvalidParameter")


def test_one_machine_is_shown_with_its_state_on_demand(groups: Arm) -> None:
    name = groups.cloud.machines()[0].name
    found = groups.compute.virtual_machines.get("rg", name, expand="instanceView")
    assert found.properties is not None
    assert found.properties.instance_view is not None


def test_lists_lag_while_a_look_at_one_does_not(arm: Arm) -> None:
    arm.cloud.change_settings(list_lag_seconds=10)
    arm.put()
    arm.clock.advance(5)
    assert arm.names("virtualMachines") == []
    assert arm.statuses()[-1] == "PowerState/running"
    arm.clock.advance(5)
    assert arm.names("virtualMachines") == ["vm-1"]
    arm.delete()
    arm.clock.advance(1)
    assert arm.names("virtualMachines") == ["vm-1"]
    assert refused(arm.statuses) == (404, "ResourceNotFound")
    assert arm.put().properties.provisioning_state == "Creating"
    arm.clock.advance(10)
    assert arm.names("virtualMachines") == ["vm-1"]


def test_many_that_come_and_go_leave_lists_in_order(arm: Arm) -> None:
    names = arm.cloud.seed("rg", 200, tags={}, with_parts=False)
    arm.cloud.delete(names[:150])
    arm.clock.advance(1)
    arm.put()
    assert arm.names("virtualMachines") == [*names[150:], "vm-1"]


def test_resource_groups_are_found_made_and_missed(arm: Arm) -> None:
    path = f"/subscriptions/{SUBSCRIPTION}/resourcegroups"
    assert arm.send("HEAD", f"{path}/RG").status == 204
    assert arm.send("HEAD", f"{path}/new").status == 404
    assert refused(lambda: arm.compute.virtual_machines.get("new", "vm-1")) == (
        404,
        "ResourceGroupNotFound",
    )
    assert [arm.send("PUT", f"{path}/new", {"location": "westus"}).status for _ in "ab"] == [
        201,
        200,
    ]
    assert arm.send("GET", f"{path}/NEW").body["location"] == "westus"
    assert [one["name"] for one in arm.send("GET", path).body["value"]] == ["rg", "new"]


def test_tens_of_thousands_are_there_at_once_and_a_page_is_quick() -> None:
    cloud = ArmCloud()
    started = time.perf_counter()
    cloud.seed("rg", 20_000, tags={"a": "b"}, with_parts=False)
    now = cloud.clock()
    page, token = cloud.estate.page(Kind.VM, "", after=15_000, size=200, now=now)
    assert (len(page), token) == (200, 15_200)
    assert time.perf_counter() - started < 20


def test_a_machine_put_by_bytes_is_like_one_by_model(arm: Arm) -> None:
    sent = arm.send("PUT", f"{GROUP}{ALL[51:]}/vm-1", machine(futureThing={"x": 1}))
    assert sent.body["properties"]["futureThing"] == {"x": 1}
