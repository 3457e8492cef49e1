"""Hours of a pool's life, for what only shows with time."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import timedelta
from typing import TYPE_CHECKING

from tests.reconcile.invariants import assert_sound
from tests.reconcile.scenes import refusing
from worker_manager.core.errors import OutOfCapacityError
from worker_manager.core.model import State

if TYPE_CHECKING:
    from tests.reconcile.world import World


def test_an_image_that_never_registers_costs_no_more_than_what_is_wanted(world: World) -> None:
    """B01: a broken image filled a quota overnight, because nothing that waited ever ended."""
    world.save_pool(maximum=10, lifecycle={"registrationTimeout": 1800})
    world.demand(pending=4)

    most, oldest = 0, timedelta(0)
    for _ in range(100):
        world.run_slowly(minutes=1)
        alive = [machine for machine in world.cloud.alive() if machine.terminated is None]
        most = max(most, len(alive))
        oldest = max([oldest, *(world.clock.now - machine.launched for machine in alive)])

    assert most == 4
    assert oldest <= timedelta(minutes=32)
    assert len(world.cloud.machines) <= 4 * 4
    kinds = {(error.kind, error.launch_config_id) for error in world.pool_errors()}
    assert kinds == {("never-registered", "lc-a")}


def test_slow_deletes_and_failing_starts_neither_exceed_the_maximum_nor_starve(
    world: World,
) -> None:
    """B06: stopping machines counted, and pools starved; not counted, and pools outgrew it."""
    world.cloud.deletion_time = timedelta(minutes=12)
    world.save_pool(maximum=10)
    tasks, minutes = 30, 0

    while tasks and minutes < 90:
        minutes += 1
        world.demand(pending=tasks)
        none_left = refusing(world.provider, OutOfCapacityError("none left", code="ICE"))
        with none_left if minutes % 2 else nullcontext():
            world.run(minutes=1)
        for machine in world.cloud.alive():
            if tasks and world.register(machine.key):
                tasks -= 1
                world.works(machine.key)
                world.remove(machine.key)
        assert len(world.cloud.alive()) <= 10
        assert_sound(world)

    assert tasks == 0
    assert minutes <= 60


def test_a_pool_at_its_minimum_lives_for_hours_without_any_churn(world: World) -> None:
    """B23: a pool's minimum went idle, shut down and was started anew, for ever."""
    world.save_pool(minimum=5, maximum=10)
    world.run(minutes=2)
    world.register_all()

    for _ in range(6):
        for machine in world.cloud.alive():
            world.works(machine.key)
        world.run_slowly(minutes=10)

    assert len(world.cloud.machines) == 5
    assert world.told_to_terminate() == {}
    assert world.states() == {State.RUNNING.value: 5}
