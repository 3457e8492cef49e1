"""Two at the same pool at once: the second runs whole at each request of the first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.reconcile.naming import NamingWorld, assert_named
from tests.reconcile.shaking import interleave, plan_as
from tests.reconcile.world import World, heads
from worker_manager.core.events import WORKER_REMOVED, WORKER_STOPPED
from worker_manager.providers.fake import Method

if TYPE_CHECKING:
    from collections.abc import Callable

    NewWorld = Callable[..., World]
    Act = Callable[[World], None]


def a_pool_with_demand(new_world: NewWorld, *names: str) -> World:
    world = new_world()
    world.save_pool(heads=heads(*(names or ("lc-a",))), maximum=10)
    world.demand(pending=3)
    return world


def launches_three(world: World) -> None:
    assert len(world.cloud.machines) == 3
    world.clock.advance(seconds=30)
    world.tick()
    assert len(world.cloud.machines) == 3
    assert world.states() == {"requested": 3}
    assert world.open_plans() == []


def test_two_planners_at_once_launch_equal_demand_once(new_world: NewWorld) -> None:
    points = interleave(
        lambda: a_pool_with_demand(new_world), plan_as("t-1"), plan_as("t-2"), launches_three
    )
    assert points > 15


def test_the_same_tick_twice_at_once_never_launches_twice(new_world: NewWorld) -> None:
    """The second may cancel what the first noted and not sent; the next tick repairs."""

    def check(world: World) -> None:
        world.clock.advance(seconds=30)
        world.tick()
        launches_three(world)

    interleave(
        lambda: a_pool_with_demand(new_world, "lc-a", "lc-b"), plan_as("t-1"), plan_as("t-1"), check
    )


def test_a_scan_in_the_midst_of_provisioning_changes_nothing(new_world: NewWorld) -> None:
    def check(world: World) -> None:
        launches_three(world)
        assert all(call.method is not Method.TERMINATE for call in world.provider.calls)

    interleave(lambda: a_pool_with_demand(new_world), plan_as("t-1"), World.scan, check)


def test_provisioning_in_the_midst_of_a_scan_launches_equal_demand(new_world: NewWorld) -> None:
    def prepare() -> World:
        world = a_pool_with_demand(new_world, "lc-a", "lc-b")
        world.tick()
        world.demand(pending=4)
        world.clock.advance(minutes=2)
        world.cloud.vanish(world.cloud.alive()[0].key)
        return world

    def check(world: World) -> None:
        world.clock.advance(seconds=30)
        world.tick()
        assert len(world.cloud.alive()) == 4

    interleave(prepare, World.scan, plan_as("t-2"), check)


def test_nobody_terminates_a_worker_that_registers_during_the_scan(new_world: NewWorld) -> None:
    """The scan read a worker past its deadline; before it acts, the worker registers."""
    registered: list[bool] = []

    def prepare() -> World:
        world = new_world()
        world.save_pool(lifecycle={"registrationTimeout": 300})
        world.demand(pending=1)
        world.tick()
        world.scan()
        world.clock.advance(minutes=6)
        registered.clear()
        return world

    def register(world: World) -> None:
        (machine,) = world.cloud.machines.values()
        registered.append(world.register(machine.key))

    def check(world: World) -> None:
        (machine,) = world.cloud.machines.values()
        if registered == [True]:
            assert machine.terminated is None
            assert world.states() == {"running": 1}
        else:
            assert machine.terminated is not None
            assert world.states() == {"stopping": 1}

    assert interleave(prepare, World.scan, register, check) > 4


def test_overlapping_scans_are_one(new_world: NewWorld) -> None:
    """B09: a scan that outlived its interval was overtaken by the next, on shared state."""

    def prepare() -> World:
        world = new_world()
        world.save_pool()
        world.demand(pending=2)
        world.tick()
        world.demand()
        world.register_all()
        world.clock.advance(minutes=2)
        stopped, gone = world.cloud.alive()
        world.cloud.stop(stopped.key)
        world.cloud.vanish(gone.key)
        return world

    def check(world: World) -> None:
        assert world.states() == {"stopping": 1, "stopped": 1}
        events = {
            event["id"]
            for event in world.bus.published
            if event["name"] in (WORKER_REMOVED, WORKER_STOPPED)
        }
        assert len(events) == 2

    interleave(prepare, World.scan, World.scan, check)


def test_a_scan_in_the_midst_of_a_launch_under_our_names_judges_nobody(
    new_naming: Callable[..., NamingWorld],
) -> None:
    """The list lags by nothing, so that rows which were just announced count as old."""

    def prepare() -> NamingWorld:
        world = new_naming()
        world.save_pool()
        world.demand(pending=2)
        return world

    def scan_a_minute_later(world: NamingWorld) -> None:
        world.clock.advance(minutes=1)
        world.scan()

    def check(world: NamingWorld) -> None:
        assert world.states() == {"requested": 2}
        assert len(world.cloud.machines) == 2
        assert_named(world)

    interleave(prepare, plan_as("t-1"), scan_a_minute_later, check)
