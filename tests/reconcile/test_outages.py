"""What fails in one place costs that place a few calls, and the rest neither time nor requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.factories import a_head
from tests.reconcile.scenes import refusing, with_workers
from worker_manager.core.errors import CloudUnavailableError, OutOfCapacityError
from worker_manager.core.model import Location
from worker_manager.providers.fake import Method

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable

    from tests.reconcile.world import World

    NewWorld = Callable[..., World]

WEST = Location("us-west-2")
OTHER = "proj-y/pool-2"
NONE_LEFT = OutOfCapacityError("none left", code="InsufficientInstanceCapacity")


def test_what_one_region_lacks_is_asked_for_there_a_few_times_and_is_got_elsewhere_at_once(
    world: World,
) -> None:
    """B20 (taskcluster#6817): asked for again and again where it was not to be had, for an hour."""
    east = a_head("lc-east", offering="us-east-1/-/m5.large/spot")
    west = a_head("lc-west", location=WEST, offering="us-west-2/-/m5.large/spot")
    world.save_pool(heads=[east, west], maximum=1000)
    with refusing(world.provider, NONE_LEFT, only={"lc-east"}) as asked:
        for number in range(20):
            world.demand(pending=2, claimed=2 * number)
            world.tick()
            world.clock.advance(seconds=30)
            world.tick()

            assert len(world.cloud.alive()) == 2 * number + 2, "all that was wanted, at once"
            world.register_all()
            world.clock.advance(minutes=2, seconds=30)

    assert 1 <= len(asked) <= 6


class _Neighbour:
    """A pool that goes on as ever: what each of its ticks costs, and what came of it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.requests: list[Counter[str]] = []
        world.save_pool(OTHER, heads=[a_head("lc-b", offering="other")], maximum=1000)

    def live(self, *, minutes: int) -> list[int]:
        """Half a minute at a time; how many machines it had in the end of each."""
        machines = []
        for number in range(2 * minutes):
            self.world.demand(pending=1, claimed=number, pool_id=OTHER)
            self.world.send_ticks()
            for delivery in [d for d in self.world.mail if d.due <= self.world.clock.now]:
                self.world.mail.remove(delivery)
                self.world.fuse.reset()
                self.world.deliver(delivery)
                if delivery.body["pool"] == OTHER:
                    self.requests.append(self.world.fuse.requests.copy())
            machines.append(sum(m.key.pool_id == OTHER for m in self.world.cloud.alive()))
            self.world.register_all()
            self.world.clock.advance(seconds=30)
        return machines


def test_an_outage_of_one_pool_costs_another_neither_time_nor_requests(
    new_world: NewWorld,
) -> None:
    """B41 (karpenter#3198): one pool's 600 that were not to be had slowed down all others."""
    requests = []
    for pending in (0, 600):
        world = new_world()
        world.save_pool(heads=[a_head(offering="sold out")], maximum=1000)
        world.cloud.capacity["lc-a"] = 0
        world.demand(pending=pending)
        neighbour = _Neighbour(world)

        assert neighbour.live(minutes=10) == list(range(1, 21)), "what it wants, at each tick"
        requests.append(neighbour.requests)

    calm, outage = requests
    assert outage == calm
    assert len(outage) == 20


@pytest.mark.parametrize("idle", [1, 10])
def test_a_launch_that_is_stuck_keeps_no_idle_worker(world: World, idle: int) -> None:
    """B54 (kubernetes/autoscaler#8258): nothing scaled down while anything was scaling up."""
    machines = with_workers(world, idle)
    world.provider.fail(Method.LAUNCH, CloudUnavailableError("no answer"), times=99)
    world.demand(pending=idle + 1)
    world.clock.advance(seconds=30)
    world.tick()
    assert len(world.open_plans()) == 1

    world.demand()
    world.clock.advance(seconds=30)
    world.tick()

    assert len(world.open_plans()) == 1, "it is still stuck"
    assert world.told_to_terminate().keys() == {machine.key.worker_id for machine in machines}
