"""A standing fleet: machines in a simulated cloud, and the rows that our table has of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING

from tests.benchmarks.pools import AGE, number_of, shares
from tests.benchmarks.world import DEPLOYMENT, THREADS, now
from worker_manager.core.ids import order_id
from worker_manager.core.model import LaunchOrder, State, Worker, WorkerKey

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.benchmarks.clouds import Simulated
    from worker_manager.core.model import Json, LaunchConfigHead, Pool
    from worker_manager.store.workers import WorkerStore


def seed(
    simulated: Simulated,
    workers: WorkerStore,
    pools: Sequence[Pool],
    total: int,
    *,
    deployment: str = DEPLOYMENT,
) -> list[Worker]:
    """``total`` machines spread over the pools and their launch configs; the rows they have."""
    rows = seed_machines(simulated, pools, total, deployment=deployment)
    with ThreadPoolExecutor(THREADS) as threads:
        if not all(threads.map(workers.put_new, rows)):
            raise RuntimeError("a seeded worker had a row already")
    return rows


def seed_machines(
    simulated: Simulated, pools: Sequence[Pool], total: int, *, deployment: str = DEPLOYMENT
) -> list[Worker]:
    """The machines alone; the rows that they should have."""
    wanted: list[tuple[Pool, LaunchConfigHead, str, LaunchOrder, int]] = []
    for pool, machines in zip(pools, shares(total, len(pools)), strict=True):
        number = number_of(pool)
        for index, (head, count) in enumerate(
            zip(pool.heads, shares(machines, len(pool.heads)), strict=True)
        ):
            group = simulated.cloud.group_of(number, index)
            order = _order(pool, head, group, count, deployment=deployment)
            wanted.append((pool, head, group, order, count))
    entries = [
        simulated.cloud.seed(order, group, count) for _, _, group, order, count in wanted if count
    ]
    ids = iter(simulated.control(seed=entries)["seed"])
    return [
        _row(
            pool,
            head,
            WorkerKey(pool.pool_id, group, next(ids)),
            order_id=order.order_id,
            identity=simulated.cloud.identity,
        )
        for pool, head, group, order, count in wanted
        for _ in range(count)
    ]


def _order(
    pool: Pool, head: LaunchConfigHead, group: str, count: int, *, deployment: str
) -> LaunchOrder:
    return LaunchOrder(
        order_id=order_id(pool.pool_id, "seed", head.launch_config_id, 0),
        pool_id=pool.pool_id,
        provider_id=pool.provider_id,
        launch_config_id=head.launch_config_id,
        location=head.location,
        count=count,
        body={"zone": group, "location": group, "region": group},
        inputs={
            "owner": pool.owner,
            "description": pool.description,
            "rootUrl": "https://tc.example.com",
            "deployment": deployment,
            "ordered": (now() - AGE).isoformat(),
        },
    )


def _row(
    pool: Pool, head: LaunchConfigHead, key: WorkerKey, *, order_id: str, identity: Json
) -> Worker:
    born = now() - AGE
    return Worker(
        key=key,
        provider_id=pool.provider_id,
        location=head.location,
        state=State.RUNNING,
        capacity=1,
        created=born,
        modified=born + timedelta(minutes=3),
        version=2,
        launch_config_id=head.launch_config_id,
        order_id=order_id,
        deadline=born + pool.lifecycle.reregistration,
        launched=born + timedelta(minutes=1),
        reregistration=pool.lifecycle.reregistration,
        queue_inactivity=pool.lifecycle.queue_inactivity,
        registered=born + timedelta(minutes=3),
        first_claim=born + timedelta(minutes=4),
        identity=identity,
        secret_hash="0" * 64,
    )
