"""Pools as the field has them, written by the store that the API writes them with."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tests.benchmarks.world import PROVIDER, REGIONS, THREADS, now
from worker_manager.core.definition import Parts, take_apart
from worker_manager.core.model import Location, Pool
from worker_manager.store.pools import PoolChange

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from worker_manager.store.pools import PoolStore

AGE = timedelta(hours=1)
"""How long pools, and workers of a standing fleet, have been there."""


def pool_id_of(number: int) -> str:
    """Name of the pool with this number."""
    return f"proj-bench/linux-builder-{number:03d}"


def define(number: int, *, launch_configs: int, maximum: int = 100) -> tuple[Pool, Parts]:
    """A pool whose launch configs are spread over the regions, beginning with its own."""
    configs = [_launch_config(number, index) for index in range(launch_configs)]
    config = {
        "minCapacity": 0,
        "maxCapacity": maximum,
        "scalingRatio": 1.0,
        "lifecycle": {"registrationTimeout": 1800, "reregistrationTimeout": 345_600},
        "launchConfigs": configs,
    }
    born = now() - AGE
    parts = take_apart(
        pool_id_of(number), config, now=born, location_of=lambda body: Location(body["region"])
    )
    pool = Pool(
        pool_id=pool_id_of(number),
        provider_id=PROVIDER,
        description="Builds what the project ships, and runs its tests",
        owner="build-team@example.com",
        email_on_error=False,
        config=parts.root,
        heads=parts.heads,
        created=born,
        modified=born,
        version=1,
    )
    return pool, parts


def create_pools(store: PoolStore, numbers: Iterable[int], *, launch_configs: int) -> list[Pool]:
    """Define and save these pools."""
    defined = [define(number, launch_configs=launch_configs) for number in numbers]

    def save(one: tuple[Pool, Parts]) -> Pool:
        pool, parts = one
        change = PoolChange(after=pool, before=None, bodies=parts.bodies, events=())
        store.save(change)
        return pool

    with ThreadPoolExecutor(THREADS) as threads:
        return list(threads.map(save, defined))


def region_of(number: int, index: int) -> Location:
    """Where launch config ``index`` of a pool launches."""
    return REGIONS[(number + index) % len(REGIONS)]


def _launch_config(number: int, index: int) -> dict[str, Any]:
    region = region_of(number, index)
    return {
        "region": region,
        "launchConfig": {
            "ImageId": f"ami-{number:08x}{index:09x}",
            "InstanceType": ("m5.large", "m6i.large", "c5.large")[index % 3],
            "SecurityGroupIds": ["sg-0123456789abcdef0"],
            "SubnetId": f"subnet-0123456789abcd{index:03x}",
            "InstanceMarketOptions": {"MarketType": "spot"},
        },
        "workerConfig": {
            "capacity": 1,
            "dockerConfig": {"allowPrivileged": True},
            "shutdown": {"enabled": True, "afterIdleSeconds": 120},
            "artifacts": {"skipCompressionExtensions": [".7z", ".gz", ".xz", ".zip", ".zst"]},
        },
        "workerManager": {"capacityPerInstance": 1, "initialWeight": 0.9, "maxCapacity": 80},
    }


def shares(total: int, parts: int) -> Sequence[int]:
    """``total`` cut into ``parts`` whole numbers that differ by one at most."""
    return [total // parts + (index < total % parts) for index in range(parts)]
