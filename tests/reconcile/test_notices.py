"""What a cloud tells of single machines reaches their rows, and their pools, at once."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from tests.factories import POOL_ID, REGION
from tests.reconcile.scenes import scan_later, strays, terminated, with_workers
from worker_manager.core.errors import CloudUnavailableError
from worker_manager.core.events import WORKER_REMOVED, WORKER_STOPPED
from worker_manager.core.model import Location, MachineStatus, State
from worker_manager.core.notices import Notice
from worker_manager.core.surplus import NEEDED
from worker_manager.providers.fake import Method
from worker_manager.reconcile.notices import ROUNDS, heed

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.reconcile.world import World
    from worker_manager.core.model import WorkerKey
    from worker_manager.providers.fake_cloud import Machine

GONE, STOPPING, STOPPED = MachineStatus.GONE, MachineStatus.STOPPING, MachineStatus.STOPPED
ELSEWHERE = Location("eu-west-1")


def a_notice(
    machine: Machine,
    status: MachineStatus | None = GONE,
    *,
    name: str = "n-1",
    location: Location = REGION,
) -> Notice:
    return Notice(name, location, machine.key.worker_id, status)


def planned(world: World) -> list[str]:
    """What the provision messages that are under way were sent for."""
    ticks = [found.body["tick"] for found in world.mail if found.queue == "provision"]
    return [tick.partition("#")[2] for tick in ticks]


def test_a_machine_that_was_taken_is_told_of_at_once_and_replaced(world: World) -> None:
    """B25: the cloud knew at once, tasks waited for 20 minutes."""
    (machine,) = with_workers(world, 1)
    world.demand(claimed=1)
    world.cloud.vanish(machine.key)
    world.clock.advance(seconds=2)

    assert heed([a_notice(machine)], world.deps) == frozenset()

    row = world.row(machine.key)
    assert (row.state, row.stop_reason, row.stopped_by) == (
        State.STOPPED,
        "the machine is gone",
        "cloud",
    )
    assert WORKER_STOPPED in world.bus.names(machine.key.worker_id)
    assert planned(world) == ["again-n-1"]
    world.demand(pending=1)
    world.deliver_all()
    assert len(world.cloud.alive()) == 1


def test_the_plan_that_made_a_loss_good_stands_among_the_others_by_its_time(world: World) -> None:
    (machine,) = with_workers(world, 1, minimum=1)
    world.cloud.vanish(machine.key)
    world.clock.advance(seconds=2)
    heed([a_notice(machine)], world.deps)
    world.deliver_all()
    world.demand(pending=5)
    world.clock.advance(seconds=30)
    world.tick()

    with world.aside():
        newest, notices, *_ = world.stores.plans.page(POOL_ID, before=None, limit=9)

    assert notices.tick.endswith("#again-n-1")
    assert newest.now > notices.now


def test_a_machine_that_is_being_deleted_is_told_of_before_it_is_gone(world: World) -> None:
    (machine,) = with_workers(world, 1)

    heed([a_notice(machine, STOPPING)], world.deps)

    assert world.states() == {"stopping": 1}
    assert WORKER_REMOVED in world.bus.names(machine.key.worker_id)
    assert terminated(world) == [], "it is being deleted, nobody needs to ask for it"

    world.cloud.vanish(machine.key)
    heed([a_notice(machine, GONE, name="n-2")], world.deps)

    assert world.states() == {"stopped": 1}
    assert planned(world) == ["again-n-1"], "its loss was made good before"


def test_a_machine_that_was_only_powered_off_is_deleted(world: World) -> None:
    """B27: stopped instances stayed, and cost."""
    (machine,) = with_workers(world, 1)
    world.cloud.stop(machine.key)

    heed([a_notice(machine, STOPPED)], world.deps)

    assert terminated(world) == [machine.key.worker_id]
    assert world.states() == {"stopping": 1}


def test_a_machine_that_was_stopped_and_runs_again_is_left_alone(world: World) -> None:
    (machine,) = with_workers(world, 1)

    assert heed([a_notice(machine, STOPPED)], world.deps) == frozenset()

    assert world.states() == {"running": 1}
    assert planned(world) == []


def test_an_end_that_we_had_asked_for_is_noted_and_nothing_is_planned(world: World) -> None:
    (machine,) = with_workers(world, 1)
    world.remove(machine.key)
    world.deliver_all()

    heed([a_notice(machine, STOPPING), a_notice(machine, GONE, name="n-2")], world.deps)

    row = world.row(machine.key)
    assert (row.state, row.stop_reason) == (State.STOPPED, "asked to")
    assert planned(world) == []


def test_notices_that_come_twice_and_in_any_order_tell_of_one_end(world: World) -> None:
    (machine,) = with_workers(world, 1)
    world.cloud.vanish(machine.key)
    notices = [a_notice(machine, status, name=f"n-{status}") for status in (GONE, STOPPING, None)]

    for notice in [*notices, *reversed(notices)]:
        assert heed([notice], world.deps) == frozenset()

    assert world.bus.names(machine.key.worker_id).count(WORKER_STOPPED) == 1
    assert planned(world) == [f"again-n-{GONE}"]


def test_a_machine_that_vanished_before_it_registered_counts_against_its_launch_config(
    world: World,
) -> None:
    world.save_pool()
    world.demand(pending=1)
    world.tick()
    (machine,) = world.cloud.alive()
    world.cloud.vanish(machine.key)

    heed([a_notice(machine)], world.deps)

    (error,) = world.pool_errors()
    assert (error.kind, error.launch_config_id) == ("never-registered", "lc-a")


@pytest.mark.parametrize("deployment", ["another-stage", "stage-x"])
def test_machines_of_others_and_of_no_row_are_nobodys_business(
    world: World, deployment: str
) -> None:
    with_workers(world, 1)
    (stray,) = strays(world, 1, deployment=deployment)
    unknown = Notice("n-2", REGION, "i-unknown", GONE)

    assert heed([a_notice(stray), unknown], world.deps) == frozenset()

    assert world.states() == {"running": 1}
    assert terminated(world) == []
    assert world.mail == []


def test_another_providers_worker_is_left_to_it(new_world: Callable[..., World]) -> None:
    world = new_world(provider_ids=("aws", "aws-2"))
    (machine,) = with_workers(world, 1)
    with world.aside():
        row = world.row(machine.key)
        world.stores.workers.change(row, provider_id="aws-2")
    world.cloud.vanish(machine.key)

    heed([a_notice(machine)], world.deps)

    assert world.states() == {"running": 1}


def test_a_location_is_asked_once_and_a_pool_planned_once_however_many_notices_there_are(
    world: World,
) -> None:
    machines = with_workers(world, 12)
    for machine in machines:
        world.cloud.vanish(machine.key)
    before = len(world.provider.calls)

    heed([a_notice(one, name=f"n-{number}") for number, one in enumerate(machines)], world.deps)

    asked = world.provider.calls[before:]
    assert [call.method for call in asked] == [Method.RECOGNISE]
    assert world.states() == {"stopped": 12}
    assert planned(world) == ["again-n-0"]


def test_a_list_that_lacks_what_notices_told_of_is_believed(world: World) -> None:
    """Otherwise half a fleet taken at once would look like a list gone wrong, and hold the scan."""
    machines = with_workers(world, 20)
    for machine in machines[:15]:
        world.cloud.vanish(machine.key)
    heed([a_notice(one, name=one.key.worker_id) for one in machines[:15]], world.deps)
    world.deliver_all()
    world.cloud.vanish(machines[15].key)

    scan_later(world)

    assert world.row(machines[15].key).state is State.STOPPED


def test_a_cloud_that_does_not_answer_gets_its_notices_again_and_stops_no_other_location(
    world: World,
) -> None:
    (machine,) = with_workers(world, 1)
    world.cloud.vanish(machine.key)
    world.provider.fail(Method.RECOGNISE, CloudUnavailableError("down"), subject="i-far")
    far = Notice("n-far", ELSEWHERE, "i-far", GONE)

    assert heed([far, a_notice(machine)], world.deps) == {"n-far"}

    assert world.states() == {"stopped": 1}


def test_a_registration_between_reading_and_writing_is_judged_anew(world: World) -> None:
    world.save_pool()
    world.demand(pending=1)
    world.tick()
    (machine,) = world.cloud.alive()
    with world.aside():
        stores, read = world.stores, world.stores.workers.get_many
    registered: list[bool] = []

    def read_then_register(keys: set[WorkerKey]) -> object:
        rows = read(keys)
        registered.append(world.register(machine.key))
        return rows

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stores.workers, "get_many", read_then_register)
        assert heed([a_notice(machine, STOPPING)], world.deps) == frozenset()

    assert registered == [True, False]
    row = world.row(machine.key)
    assert row.registered is not None
    assert row.state is State.STOPPING
    assert world.pool_errors() == [], "it did register"


def test_a_row_that_never_holds_still_makes_its_notice_come_again(world: World) -> None:
    (machine,) = with_workers(world, 1)
    stores, read = world.stores, world.stores.workers.get_many
    reads: list[object] = []

    def read_then_change(keys: set[WorkerKey]) -> object:
        rows = read(keys)
        reads.append(rows)
        later = world.clock.now + timedelta(seconds=len(reads))
        stores.workers.change(world.row(machine.key), first_claim=later)
        return rows

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stores.workers, "get_many", read_then_change)
        assert heed([a_notice(machine, STOPPING)], world.deps) == {"n-1"}

    assert len(reads) == ROUNDS
    assert world.states() == {"running": 1}
    assert heed([a_notice(machine, STOPPING)], world.deps) == frozenset()
    assert world.states() == {"stopping": 1}


def test_a_warned_worker_is_told_to_terminate_and_is_replaced_while_it_still_runs(
    world: World,
) -> None:
    """Two minutes are known, and enough to have the replacement boot."""
    (machine,) = with_workers(world, 1, minimum=1)

    assert heed([a_notice(machine, None)], world.deps) == frozenset()

    assert world.told_to_terminate() == {machine.key.worker_id: "spot interruption"}
    assert planned(world) == ["again-n-1"]
    world.deliver_all()
    assert world.states() == {"running": 1, "requested": 1}


def test_a_warning_stands_whatever_the_demand(world: World) -> None:
    (machine,) = with_workers(world, 1)
    heed([a_notice(machine, None)], world.deps)
    world.demand(pending=5, claimed=1)

    for _ in range(3):
        world.clock.advance(seconds=30)
        world.tick()

    surplus = world.row(machine.key).surplus
    assert surplus is not None
    assert surplus.reason != NEEDED
    assert surplus.terminate


def test_a_warned_worker_still_counts_against_the_maximum(world: World) -> None:
    machines = with_workers(world, 2)
    world.save_pool(maximum=2)
    world.demand(pending=10, claimed=2)
    heed([a_notice(machines[0], None)], world.deps)

    world.deliver_all()

    assert len(world.cloud.alive()) == 2


def test_a_warning_that_comes_again_or_before_its_sequel_plans_once(world: World) -> None:
    (machine,) = with_workers(world, 1)
    heed([a_notice(machine, None)], world.deps)
    heed([a_notice(machine, None)], world.deps)
    world.cloud.vanish(machine.key)

    heed([a_notice(machine, STOPPING, name="n-2")], world.deps)
    heed([a_notice(machine, GONE, name="n-3")], world.deps)

    assert world.states() == {"stopped": 1}
    assert planned(world) == ["again-n-1"]


def test_a_warned_machine_that_has_not_registered_is_warned_when_it_does(world: World) -> None:
    world.save_pool()
    world.demand(pending=1)
    world.tick()
    (machine,) = world.cloud.alive()

    heed([a_notice(machine, None)], world.deps)
    world.register(machine.key)

    assert world.told_to_terminate(POOL_ID) == {machine.key.worker_id: "spot interruption"}


def test_a_cloud_that_gives_no_notice_is_a_fault_of_the_deployment(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    (machine,) = with_workers(world, 1)
    monkeypatch.delattr(type(world.provider), "recognise")

    assert heed([a_notice(machine)], world.deps) == {"n-1"}
