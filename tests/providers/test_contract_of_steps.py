"""What clouds promise besides that accept a launch first, and make the machine afterwards.

Where to read next: ``test_contract`` (what all promise).
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from tests.providers.orders import worker_of
from worker_manager.core.errors import CloudUnavailableError, OutOfCapacityError
from worker_manager.core.model import MachineStatus
from worker_manager.providers.protocol import Failed, Made, Pending, Stepwise

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.providers.contract import StepwiseStage
    from worker_manager.core.model import Json, Worker, WorkerKey
    from worker_manager.providers.protocol import Step


def follow(stage: StepwiseStage, workers: list[Worker]) -> Mapping[WorkerKey, Step]:
    assert isinstance(stage.provider, Stepwise)
    return stage.provider.follow(stage.location, workers)


def test_machines_of_which_nobody_knows_keep_their_order_open(stepwise: StepwiseStage) -> None:
    """B52: what is known is told, and the next send finds the rest instead of making more."""
    stepwise.lose_one_answer()
    first = stepwise.provider.launch(stepwise.order())
    assert (len(first.machines), first.refused) == (1, 0)
    assert type(first.unanswered) is CloudUnavailableError

    second = stepwise.provider.launch(stepwise.order())
    assert (len(second.machines), second.refused, second.unanswered) == (2, 0, None)
    listed = {seen.key for seen in stepwise.provider.instances(stepwise.location)}
    assert listed == {machine.key for machine in second.machines}


def test_a_machine_is_pending_until_it_is_made(stepwise: StepwiseStage) -> None:
    stepwise.slow_down()
    launched = stepwise.provider.launch(stepwise.order())
    workers = [worker_of(machine) for machine in launched.machines]
    assert launched.follow_after is not None

    assert {type(step) for step in follow(stepwise, workers).values()} == {Pending}
    stepwise.pass_time(timedelta(minutes=2))
    steps = follow(stepwise, workers)

    assert steps.keys() == {worker.key for worker in workers}
    made = [replace(worker, identity=_made(steps[worker.key])) for worker in workers]
    assert {key: _made(step) for key, step in follow(stepwise, made).items()} == {
        worker.key: worker.identity for worker in made
    }


def test_what_is_in_the_making_is_never_said_to_be_gone(stepwise: StepwiseStage) -> None:
    stepwise.slow_down()
    workers = [worker_of(one) for one in stepwise.provider.launch(stepwise.order()).machines]
    found = stepwise.provider.lookup(stepwise.location, workers)
    assert found.keys() == {worker.key for worker in workers}
    assert {seen.status for seen in found.values() if seen} <= {
        MachineStatus.PENDING,
        MachineStatus.RUNNING,
    }
    assert None not in found.values()


def test_a_creation_that_fails_late_is_told_and_spoils_nothing_for_the_others(
    stepwise: StepwiseStage,
) -> None:
    """B33: what fails after it was accepted has its error, too."""
    stepwise.fail_next_creation(OutOfCapacityError)
    workers = [worker_of(one) for one in stepwise.provider.launch(stepwise.order()).machines]
    stepwise.pass_time(timedelta(seconds=5))
    steps = follow(stepwise, workers)

    (failed,) = (step for step in steps.values() if isinstance(step, Failed))
    assert type(failed.error) is OutOfCapacityError
    assert len([step for step in steps.values() if isinstance(step, Made)]) == 1
    running = [
        seen
        for seen in stepwise.provider.instances(stepwise.location)
        if seen.status is MachineStatus.RUNNING
    ]
    assert len(running) == 1


def test_machines_that_are_in_the_making_can_be_taken_away(stepwise: StepwiseStage) -> None:
    stepwise.slow_down()
    workers = [worker_of(one) for one in stepwise.provider.launch(stepwise.order()).machines]
    assert len(stepwise.provider.terminate(workers).done) == 2
    stepwise.pass_time(timedelta(minutes=5))
    assert not list(stepwise.provider.instances(stepwise.location))


def _made(step: Step) -> Json:
    assert isinstance(step, Made)
    return step.identity
