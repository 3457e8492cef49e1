"""Beginnings that several tests share, and what they look at."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.factories import POOL_ID, REGION
from worker_manager.core.model import LaunchOrder
from worker_manager.providers.fake import FakeProvider, Method

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from datetime import datetime

    from tests.reconcile.world import World
    from worker_manager.core.breaker import Breaker
    from worker_manager.providers.fake_cloud import Machine
    from worker_manager.providers.protocol import Launched


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


@contextmanager
def refusing(
    provider: FakeProvider, error: Exception, *, only: Collection[str] = ()
) -> Iterator[list[datetime]]:
    """A cloud that refuses every launch (of these launch configs only); when it was asked."""
    asked: list[datetime] = []
    launch = provider.launch

    def refuse(order: LaunchOrder) -> Launched:
        if only and order.launch_config_id not in only:
            return launch(order)
        asked.append(provider.cloud.clock())
        provider.fail(Method.LAUNCH, error, subject=order.order_id)
        return launch(order)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(provider, "launch", refuse)
        yield asked


def launches(world: World, provider_id: str = "aws") -> list[datetime]:
    """When the cloud was asked to launch."""
    calls = world.providers[provider_id].calls
    return [call.at for call in calls if call.method is Method.LAUNCH]


def shared(world: World, offering: str, provider_id: str = "aws") -> Breaker | None:
    """The breaker that pools share for an offering."""
    with world.aside():
        return world.stores.offerings.get(provider_id, offering)


def own_breakers(world: World, pool_id: str = POOL_ID) -> Mapping[str, Breaker]:
    with world.aside():
        return world.stores.pools.control(pool_id).breakers


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
