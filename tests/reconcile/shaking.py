"""Doing something again and again, with a crash or an intruder at one step more each time."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from tests.factories import POOL_ID
from tests.reconcile.deployment import PLENTY
from tests.reconcile.invariants import assert_sound
from tests.reconcile.steps import CrashError
from worker_manager.core.messages import ProvisionPool
from worker_manager.reconcile.provision import provision

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.reconcile.world import World

    Act = Callable[[World], None]

Shaken = TypeVar("Shaken", bound="World")


def crash_at_every_step(
    prepare: Callable[[], Shaken],
    act: Callable[[Shaken], None],
    check: Callable[[Shaken], None],
) -> list[str]:
    """Run ``act`` with a crash before its first step, its second, … until it survives.

    Returns the steps there were.
    """
    number = 0
    while True:
        number += 1
        world = prepare()
        world.fuse.reset(crash_at=number)
        try:
            act(world)
        except CrashError:
            world.mail.clear()
        survived, steps = not world.fuse.blown, list(world.fuse.steps)
        world.fuse.reset()
        assert_sound(world)
        world.settle()
        check(world)
        assert_sound(world)
        if survived:
            return steps


def interleave(
    prepare: Callable[[], Shaken],
    first: Callable[[Shaken], None],
    second: Callable[[Shaken], None],
    check: Callable[[Shaken], None],
) -> int:
    """Run ``second`` inside ``first``, before its first request, its second, …; how many."""
    number = 0
    while True:
        number += 1
        world = prepare()
        left = number

        def intrude(_: str, world: Shaken = world) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                world.fuse.on_request = None
                second(world)

        world.fuse.on_request = intrude
        first(world)
        world.fuse.on_request = None
        assert_sound(world)
        check(world)
        if left > 0:
            return number - 1


def plan_as(tick: str) -> Act:
    def act(world: World) -> None:
        world.reports.append(provision(ProvisionPool(POOL_ID, tick), world.deps, PLENTY))

    return act
