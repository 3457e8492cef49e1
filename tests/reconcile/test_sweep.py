"""What outlives its machine is found by list, told, and taken away."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.factories import a_head
from tests.reconcile.naming import (
    NamingWorld,
    assert_named,
    assert_nothing_left,
    only_row,
    slots_used,
)
from tests.reconcile.scenes import scan_later
from worker_manager.core.errors import CloudError, CloudUnavailableError, ThrottledError
from worker_manager.core.model import NULL_PROVIDER, Location, State
from worker_manager.providers.fake import Method

if TYPE_CHECKING:
    from tests.reconcile.world import World
    from worker_manager.core.model import WorkerKey

PARTS = frozenset({"disk", "nic", "ip"})
DOWN = CloudUnavailableError("down", code="InternalServerError")


def made(world: NamingWorld, count: int = 1) -> list[WorkerKey]:
    """So many machines, each with parts that outlive it."""
    world.cloud.outliving = PARTS
    world.save_pool()
    world.demand(pending=count)
    world.tick()
    world.demand()
    world.clock.advance(minutes=2)
    world.deliver_all()
    world.scan()
    return [row.key for row in world.rows()]


def left_over(world: NamingWorld, count: int = 1) -> None:
    """So many machines are gone, and what they had is not."""
    for key in made(world, count):
        world.cloud.vanish(key)
    scan_later(world, times=2)
    assert set(world.states()) == {"stopped"}


def sweeps(world: World) -> tuple[int, int]:
    """What a sweep found, and removed."""
    (report,) = world.sweep()
    return report["found"], report["removed"]


def test_what_is_left_over_is_told_with_its_age_and_removed_when_it_is_old(
    naming: NamingWorld, caplog: pytest.LogCaptureFixture
) -> None:
    left_over(naming)
    assert sweeps(naming) == (3, 0)
    assert "left over without a worker" in caplog.messages

    naming.clock.advance(minutes=20)

    assert sweeps(naming) == (3, 3)
    assert sweeps(naming) == (0, 0)
    assert_nothing_left(naming)


@pytest.mark.parametrize(
    ("state", "removed"),
    [(State.REQUESTED, 0), (State.STOPPING, 0), (State.RUNNING, 3), (State.STOPPED, 3)],
)
def test_parts_are_left_alone_while_a_launch_or_a_delete_is_at_them(
    naming: NamingWorld, state: State, removed: int
) -> None:
    (key,) = made(naming)
    naming.cloud.vanish(key)
    with naming.aside():
        naming.stores.workers.change(naming.row(key), state=state)
    naming.clock.advance(hours=1)

    assert sweeps(naming) == (removed, removed)


def test_the_record_of_a_creation_that_nobody_followed_is_removed(naming: NamingWorld) -> None:
    """Its slot is free again, but not before nobody can be at it any more."""
    naming.save_pool()
    naming.demand(pending=1)
    naming.tick()
    naming.lose("advance")
    naming.clock.advance(minutes=2)
    naming.scan()
    naming.register(only_row(naming).key)
    naming.clock.advance(minutes=20)
    assert slots_used(naming) == 1

    assert sweeps(naming) == (1, 1)

    assert naming.cloud.records["records"] == {}
    naming.clock.advance(hours=4)
    naming.sweep()
    assert slots_used(naming) == 0
    assert naming.states() == {"running": 1}


def test_parts_without_any_row_are_removed_too(naming: NamingWorld) -> None:
    left_over(naming)
    with naming.aside():
        naming.tables.workers.get(
            "proj-x/pool-1", naming.tables.workers.query("proj-x/pool-1").next().sk
        ).delete()
    naming.clock.advance(hours=1)

    assert sweeps(naming) == (3, 3)


def test_what_cannot_be_removed_keeps_nothing_else_and_is_tried_again(
    naming: NamingWorld, caplog: pytest.LogCaptureFixture
) -> None:
    left_over(naming, 2)
    naming.clock.advance(hours=1)
    stubborn = sorted(naming.cloud.parts)[0]
    naming.provider.stubborn[stubborn] = DOWN
    assert sweeps(naming) == (6, 5)
    assert "a leftover stays" in caplog.messages

    naming.provider.stubborn.clear()

    assert sweeps(naming) == (1, 1)


@pytest.mark.parametrize("method", [Method.LEFTOVERS, Method.REMOVE])
@pytest.mark.parametrize("error", [DOWN, ThrottledError("slow")])
def test_a_location_that_cannot_be_swept_keeps_no_other(
    naming: NamingWorld, method: Method, error: CloudError
) -> None:
    west = Location("us-west-2")
    naming.save_pool("proj-x/west", heads=[a_head(location=west)])
    naming.demand(pending=1, pool_id="proj-x/west")
    left_over(naming)
    (far,) = (row.key for row in naming.rows("proj-x/west"))
    naming.cloud.vanish(far)
    scan_later(naming, times=2)
    naming.clock.advance(hours=1)
    subject = {"subject": west} if method is Method.LEFTOVERS else {"subject": far.worker_id}
    naming.provider.fail(method, error, **subject)

    assert sweeps(naming)[1] == 3
    assert sweeps(naming) == (3, 3)


def test_what_the_last_pool_of_a_provider_left_over_is_removed_too(naming: NamingWorld) -> None:
    left_over(naming)
    naming.save_pool(heads=[], provider_id=NULL_PROVIDER, previous=("aws",))
    scan_later(naming, times=3)
    with naming.aside():
        assert naming.stores.places.of_provider("aws")[0] == [], "nobody is there any more"
    naming.clock.advance(hours=1)

    assert sweeps(naming) == (3, 3)


def test_a_cloud_where_nothing_outlives_a_machine_is_not_asked(world: World) -> None:
    world.save_pool()
    assert sweeps(world) == (0, 0)
    assert world.provider.calls == []


STEPS = (
    Method.TERMINATE,
    Method.INSTANCES,
    Method.LOOKUP,
    Method.LEFTOVERS,
    Method.REMOVE,
)


@pytest.mark.parametrize("method", STEPS)
@pytest.mark.parametrize("after_acting", [False, True])
def test_a_fault_at_any_step_of_a_delete_leaves_nothing_in_the_end(
    naming: NamingWorld, method: Method, after_acting: bool
) -> None:
    """B49: the machine was deleted, its interface and disk stayed for days."""
    (key,) = made(naming)
    naming.register(key)
    naming.remove(key)
    naming.provider.fail(method, DOWN, after_acting=after_acting)

    naming.deliver_all()
    scan_later(naming, times=4)
    naming.clock.advance(minutes=30)
    naming.sweep()
    naming.sweep()
    naming.deliver_all()

    assert naming.provider._faults[0].times == 0, "the fault was met"
    assert_nothing_left(naming)
    assert_named(naming)


def test_a_worker_whose_machine_is_gone_with_all_it_had_ends_with_one_look(
    naming: NamingWorld,
) -> None:
    """B07: 97 % of what was "stopping" for hours had no machine; each scan took one step."""
    keys = made(naming, 5)
    naming.cloud.parts.clear()
    for key in keys:
        naming.remove(key)
        naming.cloud.vanish(key)
    naming.lose("advance")
    before = len(naming.provider.calls)

    scan_later(naming)

    assert naming.states() == {"stopped": 5}
    asked = [call.method for call in naming.provider.calls[before:]]
    assert asked == [Method.INSTANCES, Method.LOOKUP]
