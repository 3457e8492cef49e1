"""Pools that move to another provider, and pools that are deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.factories import POOL_ID, a_head
from tests.reconcile.invariants import assert_sound
from worker_manager.core.errors import CloudUnavailableError
from worker_manager.core.model import NULL_PROVIDER, Location
from worker_manager.core.surplus import ARCHIVED
from worker_manager.providers.fake import Method
from worker_manager.reconcile import listing
from worker_manager.reconcile.expire import expire
from worker_manager.reconcile.ticks import Tick

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.reconcile.world import World
    from worker_manager.core.activity import QueueCounts


@pytest.fixture
def world(new_world: Callable[..., World]) -> World:
    return new_world(provider_ids=("aws", "other"))


def move(world: World) -> None:
    world.save_pool(heads=[a_head("lc-new")], provider_id="other", previous=("aws",))


def delete(world: World) -> None:
    world.save_pool(heads=[], provider_id=NULL_PROVIDER, previous=("aws",), minimum=1)


def previous(world: World) -> tuple[str, ...]:
    with world.aside():
        pool = world.stores.pools.get(POOL_ID)
    assert pool is not None
    return pool.previous_provider_ids


def machines_leave(world: World) -> None:
    """Workers that are told to terminate shut their machines down."""
    told = world.told_to_terminate()
    for machine in world.cloud.alive():
        if machine.key.worker_id in told:
            world.cloud.vanish(machine.key)


def test_after_a_move_the_new_provider_alone_plans_over_all_workers(world: World) -> None:
    world.save_pool()
    world.demand(pending=2)
    world.tick()
    world.register_all()
    world.demand(pending=1, claimed=2)

    move(world)
    world.run(minutes=1)

    assert len(world.cloud.machines) == 2
    assert len(world.clouds["other"].machines) == 1
    assert set(world.told_to_terminate().values()) == {ARCHIVED}
    outcomes = {report.outcome for report in world.reports[1:]}
    assert "moved to another provider" in outcomes
    assert_sound(world)


def test_a_previous_provider_is_dropped_when_it_is_empty(world: World) -> None:
    world.save_pool()
    world.demand(pending=2)
    world.tick()
    world.register_all()
    world.demand()
    move(world)
    world.run(minutes=1)
    assert previous(world) == ("aws",)

    machines_leave(world)
    world.run(minutes=2)

    assert previous(world) == ()
    with world.aside():
        members, _ = world.stores.places.of_provider("aws")
    assert members == []


@pytest.mark.parametrize("at_once", [0, 100])
def test_a_large_provider_is_listed_location_by_location_to_the_same_end(
    world: World, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    places = [Location(name) for name in ("us-east-1", "us-west-2")]
    two = [a_head(f"lc-{name}", location=name) for name in places]
    world.save_pool(heads=two, minimum=6)
    world.tick()
    world.scan()
    world.register_all()
    monkeypatch.setattr(listing, "MOST_AT_ONCE", at_once)
    world.provider.calls.clear()
    world.clock.advance(minutes=1)
    world.send_scans()
    listed = [call for call in world.provider.calls if call.method is Method.INSTANCES]
    assert len(listed) == (0 if at_once == 0 else 2)
    tick = Tick(world.clock.now, 1, world.timing.scan, places[0])
    share = listing.scan_tick(tick, world.deps)
    assert (share["locations"], share["believed"]) == (1, 1)
    move(world)
    world.run(minutes=2)
    assert previous(world) == ("aws",)
    world.demand()
    machines_leave(world)
    world.run(minutes=4)
    assert previous(world) == ()
    listed = [call for call in world.provider.calls if call.method is Method.INSTANCES]
    assert {call.subject for call in listed} == set(places)
    assert_sound(world)


def test_a_previous_provider_finishes_what_it_began(world: World) -> None:
    world.save_pool()
    world.demand(pending=2)
    lost = CloudUnavailableError("lost")
    world.provider.fail(Method.LAUNCH, lost, after_acting=True)
    world.tick()

    move(world)
    world.run(minutes=1)

    assert world.open_plans() == []
    assert world.states() == {"requested": 2}
    assert world.clouds["other"].machines == {}
    assert previous(world) == ("aws",)


def test_a_listed_machine_keeps_its_previous_provider(world: World) -> None:
    world.save_pool()
    world.demand(pending=1)
    world.tick()
    (machine,) = world.cloud.alive()
    move(world)
    world.cloud.protect(machine.key)
    world.remove(machine.key)

    world.run(minutes=2)
    assert previous(world) == ("aws",)

    machine.protected = False
    world.run_until(lambda: previous(world) == (), minutes=4)


def test_workers_of_a_deleted_pool_are_told_to_terminate(world: World) -> None:
    world.save_pool()
    world.demand(pending=2)
    world.tick()
    world.register_all()
    world.demand(pending=5, claimed=2)

    delete(world)
    world.run(minutes=1)

    assert list(world.told_to_terminate().values()) == [ARCHIVED, ARCHIVED]
    assert len(world.cloud.machines) == 2


def test_a_deleted_pool_goes_once_it_is_empty(world: World) -> None:
    world.save_pool()
    world.demand(pending=1)
    world.tick()
    world.register_all()
    delete(world)
    world.run(minutes=1)
    expire(world.keeper)
    assert world.pool_ids() == [POOL_ID]

    machines_leave(world)
    world.run(minutes=2)
    expire(world.keeper)

    assert world.pool_ids() == []
    world.tick()


def test_a_plan_of_a_deleted_pool_that_was_left_meanwhile_launches_nothing(world: World) -> None:
    """Its planner read the pool before, and nobody would look after the machines any more."""
    world.save_pool()
    world.demand(pending=3)
    world.send_ticks()

    asked = world.queue.counts

    def slowly(pool_id: str) -> QueueCounts:
        delete(world)
        with world.aside():
            world.send_scans()
        assert previous(world) == ()
        return asked(pool_id)

    world.queue.counts = slowly  # type: ignore[method-assign]
    world.deliver_all()

    assert [report.outcome for report in world.reports] == ["lost to another planner"]
    assert world.cloud.machines == {}
    assert world.open_plans() == []


def test_a_place_that_does_not_exist_keeps_no_pool(world: World) -> None:
    """A region that somebody mistyped can never be listed."""
    nowhere = Location("us-wset-2")
    world.save_pool(heads=[a_head(), a_head("lc-nowhere", location=nowhere)])
    world.save_pool("other/pool", heads=[a_head("lc-nowhere", location=nowhere)])
    world.provider.fail(Method.INSTANCES, CloudUnavailableError("?"), times=99, subject=nowhere)
    world.run(minutes=2)

    delete(world)
    world.run(minutes=2)

    assert previous(world) == ()


def test_a_place_that_cannot_be_listed_just_now_keeps_its_own_pools_only(world: World) -> None:
    down = Location("us-west-2")
    world.save_pool()
    world.save_pool("other/pool", heads=[a_head("lc-down", location=down)])
    world.run(minutes=1)
    world.provider.fail(Method.INSTANCES, CloudUnavailableError("?"), times=99, subject=down)
    for pool_id in (POOL_ID, "other/pool"):
        world.save_pool(pool_id, heads=[], provider_id=NULL_PROVIDER, previous=("aws",))

    world.run(minutes=2)

    with world.aside():
        members, _ = world.stores.places.of_provider("aws")
    assert [member.pool_id for member in members] == ["other/pool"]
