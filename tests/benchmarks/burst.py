"""A burst of demand: from waiting tasks to machines with rows, at full speed and throttled."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from tests.benchmarks.pools import create_pools, shares
from tests.benchmarks.results import Measure
from tests.benchmarks.world import now
from worker_manager.core.messages import ProvisionPool, advance_from_json
from worker_manager.core.plans import OrderState
from worker_manager.queues import Message
from worker_manager.reconcile.advance import advance
from worker_manager.reconcile.deadline import Deadline
from worker_manager.reconcile.provision import provision
from worker_manager.reconcile.ticks import Tick, provision_tick

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.benchmarks.world import World
    from worker_manager.core.model import Pool, Worker

MACHINES = 2_000
POOLS = 45
LAUNCH_CONFIGS = 7
CALL_SECONDS = 0.05
DEADLINE = Deadline.after(timedelta(minutes=5))
GIVE_UP_SECONDS = 180


@dataclass(frozen=True, slots=True)
class Burst:
    """What became of a burst."""

    wanted: int
    seconds: float
    orders: int
    calls: int
    rows: int
    instances: int
    unsent: int
    blamed: int

    @property
    def lost(self) -> int:
        """Machines that are wanted and not there, or there and not in a row, or too many."""
        return abs(self.wanted - self.rows) + abs(self.instances - self.rows)


def measure_burst(world: World, *, scale: float = 1.0) -> list[Measure]:
    """All of it at once, with a cloud that answers as fast as it is asked."""
    burst = _burst(world, scale)
    return [
        Measure("burst_seconds", round(burst.seconds, 2), "s", 10),
        Measure("burst_calls_per_order", round(burst.calls / burst.orders, 3), "calls", 1),
        Measure("burst_rows_missing", burst.lost, "rows", 0),
        Measure("burst_events_left_to_send", burst.unsent, "events", 0),
    ]


def measure_throttled_burst(world: World, *, scale: float = 1.0) -> list[Measure]:
    """The same with EC2's own request buckets: 5 launches at once and 2 a second, by region."""
    world.simulated.control(buckets={"enabled": True})
    burst = _burst(world, scale)
    return [
        Measure("burst_throttled_seconds", round(burst.seconds, 2), "s", 90),
        Measure("burst_throttled_lost", burst.lost, "machines", 0),
        Measure("burst_throttled_launch_configs_blamed", burst.blamed, "launch configs", 0),
    ]


def _burst(world: World, scale: float) -> Burst:
    """Ticks and resumed pools, in real time, until every machine has its row."""
    pools = create_pools(
        world.deps.stores.pools, range(max(1, round(POOLS * scale))), launch_configs=LAUNCH_CONFIGS
    )
    wanted = round(MACHINES * scale)
    tick_length = world.deps.timing.tick
    for pool, pending in zip(pools, shares(wanted, len(pools)), strict=True):
        world.queue.set_counts(pool.pool_id, pending=pending)
    world.handle(
        tick=lambda _: provision_tick(Tick(now(), 0, tick_length), world.deps),
        provision=lambda body: provision(ProvisionPool.from_json(body), world.deps, DEADLINE),
        advance=lambda body: advance([advance_from_json(body)], world.deps),
    )
    world.simulated.control(latency={"RunInstances": CALL_SECONDS})
    world.simulated.control(reset="counts")
    began = time.perf_counter()
    seconds = 0.0
    while seconds < GIVE_UP_SECONDS:
        world.delivery.sender("tick").send([Message({})])
        idle = world.delivery.drain(seconds=tick_length.total_seconds())
        seconds = time.perf_counter() - began
        if idle and len(_rows(world, pools)) >= wanted:
            break
    return _outcome(world, pools, wanted, seconds)


def _rows(world: World, pools: Sequence[Pool]) -> list[Worker]:
    return [row for pool in pools for row in world.deps.stores.workers.live(pool.pool_id)]


def _outcome(world: World, pools: Sequence[Pool], wanted: int, seconds: float) -> Burst:
    rows = _rows(world, pools)
    state = world.simulated.look()
    plans = [
        plan
        for pool in pools
        for plan in world.tables.pools.query(
            pool.pool_id, world.tables.pools.sk.startswith("plan#"), consistent_read=True
        )
    ]
    stored = [world.deps.stores.plans.get(item.worker_pool_id, item.sk[5:]) for item in plans]
    orders = [order for plan in stored if plan is not None for order in plan.orders]
    return Burst(
        wanted=wanted,
        seconds=seconds,
        orders=sum(order.state is not OrderState.CANCELLED for order in orders),
        calls=world.simulated.calls("RunInstances"),
        rows=len(rows),
        instances=sum(sum(states.values()) for states in state["instances"].values()),
        unsent=sum(len(row.unsent) for row in rows),
        blamed=_blamed(world, pools),
    )


def _blamed(world: World, pools: Sequence[Pool]) -> int:
    """Launch configs with a failure in their health or an error to their name."""
    blamed: set[tuple[str, str | None]] = set()
    for pool in pools:
        window = world.deps.stores.health.window(pool.pool_id, now())
        blamed |= {(pool.pool_id, name) for name, health in window.items() if health.failures}
        errors = world.errors.newest_first(pool.pool_id)
        blamed |= {(pool.pool_id, error.launch_config_id) for error in errors}
    return len(blamed)
