"""Beginnings that several tests share, and what they look at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.factories import POOL_ID, REGION
from worker_manager.core.model import LaunchOrder
from worker_manager.providers.fake import FakeProvider, Method

if TYPE_CHECKING:
    from tests.reconcile.world import World
    from worker_manager.providers.fake_cloud import Machine


def with_workers(world: World, count: int, **pool: Any) -> list[Machine]:
    """So many registered workers that nobody needs, seen by one scan."""
    world.save_pool(maximum=100, **pool)
    world.demand(pending=count)
    world.tick()
    world.demand()
    world.register_all()
    world.clock.advance(minutes=2)
    world.scan()
    return world.cloud.alive()


def scan_later(world: World, minutes: int = 1, times: int = 1) -> None:
    for _ in range(times):
        world.clock.advance(minutes=minutes)
        world.scan()


def terminated(world: World) -> list[str]:
    return [call.subject for call in world.provider.calls if call.method is Method.TERMINATE]


def is_told_to_go(machine: Machine) -> bool:
    return machine.terminated is not None


def strays(world: World, count: int, deployment: str = "stage-x") -> list[Machine]:
    """Machines that no row and no plan accounts for."""
    order = LaunchOrder(
        order_id="o-unknown",
        pool_id=POOL_ID,
        provider_id="aws",
        launch_config_id="lc-a",
        location=REGION,
        count=count,
        body={},
        inputs={"deployment": deployment},
    )
    FakeProvider(provider_id="aws", deployment=deployment, cloud=world.cloud).launch(order)
    return world.cloud.ordered("o-unknown")
