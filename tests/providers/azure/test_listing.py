"""The subscription as sightings, and one machine's two states as one of ours."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from infra.local.clouds.arm import Fate, Outcome, Power, Step
from tests.providers.azure.machines_of_ours import launched
from tests.providers.stages_azure import AZURE_BODY
from worker_manager.core.errors import OutOfCapacityError
from worker_manager.core.model import MachineStatus, State
from worker_manager.providers.azure.machines import RunTime, run_time, status, why_failed

if TYPE_CHECKING:
    from tests.providers.stages_azure import AzureStage

PENDING, RUNNING = MachineStatus.PENDING, MachineStatus.RUNNING
STOPPING, STOPPED = MachineStatus.STOPPING, MachineStatus.STOPPED


def vm(state: str, **tags: str) -> dict[str, Any]:
    return {"properties": {"provisioningState": state}, "tags": tags}


@pytest.mark.parametrize(
    ("state", "seen", "expected"),
    [
        ("Creating", RunTime(), PENDING),
        ("Creating", RunTime("running"), PENDING),
        ("Succeeded", RunTime("starting"), RUNNING),
        ("Succeeded", RunTime("running"), RUNNING),
        ("Succeeded", RunTime(), RUNNING),
        ("Updating", RunTime("running"), RUNNING),
        ("Updating", RunTime("stopping"), RUNNING),
        ("Updating", RunTime("deallocating"), STOPPED),
        ("NeverHeardOf", RunTime("neverHeardOf"), RUNNING),
        ("Succeeded", RunTime("stopping"), STOPPED),
        ("Succeeded", RunTime("stopped"), STOPPED),
        ("Succeeded", RunTime("deallocating"), STOPPED),
        ("Succeeded", RunTime("deallocated"), STOPPED),
        ("Deleting", RunTime("running"), STOPPING),
        ("Deleting", RunTime("deallocated"), STOPPING),
        ("Failed", RunTime("running", "OSProvisioningTimedOut"), RUNNING),
        ("Failed", RunTime("", "AllocationFailed"), PENDING),
        ("Failed", RunTime("neverHeardOf"), PENDING),
        ("Failed", RunTime(), PENDING),
        ("Failed", RunTime("deallocated"), STOPPED),
        ("Canceled", RunTime("running"), RUNNING),
        ("Canceled", RunTime(), PENDING),
    ],
)
def test_two_states_make_one(state: str, seen: RunTime, expected: MachineStatus) -> None:
    """B32: a failure alone is no reason to act: a worker may have registered all the same."""
    assert status(vm(state), seen) is expected


@pytest.mark.parametrize("outcome", [Outcome.FAIL, Outcome.RUNS_ANYWAY])
def test_a_list_gives_nobody_up_whose_provisioning_failed(
    stage_of_both: AzureStage, outcome: Outcome
) -> None:
    """B32: whoever awaits it asks by itself; a registered worker goes on."""
    stage = stage_of_both
    fate = Fate(Step.CREATE, outcome, kind="virtualMachines", code="AllocationFailed")
    stage.cloud.fates.add(fate)
    (worker,) = launched(stage, count=1)
    runs = outcome is Outcome.RUNS_ANYWAY
    (listed,) = stage.provider.instances(stage.location)
    assert (listed.status, listed.failure) == (RUNNING if runs else PENDING, None)

    registered = replace(worker, state=State.RUNNING)
    seen = stage.provider.lookup(stage.location, [registered])[worker.key]
    assert seen is not None
    assert (seen.status, seen.failure) == (RUNNING if runs else PENDING, None)

    awaited = stage.provider.lookup(stage.location, [worker])[worker.key]
    assert awaited is not None
    assert awaited.status is (RUNNING if runs else STOPPED)
    assert isinstance(awaited.failure, OutOfCapacityError) is not runs


def test_why_a_machine_failed_is_told_unless_its_launch_config_tolerates_it() -> None:
    view = {
        "statuses": [
            {"code": "ProvisioningState/failed/AllocationFailed", "message": "no room"},
            {"code": "Other/thing"},
        ]
    }
    seen = run_time(view)
    assert seen == RunTime("", "AllocationFailed", "no room")
    error = why_failed(vm("Failed"), seen)
    assert isinstance(error, OutOfCapacityError)
    assert str(error) == "AllocationFailed: no room"
    tolerant = vm("Failed", **{"worker-manager:tolerated": "Other,allocationfailed"})
    assert (status(tolerant, seen), why_failed(tolerant, seen)) == (RUNNING, None)
    assert why_failed(vm("Succeeded"), seen) is None


def test_one_list_of_models_and_one_of_states_whatever_their_number(azure: AzureStage) -> None:
    """Resource groups are written in another case in one of them; ids are joined without it."""
    workers = launched(azure, count=90)
    azure.cloud.change_settings(page_size=40)
    azure.cloud.machine(workers[0].key.worker_id).power = Power.STOPPED
    azure.cloud.reset_counts()
    seen = {one.key: one for one in azure.provider.instances(azure.location)}
    assert seen.keys() == {worker.key for worker in workers}
    assert [key for key, one in seen.items() if one.status is STOPPED] == [workers[0].key]
    assert {worker.key: worker.identity for worker in workers} == {
        key: one.identity for key, one in seen.items()
    }
    assert azure.cloud.calls_of("virtualMachines.listAll") == 6
    assert sum(azure.cloud.calls.values()) == 6


def test_a_machine_whose_pool_tag_is_spoilt_is_left_out_with_a_warning(
    azure: AzureStage, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = launched(azure)
    azure.cloud.machine(first.key.worker_id).tags["worker-manager:pool"] = "nonsense"
    with caplog.at_level(logging.WARNING):
        assert [one.key for one in azure.provider.instances(azure.location)] == [second.key]
    assert caplog.records[-1].message == "machine of ours without a pool tag"


def test_there_is_one_location_wherever_machines_are(azure: AzureStage) -> None:
    west = {**AZURE_BODY, "location": "westus"}
    launched(azure)
    launched(azure, order_id="wm-west", body=west)
    seen = list(azure.provider.instances(azure.location))
    assert sorted(one.key.group for one in seen) == ["eastus"] * 2 + ["westus"] * 2
    assert azure.provider.locations([]) == frozenset()
