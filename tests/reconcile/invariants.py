"""What must hold at every moment, however the world was shaken.  Start at ``assert_sound``."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from worker_manager.core.events import (
    WORKER_REMOVED,
    WORKER_REQUESTED,
    WORKER_RUNNING,
    WORKER_STOPPED,
)
from worker_manager.core.model import State, Worker

if TYPE_CHECKING:
    from tests.reconcile.world import World


def assert_sound(world: World) -> None:
    """All invariants of all pools."""
    for pool_id in world.pool_ids():
        assert_accounted_for(world, pool_id)
        assert_within_maximum(world, pool_id)
        assert_no_event_lost(world, pool_id)


def assert_accounted_for(world: World, pool_id: str) -> None:
    """Every machine alive has a row or an open plan that ordered it, and no order too many."""
    named = {row.key for row in world.rows(pool_id)}
    orders = {order.order_id for plan in world.open_plans(pool_id) for order in plan.orders}
    brought: Counter[str] = Counter()
    for cloud in world.clouds.values():
        for machine in cloud.machines.values():
            if machine.key.pool_id != pool_id:
                continue
            brought[machine.order.order_id] += 1
            assert brought[machine.order.order_id] <= machine.order.count
        for machine in cloud.alive():
            if machine.key.pool_id == pool_id:
                known = machine.key in named or machine.order.order_id in orders
                assert known, f"nobody knows {machine.key} of {machine.order.order_id}"


def assert_within_maximum(world: World, pool_id: str) -> None:
    """What is alive never exceeds the pool's maximum."""
    with world.aside():
        pool = world.stores.pools.get(pool_id)
    if pool is None or not pool.heads:
        return
    capacity = {head.launch_config_id: head.capacity_per_instance for head in pool.heads}
    alive = sum(
        capacity.get(machine.order.launch_config_id, 1)
        for cloud in world.clouds.values()
        for machine in cloud.alive()
        if machine.key.pool_id == pool_id
    )
    assert alive <= pool.max_capacity, f"{alive} alive of at most {pool.max_capacity}"


def assert_no_event_lost(world: World, pool_id: str) -> None:
    """Each transition's event was published at least once, or is still with its row."""
    for row in world.rows(pool_id):
        told = {
            event["name"]
            for event in (*world.bus.published, *row.unsent)
            if event["detail"].get("workerId") == row.key.worker_id
        }
        missing = _transitions(row) - told
        assert not missing, f"nobody heard {missing} of {row.key}"


def _transitions(row: Worker) -> set[str]:
    passed = {WORKER_REQUESTED}
    if row.registered is not None:
        passed.add(WORKER_RUNNING)
    if row.stopping_since is not None:
        passed.add(WORKER_REMOVED)
    if row.state is State.STOPPED:
        passed.add(WORKER_STOPPED)
    return passed
