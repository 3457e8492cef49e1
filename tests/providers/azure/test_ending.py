"""Taking machines away, and what outlives them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from infra.local.clouds.arm import ArmFault, Fate, Kind, Outcome, Step
from infra.local.clouds.faults import FaultKind
from tests.providers.azure.machines_of_ours import launched, made
from tests.providers.orders import INPUTS, OTHER_DEPLOYMENT
from worker_manager.core.errors import (
    BadCredentialsError,
    CloudError,
    CloudUnavailableError,
    NotAuthorizedError,
)
from worker_manager.core.model import WorkerKey
from worker_manager.providers.protocol import Leftover, Sweeps

if TYPE_CHECKING:
    from tests.providers.stages_azure import AzureStage

LATER = timedelta(minutes=1)
TAKE_TIME = {
    "vm_delete_seconds": 10.0,
    "nic_delete_seconds": 3.0,
    "disk_delete_seconds": 3.0,
    "ip_delete_seconds": 3.0,
}


def everything(stage: AzureStage) -> list[tuple[Kind, str]]:
    return [(kind, one.name) for kind in Kind for one in stage.cloud.resources(kind)]


def leftovers(stage: AzureStage) -> list[Leftover]:
    assert isinstance(stage.provider, Sweeps)
    return list(stage.provider.leftovers(stage.location, {"rg-templates"}))


def sweep(stage: AzureStage) -> frozenset[str]:
    found = leftovers(stage)
    removed = stage.provider.remove(stage.location, found)
    assert not removed.failed
    assert removed.done == {one.resource_id for one in found}
    return removed.done


def test_a_removal_is_one_request_and_takes_everything(azure: AzureStage) -> None:
    """At most two calls a machine with cascade; the reference makes four to thirteen."""
    workers = made(azure, launched(azure, count=20, manager={"publicIp": True}))
    assert len(everything(azure)) == 20 * 5
    azure.cloud.reset_counts()
    assert len(azure.provider.terminate(workers).done) == 20
    assert {action for action, _ in azure.cloud.calls} == {"virtualMachines.delete"}
    assert azure.cloud.calls_of("virtualMachines.delete") == 20
    azure.pass_time(LATER)
    assert everything(azure) == []


def test_deleting_what_is_being_deleted_counts_as_done(azure: AzureStage) -> None:
    azure.cloud.change_settings(**TAKE_TIME)
    (worker,) = made(azure, launched(azure, count=1))
    azure.provider.terminate([worker])
    azure.cloud.faults.add(
        ArmFault(
            FaultKind.ERROR,
            "virtualMachines.delete",
            code="OperationNotAllowed",
            message="Operation 'delete' is not allowed on VM since the VM is marked for deletion.",
        )
    )
    assert azure.provider.terminate([worker]).done == {worker.key}


LOCKED = "The scope cannot perform delete operation because following scope(s) are locked: 'rg'."


@pytest.mark.parametrize(
    ("status", "code", "message", "error"),
    [
        (409, "AnotherOperationInProgress", "busy", CloudUnavailableError),
        (409, "ScopeLocked", LOCKED, CloudUnavailableError),
        (409, "OperationNotAllowed", "'delete' is not allowed: it is moved", CloudUnavailableError),
        (404, "SubscriptionNotFound", "no such subscription", BadCredentialsError),
    ],
)
def test_what_was_not_deleted_is_told(
    azure: AzureStage, status: int, code: str, message: str, error: type[CloudError]
) -> None:
    (worker,) = made(azure, launched(azure, count=1))
    azure.cloud.faults.add(
        ArmFault(
            FaultKind.ERROR, "virtualMachines.delete", code=code, status=status, message=message
        )
    )
    (failed,) = azure.provider.terminate([worker]).failed.values()
    assert type(failed) is error


def test_machines_of_a_resource_group_that_is_gone_are_gone(stage_of_both: AzureStage) -> None:
    stage = stage_of_both
    workers = launched(stage, count=5)
    stage.cloud.forget([worker.key.worker_id for worker in workers], Kind.VM)
    stage.lose_records()
    stage.cloud.estate.groups.pop(workers[0].identity["resourceGroup"])
    stage.cloud.reset_counts()
    assert set(stage.provider.lookup(stage.location, workers).values()) == {None}
    assert sum(stage.cloud.calls.values()) <= 2
    assert len(stage.provider.terminate(workers).done) == 5


def test_a_deployment_under_way_is_stopped_and_its_record_goes_with_the_next_look(
    azure_by_template: AzureStage,
) -> None:
    stage = azure_by_template
    stage.slow_down()
    workers = launched(stage)
    stage.cloud.reset_counts()
    assert len(stage.provider.terminate(workers).done) == 2
    assert stage.cloud.calls_of("deployments.cancel") == 2
    assert stage.cloud.calls_of("virtualMachines.delete") == 2
    stage.pass_time(LATER)
    assert {one.kind for one in leftovers(stage)} >= {"deployment"}
    sweep(stage)
    stage.pass_time(LATER)
    sweep(stage)
    assert everything(stage) == []
    assert not stage.records()


def test_a_deployment_that_is_over_loses_its_record_with_its_machine(
    azure_by_template: AzureStage,
) -> None:
    stage = azure_by_template
    assert len(stage.provider.terminate(launched(stage)).done) == 2
    assert not stage.records()
    assert everything(stage) == []


def test_a_record_that_is_gone_is_not_deleted_once_more(azure_by_template: AzureStage) -> None:
    stage = azure_by_template
    workers = launched(stage)
    stage.lose_records()
    stage.cloud.reset_counts()
    assert len(stage.provider.terminate(workers).done) == 2
    assert stage.cloud.calls_of("deployments.cancel") == 2
    assert stage.cloud.calls_of("deployments.delete") == 0


def test_workers_without_an_address_are_found_by_one_list(azure: AzureStage) -> None:
    workers = [replace(one, identity={}) for one in launched(azure, count=3)]
    nowhere = replace(azure.absent, identity={})
    azure.cloud.reset_counts()
    assert len(azure.provider.terminate([*workers, nowhere]).done) == 4
    assert azure.cloud.calls_of("virtualMachines.listAll") == 1
    assert everything(azure) == []


def test_a_list_that_fails_leaves_only_those_without_an_address(azure: AzureStage) -> None:
    known, unknown = launched(azure)
    unknown = replace(unknown, identity={})
    azure.cloud.faults.add(
        ArmFault(FaultKind.ERROR, "virtualMachines.listAll", code="AuthorizationFailed")
    )
    result = azure.provider.terminate([known, unknown])
    assert result.done == {known.key}
    assert isinstance(result.failed[unknown.key], NotAuthorizedError)


def test_what_a_cascade_leaves_behind_is_found_by_list_and_removed_in_one_visit(
    azure: AzureStage,
) -> None:
    """B17, B49: NIC, address and disks, whoever took their machine away."""
    for kind in ("networkInterfaces", "disks"):
        azure.cloud.fates.add(Fate(Step.CASCADE, Outcome.LEFT_BEHIND, kind=kind, times=None))
    workers = made(azure, launched(azure, manager={"publicIp": True}))
    keys = {worker.key for worker in workers}
    azure.provider.terminate(workers)
    azure.pass_time(LATER)

    found = leftovers(azure)
    assert sorted(one.kind for one in found) == ["disk"] * 4 + ["ip"] * 2 + ["nic"] * 2
    assert {one.worker for one in found} == keys
    assert {one.pool_id for one in found} == {"proj/linux"}
    assert all(one.since is not None for one in found)
    sweep(azure)
    azure.pass_time(LATER)
    assert everything(azure) == []
    assert sweep(azure) == frozenset()


def test_machines_taken_away_by_hand_leave_what_they_held(stage_of_both: AzureStage) -> None:
    stage = stage_of_both
    stage.cloud.change_settings(template_delete_option=False, template_public_ip=True)
    for worker in made(stage, launched(stage, manager={"publicIp": True})):
        stage.vanish(worker.key)
    assert {one.kind for one in leftovers(stage)} == {"disk", "ip", "nic"}
    sweep(stage)
    stage.pass_time(LATER)
    assert everything(stage) == []


def test_an_address_waits_for_its_interface_to_go(azure: AzureStage) -> None:
    (worker,) = made(azure, launched(azure, count=1, manager={"publicIp": True}))
    azure.vanish(worker.key)
    azure.cloud.change_settings(**TAKE_TIME)
    assert len(sweep(azure)) == 4
    assert azure.slept == 4.0
    azure.pass_time(LATER)
    assert everything(azure) == []


def test_what_is_in_use_or_of_others_or_going_is_no_leftover(azure: AzureStage) -> None:
    azure.cloud.change_settings(**TAKE_TIME)
    ours = made(azure, launched(azure))
    theirs = azure.order(order_id="wm-theirs", inputs={**INPUTS, "deployment": OTHER_DEPLOYMENT})
    for machine in azure.elsewhere.launch(theirs).machines:
        azure.vanish(machine.key)
    assert leftovers(azure) == []
    azure.vanish(ours[0].key)
    assert {one.worker for one in leftovers(azure)} == {ours[0].key}
    azure.provider.remove(azure.location, leftovers(azure))
    assert leftovers(azure) == []


def test_a_disk_without_tags_tells_by_its_name_whose_it_is(azure: AzureStage) -> None:
    (worker,) = made(azure, launched(azure, count=1))
    azure.vanish(worker.key)
    for disk in azure.cloud.resources(Kind.DISK):
        disk.tags.clear()
    disks = [one for one in leftovers(azure) if one.kind == "disk"]
    assert len(disks) == 2
    assert {(one.worker, one.pool_id) for one in disks} == {(None, None)}


def test_what_cannot_be_removed_is_told_and_what_is_gone_is_done(azure: AzureStage) -> None:
    (worker,) = made(azure, launched(azure, count=1))
    azure.vanish(worker.key)
    found = leftovers(azure)
    gone = replace(found[0], resource_id=f"{found[0].resource_id}-x")
    azure.cloud.faults.add(
        ArmFault(FaultKind.ERROR, "disks.delete", code="InternalServerError", times=None)
    )
    removed = azure.provider.remove(azure.location, [*found, gone])
    disks = {one.resource_id for one in found if one.kind == "disk"}
    assert removed.failed.keys() == disks
    assert removed.done == {one.resource_id for one in (*found, gone)} - disks


@pytest.mark.parametrize("action", ["disks.listAll", "resourceGroups.list", "deployments.list"])
def test_a_list_of_leftovers_that_fails_is_an_error(azure: AzureStage, action: str) -> None:
    """Each time: a list that the test before no longer waits for may still be on its way."""
    azure.cloud.faults.add(ArmFault(FaultKind.ERROR, action, times=None))
    with pytest.raises(CloudUnavailableError):
        leftovers(azure)


def test_records_of_others_and_of_what_goes_on_are_left_alone(
    azure_by_template: AzureStage,
) -> None:
    stage = azure_by_template
    (worker,) = launched(stage, count=1)
    theirs = stage.order(order_id="wm-theirs", inputs={**INPUTS, "deployment": OTHER_DEPLOYMENT})
    stage.elsewhere.launch(theirs)
    stage.slow_down()
    launched(stage, order_id="wm-2")
    (record,) = leftovers(stage)
    assert record.kind == "deployment"
    assert record.worker == WorkerKey("proj/linux", "eastus", worker.key.worker_id)
    stage.provider.remove(stage.location, [record])
    assert len(stage.records()) == 4


def test_records_are_looked_for_where_orders_went(azure_by_template: AzureStage) -> None:
    """A container that never launched anything there is told the place."""
    stage = azure_by_template
    launched(stage, count=1)
    stage.vanish(stage.provider.machines(stage.order())[0].key)
    for kind in (Kind.NIC, Kind.IP, Kind.DISK):
        stage.cloud.forget([one.name for one in stage.cloud.resources(kind)], kind)
    assert list(stage.provider.leftovers(stage.location)) == []
    (record,) = stage.provider.leftovers(stage.location, {"rg-templates", "rg-gone"})
    assert record.kind == "deployment"
