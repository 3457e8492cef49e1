"""Pools as the field has them, written by the store that the API writes them with."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tests.benchmarks.clouds import AWS
from tests.benchmarks.world import THREADS, now
from worker_manager.core.definition import Parts, take_apart
from worker_manager.core.model import Pool
from worker_manager.store.pools import PoolChange

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tests.benchmarks.clouds import Cloud
    from worker_manager.core.model import Json, Location
    from worker_manager.store.pools import PoolStore

AGE = timedelta(hours=1)
"""How long pools, and workers of a standing fleet, have been there."""


def pool_id_of(number: int) -> str:
    """Name of the pool with this number."""
    return f"proj-bench/linux-builder-{number:03d}"


def number_of(pool: Pool) -> int:
    """The number that it was named by."""
    return int(pool.pool_id.rpartition("-")[2])


def define(
    number: int,
    *,
    launch_configs: int,
    maximum: int = 100,
    cloud: Cloud = AWS,
    body: Callable[[str, int], dict[str, Any]] | None = None,
    registration_seconds: int = 1_800,
) -> tuple[Pool, Parts]:
    """A pool whose launch configs are spread over the cloud's groups, beginning with its own.

    They are the cloud's usual ones, or what ``body`` makes for a group and a number.
    """
    make = body or cloud.launch_config
    configs = [
        _launch_config(make(cloud.group_of(number, index), number * 1_000 + index))
        for index in range(launch_configs)
    ]
    config = {
        "minCapacity": 0,
        "maxCapacity": maximum,
        "scalingRatio": 1.0,
        "lifecycle": {
            "registrationTimeout": registration_seconds,
            "reregistrationTimeout": 345_600,
        },
        "launchConfigs": configs,
    }

    def location_of(given: Json) -> Location:
        return cloud.location_of(group_of(given))

    born = now() - AGE
    parts = take_apart(pool_id_of(number), config, now=born, location_of=location_of)
    pool = Pool(
        pool_id=pool_id_of(number),
        provider_id=cloud.name,
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


def create_pools(store: PoolStore, numbers: Iterable[int], **kind: Any) -> list[Pool]:
    """Define these pools, each as ``define`` does with ``kind``, and save them."""
    defined = [define(number, **kind) for number in numbers]

    def save(one: tuple[Pool, Parts]) -> Pool:
        pool, parts = one
        change = PoolChange(after=pool, before=None, bodies=parts.bodies, events=())
        store.save(change)
        return pool

    with ThreadPoolExecutor(THREADS) as threads:
        return list(threads.map(save, defined))


def group_of(body: Json) -> str:
    """The worker group that a launch config's machines come into."""
    return str(body.get("zone") or body.get("location") or body["region"])


def _launch_config(body: dict[str, Any]) -> dict[str, Any]:
    """The body of a cloud with what is the same everywhere."""
    return {
        **body,
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
