"""What every provider promises that lets machines boot anew, which they all do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.providers.orders import worker_of
from worker_manager.core.errors import (
    CloudError,
    CloudUnavailableError,
    MachineGoneError,
    NotAuthorizedError,
    NotReachedError,
    ThrottledError,
)
from worker_manager.core.model import MachineStatus, Worker
from worker_manager.providers.fake import Method
from worker_manager.providers.protocol import Rebooted, Reboots

if TYPE_CHECKING:
    from tests.providers.contract import Stage


def launched(stage: Stage, count: int = 2) -> list[Worker]:
    return [worker_of(one) for one in stage.provider.launch(stage.order(count=count)).machines]


def reboot(stage: Stage, workers: list[Worker]) -> Rebooted:
    assert isinstance(stage.provider, Reboots)
    return stage.provider.reboot(workers)


def test_machines_boot_anew_as_often_as_that_is_asked_and_are_seen_running(stage: Stage) -> None:
    first, second = launched(stage)
    for _ in range(2):
        assert reboot(stage, [first]) == Rebooted(frozenset({first.key}))
    assert (stage.reboots(first.key), stage.reboots(second.key)) == (2, 0)
    seen = {one.key: one.status for one in stage.provider.instances(stage.location)}
    assert seen == dict.fromkeys([first.key, second.key], MachineStatus.RUNNING)


def test_a_machine_that_is_gone_fails_as_such_and_spoils_nothing_for_the_others(
    stage: Stage,
) -> None:
    vanished, ended, alive = launched(stage, 3)
    stage.vanish(vanished.key)
    stage.provider.terminate([ended])
    rebooted = reboot(stage, [vanished, ended, stage.absent, alive])
    assert rebooted.done == {alive.key}
    assert {key: type(error) for key, error in rebooted.failed.items()} == dict.fromkeys(
        [vanished.key, ended.key, stage.absent.key], MachineGoneError
    )
    assert stage.reboots(alive.key) == 1


def test_a_stopped_machine_is_not_booted_and_spoils_nothing_for_the_others(stage: Stage) -> None:
    stopped, alive = launched(stage)
    stage.stop(stopped.key)
    rebooted = reboot(stage, [stopped, alive])
    assert rebooted.done == {alive.key}
    assert set(rebooted.failed) == {stopped.key}
    assert (stage.reboots(stopped.key), stage.reboots(alive.key)) == (0, 1)


@pytest.mark.parametrize("error", [ThrottledError, CloudUnavailableError, NotAuthorizedError])
def test_a_refused_reboot_fails_in_our_words_and_is_none(
    stage: Stage, error: type[CloudError]
) -> None:
    (worker,) = launched(stage, 1)
    stage.refuse(Method.REBOOT, error)
    try:
        (failed,) = reboot(stage, [worker]).failed.values()
    except CloudError as raised:
        failed = raised
    assert type(failed) is error
    assert stage.reboots(worker.key) == 0


def test_where_ec2_could_not_be_looked_at_it_is_known_that_nothing_was_done(ec2: Stage) -> None:
    (worker,) = launched(ec2, 1)
    ec2.refuse(Method.LOOKUP, CloudUnavailableError)
    assert isinstance(reboot(ec2, [worker]).failed[worker.key], NotReachedError)
    assert ec2.reboots(worker.key) == 0


def test_of_a_lost_answer_it_is_said_that_it_may_have_been_done(stage: Stage) -> None:
    (worker,) = launched(stage, 1)
    stage.lose_answer(Method.REBOOT)
    try:
        (failed,) = reboot(stage, [worker]).failed.values()
    except CloudError as raised:
        failed = raised
    assert isinstance(failed, CloudUnavailableError)
    assert not isinstance(failed, NotReachedError)
    assert stage.reboots(worker.key) == 1
