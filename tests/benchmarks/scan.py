"""A scan of a standing fleet in which nothing changed: what it asks, what it writes, how long.

B11: one call a worker made a pass over 1,200 workers take 50 minutes.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from tests.benchmarks.fleet import seed
from tests.benchmarks.pools import create_pools
from tests.benchmarks.results import Measure
from tests.benchmarks.world import now
from worker_manager.core.messages import ScanPool
from worker_manager.reconcile.listing import scan_tick
from worker_manager.reconcile.scan import scan
from worker_manager.reconcile.ticks import Tick

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.benchmarks.world import World
    from worker_manager.core.model import Worker

WORKERS = 4_250
POOLS = 45
LAUNCH_CONFIGS = 7
CALL_SECONDS = 0.05


def measure_scan(world: World, *, scale: float = 1.0) -> list[Measure]:
    """Seed a fleet, let one scan establish what is there, and measure the next."""
    pools = create_pools(
        world.deps.stores.pools, range(max(1, round(POOLS * scale))), launch_configs=LAUNCH_CONFIGS
    )
    rows = seed(world.simulated, world.deps.stores.workers, pools, round(WORKERS * scale))
    _remember(world, rows)
    world.handle(
        tick=lambda _: scan_tick(Tick(now(), 0, world.deps.timing.scan), world.deps),
        scan=lambda body: scan(ScanPool.from_json(body), world.deps),
    )
    world.simulated.control(latency={"*": CALL_SECONDS})
    world.deliver("tick")
    world.simulated.control(reset="counts")
    world.queue.calls.clear()
    before, delivered = len(world.meter.calls), world.delivery.delivered
    seconds = world.deliver("tick")
    messages = world.delivery.delivered - delivered - 1
    calls = world.meter.calls[before:]
    workers = world.tables.workers.Meta.table_name
    return [
        Measure("scan_cloud_calls", world.simulated.calls(), "calls", 12),
        Measure("scan_seconds", round(seconds, 2), "s", 5),
        Measure(
            "scan_worker_writes",
            sum(call.is_write and workers in call.tables for call in calls),
            "writes",
            0,
        ),
        Measure("scan_queue_calls", world.queue.calls.total(), "calls", messages),
    ]


def _remember(world: World, rows: Sequence[Worker]) -> None:
    """The queue knows all of them, and heard of them lately."""
    for row in rows:
        world.queue.set_activity(
            row.key.pool_id,
            row.key.group,
            row.key.worker_id,
            first_claim=row.first_claim,
            last_active=now() - timedelta(minutes=1),
        )
