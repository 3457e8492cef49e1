"""A crash before every single step, and what the next ticks make of it.

A step is a write, a cloud call (before and after the cloud acted), an event or a message.  The
process is dead from there on, and its message is lost as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.factories import POOL_ID
from tests.reconcile.naming import (
    NamingWorld,
    assert_named,
    assert_nothing_left,
    leave_in_peace,
    only_row,
)
from tests.reconcile.shaking import crash_at_every_step
from tests.reconcile.world import World, heads
from worker_manager.core.errors import CloudUnavailableError, OutOfCapacityError, ThrottledError
from worker_manager.core.events import POOL_ERROR, WORKER_REQUESTED, WORKER_STOPPED
from worker_manager.core.health import Health
from worker_manager.providers.fake import Method
from worker_manager.providers.fake_steps import Part

if TYPE_CHECKING:
    from collections.abc import Callable

    NewWorld = Callable[..., World]
    NewNaming = Callable[..., NamingWorld]


def test_a_provision_that_crashes_anywhere_ends_in_the_same_fleet(new_world: NewWorld) -> None:
    def prepare() -> World:
        world = new_world()
        world.save_pool(heads=heads("lc-a", "lc-b"), maximum=10)
        world.demand(pending=3)
        return world

    def check(world: World) -> None:
        assert len(world.cloud.machines) == 3
        assert world.states() == {"requested": 3}

    steps = crash_at_every_step(prepare, World.tick, check)
    assert steps.count("launch") == 2
    assert steps.count("publish") == 2


def test_an_order_that_is_refused_is_reported_and_replaced_wherever_we_crash(
    new_world: NewWorld,
) -> None:
    def prepare() -> World:
        world = new_world()
        world.save_pool(heads=heads("lc-a", "lc-b"), maximum=10)
        world.demand(pending=3)
        world.provider.fail(Method.LAUNCH, OutOfCapacityError("none left"))
        return world

    def check(world: World) -> None:
        world.clock.advance(seconds=30)
        world.tick()
        assert len(world.cloud.alive()) == 3
        plans = [world.stores.plans.get(POOL_ID, tick) for tick in world.plans()]
        refused = {order.order_id for plan in plans if plan for order in plan.orders if order.error}
        assert refused <= {error.extra["orderId"] for error in world.pool_errors()}
        told = [e["detail"]["errorId"] for e in world.bus.published if e["name"] == POOL_ERROR]
        assert {error.error_id for error in world.pool_errors()} == set(told)

    crash_at_every_step(prepare, World.tick, check)


def test_finishing_an_order_whose_answer_was_lost_may_crash_anywhere(new_world: NewWorld) -> None:
    def prepare() -> World:
        world = new_world()
        world.save_pool()
        world.demand(pending=2)
        lost = CloudUnavailableError("the connection was reset")
        world.provider.fail(Method.LAUNCH, lost, after_acting=True)
        world.tick()
        assert len(world.cloud.machines) == 2
        assert world.rows() == []
        world.clock.advance(seconds=30)
        return world

    def check(world: World) -> None:
        assert len(world.cloud.machines) == 2
        assert world.states() == {"requested": 2}
        assert world.open_plans() == []

    crash_at_every_step(prepare, World.tick, check)


def test_throttled_orders_and_their_return_may_crash_anywhere(new_world: NewWorld) -> None:
    def prepare() -> World:
        world = new_world()
        world.save_pool()
        world.demand(pending=1)
        world.provider.fail(Method.LAUNCH, ThrottledError("too fast"))
        return world

    def act(world: World) -> None:
        world.tick()
        world.clock.advance(seconds=7)
        world.deliver_all()

    def check(world: World) -> None:
        assert len(world.cloud.machines) == 1
        assert world.states() == {"requested": 1}

    steps = crash_at_every_step(prepare, act, check)
    assert "send advance" in steps


def test_a_scan_that_crashes_anywhere_stops_and_buries_the_same_workers(
    new_world: NewWorld,
) -> None:
    def prepare() -> World:
        world = new_world()
        world.save_pool()
        world.demand(pending=2)
        world.tick()
        world.demand()
        world.clock.advance(minutes=2)
        world.scan()
        stopped, gone = world.cloud.alive()
        world.cloud.stop(stopped.key)
        world.cloud.vanish(gone.key)
        world.clock.advance(minutes=1)
        return world

    def check(world: World) -> None:
        world.settle()
        assert world.cloud.alive() == []
        assert world.states() == {"stopped": 2}
        assert world.bus.names().count(WORKER_STOPPED) >= 2
        window = world.stores.health.window(POOL_ID, world.clock.now)
        assert window.get("lc-a", Health()).failed.get("never-registered", 0) <= 2
        buried = {row.key.worker_id for row in world.rows()}
        errors = world.pool_errors()
        assert sorted(error.extra["workerId"] for error in errors) == sorted(buried)
        told = {e["id"]: e for e in world.bus.published if e["name"] == POOL_ERROR}
        assert {e["detail"]["errorId"] for e in told.values()} == {e.error_id for e in errors}
        assert len(told) == len(buried) == 2

    steps = crash_at_every_step(prepare, World.scan, check)
    assert "terminate" in steps


def test_an_adoption_that_crashes_anywhere_ends_in_one_row_a_machine(new_world: NewWorld) -> None:
    def prepare() -> World:
        world = new_world()
        world.save_pool()
        world.demand(pending=2)
        lost = CloudUnavailableError("the connection was reset")
        world.provider.fail(Method.LAUNCH, lost, after_acting=True)
        world.tick()
        world.clock.advance(minutes=2)
        return world

    def check(world: World) -> None:
        assert len(world.cloud.machines) == 2
        assert world.states() == {"requested": 2}
        assert set(world.bus.names()) == {WORKER_REQUESTED, POOL_ERROR}

    crash_at_every_step(prepare, World.scan, check)


def test_the_delete_of_a_removed_worker_may_crash_anywhere(new_world: NewWorld) -> None:
    def prepare() -> World:
        world = new_world()
        world.save_pool()
        world.demand(pending=1)
        world.tick()
        world.demand()
        world.register_all()
        world.clock.advance(minutes=2)
        world.scan()
        world.remove(world.cloud.alive()[0].key)
        return world

    def check(world: World) -> None:
        world.settle()
        assert world.cloud.alive() == []
        assert world.states() == {"stopped": 1}

    steps = crash_at_every_step(prepare, World.deliver_all, check)
    assert "terminate" in steps


def test_a_surplus_that_crashes_anywhere_is_told_in_the_end(new_world: NewWorld) -> None:
    def prepare() -> World:
        world = new_world()
        world.save_pool()
        world.demand(pending=2)
        world.tick()
        world.register_all()
        world.demand(claimed=1)
        world.clock.advance(seconds=30)
        return world

    def check(world: World) -> None:
        told = [row.surplus.terminate for row in world.rows() if row.surplus]
        assert told.count(True) == 1

    crash_at_every_step(prepare, World.tick, check)


# Where names are ours, and creations take their time


def nothing_is_lost(world: NamingWorld) -> None:
    """No second machine, none unknown, no row without an end, no slot or record held for ever."""
    assert_named(world)
    leave_in_peace(world)
    assert_named(world)
    assert_nothing_left(world)


def test_a_launch_under_our_names_may_crash_anywhere(new_naming: NewNaming) -> None:
    """One machine is accepted, one has to wait, one is unknown; then the order is sent again."""

    def prepare() -> NamingWorld:
        world = new_naming()
        world.save_pool()
        world.demand(pending=3)
        world.provider.partly.append(Part(accepted=1, throttled=1, unknown=1, acted=True))
        return world

    def act(world: NamingWorld) -> None:
        world.tick()
        world.clock.advance(seconds=7)
        world.deliver_all()

    def check(world: NamingWorld) -> None:
        assert len(world.cloud.machines) == 3
        nothing_is_lost(world)

    steps = crash_at_every_step(prepare, act, check)
    assert steps.count("launch") == 2


def test_following_may_crash_anywhere(new_naming: NewNaming) -> None:
    """One creation fails, one goes well; what went lost is found by list."""

    def prepare() -> NamingWorld:
        world = new_naming()
        world.save_pool()
        world.demand(pending=2)
        world.cloud.fail_next(OutOfCapacityError("none left", code="AllocationFailed"))
        world.tick()
        world.demand()
        world.clock.advance(seconds=30)
        return world

    def check(world: NamingWorld) -> None:
        world.settle()
        (error,) = world.pool_errors()
        assert (error.kind, error.launch_config_id) == ("no-capacity", "lc-a")
        assert world.states() == {"requested": 1, "stopped": 1}
        nothing_is_lost(world)

    steps = crash_at_every_step(prepare, World.deliver_all, check)
    assert "follow" in steps


def test_a_delete_and_its_sweep_may_crash_anywhere(new_naming: NewNaming) -> None:
    """B49: whatever step was the last, nothing stays."""

    def prepare() -> NamingWorld:
        world = new_naming()
        world.cloud.outliving = frozenset({"nic"})
        world.save_pool()
        world.demand(pending=1)
        world.tick()
        world.demand()
        world.remove(only_row(world).key)
        world.clock.advance(seconds=30)
        return world

    def act(world: NamingWorld) -> None:
        world.deliver_all()
        world.clock.advance(minutes=2)
        world.scan()
        world.clock.advance(minutes=21)
        world.sweep()

    steps = crash_at_every_step(prepare, act, nothing_is_lost)
    assert {"terminate", "remove"} <= set(steps)
