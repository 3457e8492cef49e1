"""A standing fleet: machines in the simulated EC2, and the rows that our table has of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING

from tests.benchmarks.pools import AGE, region_of, shares
from tests.benchmarks.world import DEPLOYMENT, PROVIDER, THREADS, now
from worker_manager.core.ids import order_id
from worker_manager.core.model import State, Worker, WorkerKey
from worker_manager.providers.aws.listing import (
    DEPLOYMENT_TAG,
    LAUNCH_CONFIG_TAG,
    ORDER_TAG,
    POOL_TAG,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.benchmarks.world import Endpoints
    from worker_manager.core.model import LaunchConfigHead, Pool
    from worker_manager.store.workers import WorkerStore


def seed(
    endpoints: Endpoints,
    workers: WorkerStore,
    pools: Sequence[Pool],
    total: int,
    *,
    deployment: str = DEPLOYMENT,
) -> list[Worker]:
    """``total`` machines spread over the pools and their launch configs; the rows they have."""
    rows: list[Worker] = []
    for number, (pool, machines) in enumerate(zip(pools, shares(total, len(pools)), strict=True)):
        for index, (head, count) in enumerate(
            zip(pool.heads, shares(machines, len(pool.heads)), strict=True)
        ):
            order = order_id(pool.pool_id, "seed", head.launch_config_id, 0)
            tags = {
                "Name": pool.pool_id,
                "Owner": pool.owner,
                DEPLOYMENT_TAG: deployment,
                POOL_TAG: pool.pool_id,
                LAUNCH_CONFIG_TAG: head.launch_config_id,
                ORDER_TAG: order,
            }
            region = region_of(number, index)
            entry = {"region": region, "number": count, "tags": tags, "volume_tags": tags}
            ids = endpoints.control({"seed": [entry]})["seed"]
            rows += [_row(pool, head, name, order) for name in ids]
    with ThreadPoolExecutor(THREADS) as threads:
        if not all(threads.map(workers.put_new, rows)):
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
