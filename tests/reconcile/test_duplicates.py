"""Messages that come twice, late, in any order, or never."""

from __future__ import annotations

from random import Random

import pytest

from tests.factories import POOL_ID
from tests.reconcile.invariants import assert_sound
from tests.reconcile.world import World, heads
from worker_manager.core.errors import CloudUnavailableError, ThrottledError
from worker_manager.providers.fake import Method

OTHER = "proj-x/pool-2"


@pytest.mark.parametrize("seed", range(2))
def test_messages_that_come_twice_and_in_any_order_lead_to_the_same_fleet(
    world: World, seed: int
) -> None:
    chance = Random(seed)
    world.save_pool(heads=heads("lc-a", "lc-b"), maximum=4)
    world.save_pool(OTHER, maximum=4)
    world.demand(pending=4)
    world.demand(pending=2, pool_id=OTHER)
    world.provider.fail(Method.LAUNCH, CloudUnavailableError("lost"), after_acting=True)
    world.provider.fail(Method.LAUNCH, ThrottledError("too fast"))

    for _ in range(3):
        world.send_ticks()
        world.send_scans()
        world.clock.advance(seconds=chance.choice([5, 30, 55]))
        world.send_ticks()
        world.deliver_all(chance, copies=2)
        assert_sound(world)
        for machine in world.cloud.alive():
            if chance.random() < 0.3:
                world.register(machine.key)
            elif chance.random() < 0.2:
                world.remove(machine.key)

    def is_served() -> bool:
        alive = [machine.key.pool_id for machine in world.cloud.alive()]
        return sorted(alive) == [POOL_ID] * 4 + [OTHER] * 2 and world.is_quiet()

    world.run_until(is_served)
    assert_sound(world)


def test_a_list_that_is_read_late_stops_nobody(world: World) -> None:
    world.save_pool()
    world.demand(pending=2)
    world.send_scans()
    world.tick()
    world.clock.advance(seconds=90)
    world.send_scans()
    world.mail.reverse()

    world.deliver_all()

    assert world.states() == {"requested": 2}
    assert len(world.cloud.alive()) == 2


def test_an_order_waits_for_the_scan_and_not_just_for_the_list(world: World) -> None:
    """A list was complete, but the message that adopts what it shows was held up."""
    world.save_pool()
    world.demand(pending=2)
    lost = CloudUnavailableError("lost")
    world.provider.fail(Method.LAUNCH, lost, after_acting=True)
    world.provider.fail(Method.LAUNCH, lost, times=19)
    for _ in range(30):
        world.clock.advance(seconds=30)
        world.tick()
        world.send_scans()
        world.lose("scan")
    assert len(world.open_plans()) == 1

    world.run(minutes=2)

    assert world.open_plans() == []
    assert world.states() == {"requested": 2}
    assert len(world.cloud.machines) == 2
