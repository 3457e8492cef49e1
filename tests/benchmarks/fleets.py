"""The fleets of three clouds, scanned side by side as they are deployed.

Each provider has queues, threads and a cloud of its own; all share the tables.  The reference takes
5,054 calls and up to hours for such a scan, one cloud after the other.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING

from tests.benchmarks.clouds import AWS, AZURE, GOOGLE
from tests.benchmarks.fleet import seed
from tests.benchmarks.pools import create_pools
from tests.benchmarks.results import Measure
from worker_manager.core.messages import ScanPool
from worker_manager.reconcile.listing import scan_tick
from worker_manager.reconcile.scan import scan
from worker_manager.reconcile.ticks import Tick

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.benchmarks.world import World
    from worker_manager.core.model import Worker

CALL_SECONDS = 0.05
FLEETS = {
    # cloud: workers, number of the first pool, pools, launch configs a pool
    AWS.name: (4_250, 0, 45, 7),
    AZURE.name: (696, 45, 10, 6),
    GOOGLE.name: (108, 55, 5, 4),
}
"""The fleet of the founding discussion: 5,054 workers in 60 pools."""
MOST_CALLS = 60
MOST_SECONDS = {AWS.name: 10, AZURE.name: 3, GOOGLE.name: 3}


def measure_fleets(worlds: Mapping[str, World], *, scale: float = 1.0) -> list[Measure]:
    """Let one scan establish what is there, and measure the next."""
    stand(worlds, scale)
    scan_all(worlds)
    for world in worlds.values():
        world.simulated.control(reset="counts")
    before = {name: len(world.meter.calls) for name, world in worlds.items()}
    seconds = scan_all(worlds)
    calls = {name: world.simulated.calls() for name, world in worlds.items()}
    writes = sum(_worker_writes(world, before[name]) for name, world in worlds.items())
    return [
        Measure("fleets_cloud_calls", sum(calls.values()), "calls", MOST_CALLS),
        Measure("fleets_seconds", round(max(seconds.values()), 2), "s", 10),
        Measure("fleets_worker_writes", writes, "writes", 0),
        *(Measure(f"fleets_{name}_calls", calls[name], "calls", MOST_CALLS) for name in worlds),
        *(
            Measure(f"fleets_{name}_seconds", round(seconds[name], 2), "s", MOST_SECONDS[name])
            for name in worlds
        ),
    ]


def stand(worlds: Mapping[str, World], scale: float) -> dict[str, list[Worker]]:
    """Seed the fleets, with calls that take their time from now on; the rows of each cloud."""
    return {name: stand_in(world, *_part(name, scale)) for name, world in worlds.items()}


def _part(name: str, scale: float) -> tuple[int, int, int, int]:
    workers, first, pools, launch_configs = FLEETS[name]
    return max(1, round(workers * scale)), first, max(1, round(pools * scale)), launch_configs


def stand_in(
    world: World, workers: int, first: int, pools: int, launch_configs: int
) -> list[Worker]:
    """Seed one cloud's fleet; the task queue heard of everybody lately."""
    made = create_pools(
        world.deps.stores.pools,
        range(first, first + pools),
        launch_configs=launch_configs,
        cloud=world.cloud,
    )
    rows = seed(world.simulated, world.deps.stores.workers, made, workers)
    remember(world, rows)
    world.handle(
        tick=lambda _: scan_tick(Tick(world.deps.clock(), 0, world.deps.timing.scan), world.deps),
        scan=lambda body: scan(ScanPool.from_json(body), world.deps),
    )
    world.simulated.control(latency={"*": CALL_SECONDS})
    return rows


def scan_all(worlds: Mapping[str, World]) -> dict[str, float]:
    """A scan tick of every cloud at the same moment; seconds until each is settled."""
    with ThreadPoolExecutor(len(worlds)) as threads:
        seconds = threads.map(lambda world: world.deliver("tick"), worlds.values())
        return dict(zip(worlds, seconds, strict=True))


def remember(world: World, rows: Sequence[Worker]) -> None:
    """The task queue knows all of them, and heard of them lately."""
    for row in rows:
        world.queue.set_activity(
            row.key.pool_id,
            row.key.group,
            row.key.worker_id,
            first_claim=row.first_claim,
            last_active=world.deps.clock() - timedelta(minutes=1),
        )


def _worker_writes(world: World, since: int) -> int:
    workers = world.tables.workers.Meta.table_name
    return sum(call.is_write and workers in call.tables for call in world.meter.calls[since:])
