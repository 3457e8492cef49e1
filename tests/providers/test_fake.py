"""What the fake adds to the contract: control over time, capacity, faults and crashes."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from tests.providers.orders import OREGON, VIRGINIA, a_worker, an_order, worker_of
from worker_manager.core.errors import CloudUnavailableError, OutOfCapacityError
from worker_manager.core.model import MachineStatus
from worker_manager.providers.fake import Call, FakeProvider, Method, Moment
from worker_manager.providers.fake_cloud import FakeCloud

if TYPE_CHECKING:
    from tests.providers.stages import FakeStage


class CrashError(Exception):
    """The process under test dies here."""


def status_of(provider: FakeProvider) -> list[MachineStatus]:
    return [seen.status for seen in provider.instances(OREGON)]


def test_ids_and_addresses_derive_from_the_order_alone(fake: FakeStage) -> None:
    elsewhere = FakeCloud(clock=fake.clock)
    twin = FakeProvider(provider_id="aws", deployment="wm-test", cloud=elsewhere)
    assert fake.provider.launch(an_order()) == twin.launch(an_order())


def test_a_machine_boots_runs_is_deleted_and_goes(fake: FakeStage) -> None:
    fake.cloud.boot_time = timedelta(seconds=90)
    fake.cloud.deletion_time = timedelta(seconds=60)
    (machine,) = fake.provider.launch(an_order(count=1)).machines
    assert machine.status is MachineStatus.PENDING
    fake.pass_time(timedelta(seconds=90))
    assert status_of(fake.provider) == [MachineStatus.RUNNING]
    fake.provider.terminate([worker_of(machine)])
    assert status_of(fake.provider) == [MachineStatus.STOPPING]
    fake.pass_time(timedelta(seconds=60))
    assert status_of(fake.provider) == []


def test_terminating_again_does_not_prolong_the_deletion(fake: FakeStage) -> None:
    fake.cloud.deletion_time = timedelta(seconds=60)
    (machine,) = fake.provider.launch(an_order(count=1)).machines
    fake.provider.terminate([worker_of(machine)])
    fake.pass_time(timedelta(seconds=59))
    fake.provider.terminate([worker_of(machine)])
    fake.pass_time(timedelta(seconds=1))
    assert status_of(fake.provider) == []


def test_every_machine_that_ever_was_stays_on_record(fake: FakeStage) -> None:
    (machine,) = fake.provider.launch(an_order(count=1)).machines
    fake.provider.terminate([worker_of(machine)])
    assert [one.key for one in fake.cloud.ordered("wm-0123456789abcdef")] == [machine.key]
    assert fake.cloud.alive() == []


def test_deleted_machines_make_room(fake: FakeStage) -> None:
    fake.allow(1)
    (machine,) = fake.provider.launch(an_order(count=1)).machines
    with pytest.raises(OutOfCapacityError):
        fake.provider.launch(an_order(order_id="wm-2", count=1))
    fake.provider.terminate([worker_of(machine)])
    assert fake.provider.launch(an_order(order_id="wm-2", count=1)).machines


def test_capacity_is_each_launch_configs_own(fake: FakeStage) -> None:
    fake.allow(0)
    assert fake.provider.launch(an_order(launch_config_id="lc-other")).machines


def test_a_protected_machine_is_not_terminated(fake: FakeStage) -> None:
    first, second = fake.provider.launch(an_order()).machines
    fake.cloud.protect(first.key)
    terminated = fake.provider.terminate([worker_of(first), worker_of(second)])
    assert terminated.done == {second.key}
    assert terminated.failed[first.key].code == "OperationNotPermitted"
    assert [one.key for one in fake.cloud.alive()] == [first.key]


def test_a_fault_hits_as_often_as_told_and_only_what_it_names(fake: FakeStage) -> None:
    fake.provider.fail(Method.LAUNCH, CloudUnavailableError("down"), times=2, subject="wm-2")
    assert fake.provider.launch(an_order(order_id="wm-1")).machines
    for _ in range(2):
        with pytest.raises(CloudUnavailableError):
            fake.provider.launch(an_order(order_id="wm-2"))
    assert fake.provider.launch(an_order(order_id="wm-2")).machines


def test_a_list_whose_answer_is_lost_breaks_off_halfway(fake: FakeStage) -> None:
    fake.provider.launch(an_order(count=4))
    fake.lose_answer(Method.INSTANCES)
    reading = fake.provider.instances(OREGON)
    assert len([next(reading), next(reading)]) == 2
    with pytest.raises(CloudUnavailableError):
        next(reading)


def test_calls_are_logged_with_what_they_named(fake: FakeStage) -> None:
    fake.provider.launch(an_order())
    list(fake.provider.instances(VIRGINIA))
    fake.provider.terminate([a_worker("i-a"), a_worker("i-b")])
    assert [(call.method, call.subject) for call in fake.provider.calls] == [
        (Method.LAUNCH, "wm-0123456789abcdef"),
        (Method.INSTANCES, VIRGINIA),
        (Method.TERMINATE, "i-a i-b"),
    ]


@pytest.mark.parametrize(("moment", "machines"), [(Moment.BEFORE, 0), (Moment.AFTER, 2)])
def test_a_crash_can_be_injected_on_either_side_of_an_act(
    fake: FakeStage, moment: Moment, machines: int
) -> None:
    def crash(at: Moment, call: Call) -> None:
        if at is moment and call.method is Method.LAUNCH:
            raise CrashError

    fake.provider.on_call = crash
    with pytest.raises(CrashError):
        fake.provider.launch(an_order())
    fake.provider.on_call = None
    assert len(status_of(fake.provider)) == machines
    assert len(fake.provider.launch(an_order()).machines) == 2
    assert len(status_of(fake.provider)) == 2
