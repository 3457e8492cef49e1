"""A scan of a standing fleet in which nothing changed: what it asks, what it writes, how long.

B11: one call a worker made a pass over 1,200 workers take 50 minutes.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING

from tests.benchmarks.pools import AGE, create_pools, region_of, shares
from tests.benchmarks.results import Measure
from tests.benchmarks.world import DEPLOYMENT, PROVIDER, THREADS, now
from worker_manager.core.ids import order_id
from worker_manager.core.messages import ScanPool
from worker_manager.core.model import State, Worker, WorkerKey
from worker_manager.providers.aws.listing import (
    DEPLOYMENT_TAG,
    LAUNCH_CONFIG_TAG,
    ORDER_TAG,
    POOL_TAG,
)
from worker_manager.reconcile.listing import scan_tick
from worker_manager.reconcile.scan import scan
from worker_manager.reconcile.ticks import Tick

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.benchmarks.world import World
    from worker_manager.core.model import LaunchConfigHead, Pool

WORKERS = 4_250
POOLS = 45
LAUNCH_CONFIGS = 7
CALL_SECONDS = 0.05


def measure_scan(world: World, *, scale: float = 1.0) -> list[Measure]:
    """Seed a fleet, let one scan establish what is there, and measure the next."""
    pools = create_pools(world, range(max(1, round(POOLS * scale))), launch_configs=LAUNCH_CONFIGS)
    rows = _seed(world, pools, round(WORKERS * scale))
    _remember(world, rows)
    world.handle(
        tick=lambda _: scan_tick(Tick(now(), 0, world.deps.timing.scan), world.deps),
        scan=lambda body: scan(ScanPool.from_json(body), world.deps),
    )
    world.endpoints.control({"latency": {"*": CALL_SECONDS}})
    world.deliver("tick")
    world.endpoints.control({"reset": "counts"})
    world.queue.calls.clear()
    before, delivered = len(world.meter.calls), world.delivery.delivered
    seconds = world.deliver("tick")
    messages = world.delivery.delivered - delivered - 1
    calls = world.meter.calls[before:]
    workers = world.tables.workers.Meta.table_name
    return [
        Measure("scan_cloud_calls", world.endpoints.all_ec2_calls(), "calls", 12),
        Measure("scan_seconds", round(seconds, 2), "s", 5),
        Measure(
            "scan_worker_writes",
            sum(call.is_write and workers in call.tables for call in calls),
            "writes",
            0,
        ),
        Measure("scan_queue_calls", world.queue.calls.total(), "calls", messages),
    ]


def _seed(world: World, pools: Sequence[Pool], total: int) -> list[Worker]:
    """Machines, and their rows."""
    rows: list[Worker] = []
    for number, (pool, machines) in enumerate(zip(pools, shares(total, len(pools)), strict=True)):
        for index, (head, count) in enumerate(
            zip(pool.heads, shares(machines, len(pool.heads)), strict=True)
        ):
            order = order_id(pool.pool_id, "seed", head.launch_config_id, 0)
            tags = {
                "Name": pool.pool_id,
                "Owner": pool.owner,
                DEPLOYMENT_TAG: DEPLOYMENT,
                POOL_TAG: pool.pool_id,
                LAUNCH_CONFIG_TAG: head.launch_config_id,
                ORDER_TAG: order,
            }
            region = region_of(number, index)
            entry = {"region": region, "number": count, "tags": tags, "volume_tags": tags}
            ids = world.endpoints.control({"seed": [entry]})["seed"]
            rows += [_row(pool, head, name, order) for name in ids]
    with ThreadPoolExecutor(THREADS) as threads:
        if not all(threads.map(world.deps.stores.workers.put_new, rows)):
            raise RuntimeError("a seeded worker had a row already")
    return rows


def _row(pool: Pool, head: LaunchConfigHead, worker_id: str, order: str) -> Worker:
    born = now() - AGE
    return Worker(
        key=WorkerKey(pool.pool_id, head.location, worker_id),
        provider_id=PROVIDER,
        location=head.location,
        state=State.RUNNING,
        capacity=1,
        created=born,
        modified=born + timedelta(minutes=3),
        version=2,
        launch_config_id=head.launch_config_id,
        order_id=order,
        deadline=born + pool.lifecycle.reregistration,
        reregistration=pool.lifecycle.reregistration,
        queue_inactivity=pool.lifecycle.queue_inactivity,
        registered=born + timedelta(minutes=3),
        first_claim=born + timedelta(minutes=4),
        identity={"accountId": "123456789012", "region": head.location, "imageId": "ami-1"},
        secret_hash="0" * 64,
    )


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
