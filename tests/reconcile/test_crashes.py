"""A crash after every single step, and what the next ticks make of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.reconcile.invariants import assert_sound
from tests.reconcile.steps import CrashError
from tests.reconcile.world import World, heads

if TYPE_CHECKING:
    from collections.abc import Callable

NewWorld = "Callable[..., World]"


def crash_at_every_step(
    prepare: Callable[[], World],
    act: Callable[[World], None],
    check: Callable[[World], None],
) -> int:
    """Run ``act`` with a crash before its first step, its second, … until it survives.

    Returns the number of steps there were.
    """
    number = 0
    survived = False
    while not survived:
        number += 1
        world = prepare()
        world.fuse.reset(crash_at=number)
        try:
            act(world)
        except CrashError:
            world.mail.clear()
        survived = not world.fuse.blown
        world.fuse.reset()
        assert_sound(world)
        world.settle()
        assert_sound(world)
        check(world)
    return number - 1


def test_a_provision_that_crashes_anywhere_ends_in_the_same_fleet(
    new_world: Callable[..., World],
) -> None:
    def prepare() -> World:
        world = new_world()
        world.save_pool(heads=heads("lc-a", "lc-b"), maximum=10)
        world.demand(pending=4)
        return world

    def check(world: World) -> None:
        assert len(world.cloud.machines) == 4
        assert world.states() == {"requested": 4}

    steps = crash_at_every_step(prepare, World.tick, check)
    assert steps > 10
