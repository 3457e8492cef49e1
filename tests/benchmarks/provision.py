"""A provision tick over idle pools: what looking, and finding nothing to do, costs."""

from __future__ import annotations

from datetime import timedelta
from threading import Lock
from typing import TYPE_CHECKING, Any

from tests.benchmarks.pools import create_pools, pool_id_of
from tests.benchmarks.results import Measure
from tests.benchmarks.world import now
from worker_manager.core.messages import ProvisionPool
from worker_manager.reconcile.deadline import Deadline
from worker_manager.reconcile.provision import provision
from worker_manager.reconcile.ticks import Tick, provision_tick

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.benchmarks.units import Call
    from tests.benchmarks.world import World
    from worker_manager.core.model import Pool

POOLS = 400
LAUNCH_CONFIGS = 7
MANY = 300
"""Launch configs of the one large pool."""
DEADLINE = Deadline.after(timedelta(minutes=5))


def measure_provision(world: World, *, scale: float = 1.0) -> list[Measure]:
    """Tick once over all pools and look at what each of them cost."""
    count = max(1, round(POOLS * scale))
    some = create_pools(world.deps.stores.pools, range(count), launch_configs=LAUNCH_CONFIGS)[:1]
    some += create_pools(
        world.deps.stores.pools, [count], launch_configs=max(8, round(MANY * scale))
    )
    _launched_lately(world, some)
    calls: dict[str, list[Call]] = {}
    lock = Lock()

    def handle(body: Any) -> None:
        message = ProvisionPool.from_json(body)
        with world.meter.recording() as mine:
            provision(message, world.deps, DEADLINE)
        with lock:
            calls[message.pool_id] = mine

    world.handle(
        tick=lambda _: provision_tick(Tick(now(), 0, world.deps.timing.tick), world.deps),
        provision=handle,
    )
    world.simulated.control(reset="counts")
    seconds = world.deliver("tick")
    large = calls.pop(pool_id_of(count))
    return [
        Measure(
            "provision_requests_per_pool",
            max(len(mine) for mine in [large, *calls.values()]),
            "requests",
            3,
        ),
        Measure("provision_cloud_calls", world.simulated.calls(), "calls", 0),
        Measure(
            f"provision_read_units_{LAUNCH_CONFIGS}_launch_configs",
            max(_read_units(mine) for mine in calls.values()),
            "read units",
            4,
        ),
        Measure(
            f"provision_read_units_{MANY}_launch_configs", _read_units(large), "read units", 30
        ),
        Measure(
            "provision_writes",
            sum(call.is_write for mine in [large, *calls.values()] for call in mine),
            "writes",
            0,
        ),
        Measure(
            "provision_seconds",
            round(seconds, 2),
            "s",
            world.deps.timing.tick.total_seconds(),
        ),
    ]


def _launched_lately(world: World, pools: Sequence[Pool]) -> None:
    """Counters of health for every launch config, which the window still covers."""
    for pool in pools:
        for head in pool.heads:
            world.deps.stores.health.add(
                pool.pool_id, head.launch_config_id, now(), requested=3, launched=2, registered=2
            )


def _read_units(calls: list[Call]) -> float:
    if not all(call.units.exact for call in calls):
        raise ValueError(f"units of some request are not known: {calls}")
    return sum(call.units.read for call in calls)
