"""What becomes of launches, and what it costs to know."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

import pytest

from infra.local.clouds.arm import ArmFault, Fate, Outcome, Step
from infra.local.clouds.faults import FaultKind
from tests.providers.azure.machines_of_ours import launched, made
from tests.providers.stages_azure import AZURE_BODY
from worker_manager.core.errors import (
    BadCredentialsError,
    CloudUnavailableError,
    InvalidLaunchConfigError,
    OutOfCapacityError,
)
from worker_manager.core.model import MachineStatus, State
from worker_manager.providers.azure.deployments import made_none, why_failed
from worker_manager.providers.protocol import Failed, Made, Pending

if TYPE_CHECKING:
    from tests.providers.stages_azure import AzureStage
    from worker_manager.core.model import Worker
    from worker_manager.providers.azure.arm import Arm


def step_of(stage: AzureStage, worker: Worker) -> Made | Pending | Failed:
    return stage.provider.follow(stage.location, [worker])[worker.key]


def fail_creation(stage: AzureStage, outcome: Outcome, code: str) -> None:
    stage.cloud.fates.add(Fate(Step.CREATE, outcome, kind="virtualMachines", code=code))


def calls(stage: AzureStage) -> Counter[str]:
    counted: Counter[str] = Counter()
    for (action, _), number in stage.cloud.calls.items():
        counted[action] += number
    return counted


def test_a_hundred_machines_cost_hardly_more_than_their_requests(azure: AzureStage) -> None:
    azure.slow_down()
    workers = launched(azure, count=100)
    for _ in range(3):
        azure.provider.follow(azure.location, workers)
        azure.pass_time(timedelta(seconds=21))
    made(azure, workers)
    assert calls(azure) == {"virtualMachines.put": 100, "virtualMachines.list": 4}


def test_a_hundred_deployments_cost_a_request_and_a_deletion_each(
    azure_by_template: AzureStage,
) -> None:
    stage = azure_by_template
    stage.slow_down()
    workers = launched(stage, count=100)
    for _ in range(3):
        stage.provider.follow(stage.location, workers)
        stage.pass_time(timedelta(seconds=21))
    made(stage, workers)
    assert calls(stage) == {
        "deployments.put": 100,
        "deployments.list": 4,
        "virtualMachines.list": 1,
        "deployments.delete": 100,
    }
    assert not stage.records()


def test_what_is_known_of_a_made_machine_is_what_its_proof_must_repeat(
    stage_of_both: AzureStage,
) -> None:
    for worker in made(stage_of_both, launched(stage_of_both)):
        machine = stage_of_both.cloud.machine(worker.key.worker_id)
        group = "rg" if stage_of_both.body is AZURE_BODY else "rg-templates"
        assert worker.identity == {"resourceGroup": group, "vmId": machine.vm_id}


def test_a_record_goes_though_a_list_showed_its_machine_before(
    azure_by_template: AzureStage,
) -> None:
    """The scan writes the ``vmId`` beside the deployment as soon as it sees the machine."""
    stage = azure_by_template
    (worker,) = launched(stage, count=1)
    (seen,) = stage.provider.instances(stage.location)
    merged = replace(worker, identity={**worker.identity, **seen.identity})
    assert made(stage, [merged])[0].identity == seen.identity
    assert not stage.records()


def test_a_record_that_is_to_be_kept_is_kept(azure_by_template: AzureStage) -> None:
    stage = azure_by_template
    workers = made(stage, launched(stage, manager={"keepDeployment": True}))
    assert len(stage.records()) == 2
    before = calls(stage)
    assert made(stage, workers) == workers
    assert calls(stage) == before
    assert not list(stage.provider.leftovers(stage.location))


def test_a_record_that_is_to_be_kept_is_read_to_its_end_though_a_list_showed_its_machine(
    azure_by_template: AzureStage,
) -> None:
    stage = azure_by_template
    stage.slow_down()
    (worker,) = launched(stage, count=1, manager={"keepDeployment": True})
    (seen,) = stage.provider.instances(stage.location)
    merged = replace(worker, identity={**worker.identity, **seen.identity})
    assert isinstance(step_of(stage, merged), Pending)


def test_once_azure_says_to_wait_no_more_records_are_deleted(
    azure_by_template: AzureStage,
) -> None:
    stage = azure_by_template
    workers = launched(stage, count=60)
    stage.cloud.faults.add(
        ArmFault(FaultKind.ERROR, "deployments.delete", code="TooManyRequests", times=None)
    )
    steps = stage.provider.follow(stage.location, workers)
    assert {type(step) for step in steps.values()} == {Pending}
    assert stage.cloud.calls_of("deployments.delete") <= 32


def test_a_subscription_that_is_not_found_proves_no_absence(stage_of_both: AzureStage) -> None:
    """B37."""
    (worker,) = launched(stage_of_both, count=1)
    stage_of_both.cloud.faults.add(
        ArmFault(FaultKind.ERROR, code="SubscriptionNotFound", times=None)
    )
    for ask in (stage_of_both.provider.lookup, stage_of_both.provider.follow):
        with pytest.raises(BadCredentialsError):
            ask(stage_of_both.location, [worker])


def test_a_record_that_cannot_be_deleted_yet_keeps_its_worker_waiting(
    azure_by_template: AzureStage,
) -> None:
    """B16: room is free when it is free."""
    stage = azure_by_template
    (worker,) = launched(stage, count=1)
    stage.cloud.faults.add(
        ArmFault(FaultKind.ERROR, "deployments.delete", code="TooManyRequests", retry_after=7)
    )
    assert step_of(stage, worker) == Pending(timedelta(seconds=7))
    assert isinstance(step_of(stage, worker), Made)


@pytest.mark.parametrize("code", ["AllocationFailed", "OSProvisioningTimedOut"])
def test_a_machine_that_failed_and_does_not_run_has_failed(
    stage_of_both: AzureStage, code: str
) -> None:
    fail_creation(stage_of_both, Outcome.FAIL, code)
    (worker,) = launched(stage_of_both, count=1)
    step = step_of(stage_of_both, worker)
    assert isinstance(step, Failed)
    assert (step.error.code, step.is_gone) == (code, False)
    assert not stage_of_both.records()


def test_a_machine_that_runs_may_register_whatever_azure_says(stage_of_both: AzureStage) -> None:
    """B32: OSProvisioningClientError with PowerState/running."""
    fail_creation(stage_of_both, Outcome.RUNS_ANYWAY, "OSProvisioningClientError")
    (worker,) = launched(stage_of_both, count=1)
    made(stage_of_both, [worker])
    (seen,) = stage_of_both.provider.instances(stage_of_both.location)
    assert (seen.status, seen.failure) == (MachineStatus.RUNNING, None)


@pytest.mark.parametrize("state", [State.RUNNING, State.STOPPING])
@pytest.mark.parametrize("outcome", [Outcome.FAIL, Outcome.RUNS_ANYWAY])
def test_only_a_requested_worker_can_fail_to_be_made(
    stage_of_both: AzureStage, state: State, outcome: Outcome
) -> None:
    """B32: a registered worker outlives its deployment's failure; the record goes all the same."""
    fail_creation(stage_of_both, outcome, "AllocationFailed")
    (worker,) = launched(stage_of_both, count=1)
    made(stage_of_both, [replace(worker, state=state)])
    assert not stage_of_both.records()


def test_codes_that_a_launch_config_wants_ignored_are_ignored(azure: AzureStage) -> None:
    fail_creation(azure, Outcome.FAIL, "VMExtensionHandlerError")
    manager = {"ignoreFailedProvisioningStates": ["VMExtensionHandlerError"]}
    made(azure, launched(azure, count=1, manager=manager))


def test_a_machine_that_vanished_while_it_was_made_was_not_made(
    stage_of_both: AzureStage,
) -> None:
    (worker,) = launched(stage_of_both, count=1)
    stage_of_both.vanish(worker.key)
    step = step_of(stage_of_both, worker)
    assert isinstance(step, Failed)
    assert isinstance(step.error, CloudUnavailableError)
    assert step.is_gone
    made(stage_of_both, [replace(worker, state=State.RUNNING)])


def test_a_machine_may_outlive_its_record(azure_by_template: AzureStage) -> None:
    stage = azure_by_template
    workers = launched(stage)
    stage.lose_records()
    assert len(made(stage, workers)) == 2


def test_a_creation_that_never_ends_stays_pending(stage_of_both: AzureStage) -> None:
    """B31: how long it may take is for the caller to say."""
    stage_of_both.cloud.fates.add(Fate(Step.CREATE, Outcome.NEVER_ENDS, kind="virtualMachines"))
    (worker,) = launched(stage_of_both, count=1)
    stage_of_both.pass_time(timedelta(hours=2))
    assert isinstance(step_of(stage_of_both, worker), Pending)


def test_nothing_learned_is_an_error_and_a_part_is_a_part(stage_of_both: AzureStage) -> None:
    workers = launched(stage_of_both)
    kind = "virtualMachines" if stage_of_both.body is AZURE_BODY else "deployments"
    name = workers[0].identity.get("deployment", workers[0].key.worker_id)
    stage_of_both.cloud.faults.add(ArmFault(FaultKind.ERROR, f"{kind}.get", name=name, times=2))
    with pytest.raises(CloudUnavailableError):
        stage_of_both.provider.follow(stage_of_both.location, workers[:1])
    steps = stage_of_both.provider.follow(stage_of_both.location, workers)
    assert steps.keys() == {workers[1].key}


def test_a_missing_worker_whose_deployment_goes_on_is_pending(
    azure_by_template: AzureStage,
) -> None:
    """Azure gets to the machine when it gets to it; that is no absence."""
    stage = azure_by_template
    stage.cloud.change_settings(deployment_start_seconds=60.0)
    workers = launched(stage, count=5)
    found = stage.provider.lookup(stage.location, workers)
    assert {seen.status for seen in found.values() if seen} == {MachineStatus.PENDING}
    assert found.keys() == {worker.key for worker in workers}
    assert calls(stage) == {"deployments.put": 5, "deployments.list": 1}


def test_a_missing_worker_whose_deployment_failed_is_gone_with_the_reason(
    azure_by_template: AzureStage,
) -> None:
    stage = azure_by_template
    fail_creation(stage, Outcome.FAIL, "AllocationFailed")
    (worker,) = launched(stage, count=1)
    stage.vanish(worker.key)
    seen = stage.provider.lookup(stage.location, [worker])[worker.key]
    assert seen is not None
    assert (seen.status, type(seen.failure)) == (MachineStatus.GONE, OutOfCapacityError)


def test_a_missing_worker_without_an_address_is_found_by_one_list(azure: AzureStage) -> None:
    first, second, third = (replace(one, identity={}) for one in launched(azure, count=3))
    azure.vanish(second.key)
    found = azure.provider.lookup(azure.location, [first, second, third])
    assert {key for key, seen in found.items() if seen} == {first.key, third.key}
    assert second.key in found


def test_machines_that_were_told_to_go_are_gone_when_no_list_shows_them(azure: AzureStage) -> None:
    workers = [replace(one, state=State.STOPPING) for one in launched(azure, count=5)]
    for worker in workers[:4]:
        azure.vanish(worker.key)
    found = azure.provider.lookup(azure.location, workers)
    assert [found[worker.key] is None for worker in workers] == [True] * 4 + [False]
    assert calls(azure) == {"virtualMachines.put": 5, "virtualMachines.list": 1}


class Operations:
    """Stands in for ``Arm`` where a record says nothing: it has a deployment's operations."""

    def __init__(self, *operations: dict[str, Any]) -> None:
        self.pages_of = [[{"properties": one} for one in operations]]

    def pages(self, path: str, *, timeout: Any) -> Any:
        assert path.endswith("/deployments/deploy-1/operations")
        return self.pages_of


def operation(state: str, name: str, message: Any) -> dict[str, Any]:
    target = {"resourceType": "Microsoft.Compute/virtualMachines", "resourceName": name}
    return {"provisioningState": state, "targetResource": target, "statusMessage": message}


def record(**properties: Any) -> dict[str, Any]:
    return {"name": "deploy-1", "properties": {"provisioningState": "Failed", **properties}}


SILENT = {"code": "DeploymentFailed", "message": "At least one operation failed."}


def test_a_silent_record_is_explained_by_its_operations() -> None:
    """The first telling one's kind, and the words of all."""
    full = {"error": {"code": "SkuNotAvailable", "message": "none left"}}
    arm = Operations(
        operation("Succeeded", "vm-0", None),
        operation("Failed", "vm-1", {"error": {"code": "Conflict", "message": "hm"}}),
        operation("Failed", "vm-2", full),
    )
    error = why_failed(
        cast("Arm", arm), record(error=SILENT), resource_group="rg", timeout=timedelta
    )
    assert isinstance(error, OutOfCapacityError)
    assert str(error) == (
        "Microsoft.Compute/virtualMachines vm-1: Conflict: hm; "
        "Microsoft.Compute/virtualMachines vm-2: SkuNotAvailable: none left"
    )


def test_many_operations_that_failed_are_told_within_bounds() -> None:
    message = {"error": {"code": "SkuNotAvailable", "message": "x" * 2_000}}
    arm = Operations(*(operation("Failed", f"vm-{n}", message) for n in range(50)))
    error = why_failed(
        cast("Arm", arm), record(error=SILENT), resource_group="rg", timeout=timedelta
    )
    assert len(str(error)) == 10_000


def test_a_cancelled_deployment_says_so_and_no_operations_are_read() -> None:
    cancelled = record(provisioningState="Canceled")
    error = why_failed(cast("Arm", None), cancelled, resource_group="rg", timeout=timedelta)
    assert error.code == "Canceled"


def test_a_template_that_makes_no_machine_of_our_name_is_to_blame() -> None:
    vm = {"id": "/subscriptions/s/resourceGroups/RG/providers/x/virtualMachines/VM-1"}
    assert isinstance(made_none("vm-1", record(outputResources=[vm])), CloudUnavailableError)
    assert isinstance(made_none("vm-1", record(outputResources=[])), InvalidLaunchConfigError)
