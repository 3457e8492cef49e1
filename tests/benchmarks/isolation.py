"""One cloud answers nothing for an hour: what the pools of the others notice of it.

An hour is sixty ticks, between which the clock of our code jumps; calls and their timeouts pass in
real time.  Each cloud in turn is the one that hangs.
"""

from __future__ import annotations

import logging
import time
from contextlib import contextmanager
from datetime import timedelta
from statistics import quantiles
from threading import Condition
from typing import TYPE_CHECKING, Any

from tests.benchmarks.clouds import CLOUDS
from tests.benchmarks.fleets import CALL_SECONDS
from tests.benchmarks.pace import Pace
from tests.benchmarks.pools import create_pools
from tests.benchmarks.results import Measure
from tests.benchmarks.world import worlds
from worker_manager.core.messages import ProvisionPool, ScanPool, advance_from_json
from worker_manager.queues import Message
from worker_manager.reconcile.advance import advance
from worker_manager.reconcile.deadline import Deadline
from worker_manager.reconcile.listing import scan_tick
from worker_manager.reconcile.provision import provision
from worker_manager.reconcile.scan import scan
from worker_manager.reconcile.ticks import Tick, provision_tick

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from tests.benchmarks.clouds import Cloud
    from tests.benchmarks.world import Endpoints, World
    from worker_manager.core.model import Pool

TICKS = 60
BETWEEN_TICKS = timedelta(minutes=1)
POOLS = 3
"""Of each cloud; every one launches a machine at every tick."""
READ_TIMEOUT = timedelta(seconds=1)
"""Of the cloud that hangs, so that it lets many calls run out, and not only the first ones."""
HANGS = {"kind": "hang", "seconds": 3_600.0, "times": None}
GIVE_UP_SECONDS = 90
DEADLINE = Deadline.after(timedelta(minutes=5))
MORE = 1.1
MORE_MS = 100
"""Ten percent and so many milliseconds are as good as nothing."""


def measure_isolation(
    endpoints: Endpoints, *, scale: float = 1.0, hang: Iterable[Cloud] = CLOUDS
) -> list[Measure]:
    """Time from tick to launch with all clouds well, then with each of these hanging."""
    ticks, pools = max(2, round(TICKS * scale)), max(1, round(POOLS * scale))
    usual = Hour(ticks, pools).run(endpoints)
    measures = [Measure("isolation_usual_p95_seconds", round(max(usual.values()), 3), "s", 5)]
    for hanging in hang:
        found = Hour(ticks, pools, hanging.name).run(endpoints)
        excess = max(found[name] - MORE * usual[name] for name in found)
        measures.append(
            Measure(
                f"isolation_{hanging.name}_hangs",
                round(1_000 * max(0.0, excess)),
                "ms beyond 10 %",
                MORE_MS,
            )
        )
    return measures


@contextmanager
def _silence() -> Iterator[None]:
    """Log nothing: that a cloud which hangs does not answer is no news."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        yield
    finally:
        logging.disable(before)


class Hour:
    """Ticks of all clouds, one of which may hang."""

    def __init__(self, ticks: int, pools: int, hanging: str | None = None) -> None:
        self._ticks = ticks
        self._pools = pools
        self._hanging = hanging
        self._changed = Condition()
        self._launched: dict[tuple[str, str], list[float]] = {}

    def run(self, endpoints: Endpoints) -> dict[str, float]:
        """Seconds from tick to launch at the 95th percentile, of each cloud that is well.

        Raises ``RuntimeError`` if one of those did not launch what it should.
        """
        pace = Pace()
        hurried = {self._hanging: READ_TIMEOUT} if self._hanging else {}
        with _silence(), worlds(endpoints, CLOUDS, pace=pace, read_timeouts=hurried) as found:
            pools = {name: self._prepare(world) for name, world in found.items()}
            well = [name for name in found if name != self._hanging]
            waits: dict[str, list[float]] = {name: [] for name in well}
            for number in range(1, self._ticks + 1):
                pace.skip(BETWEEN_TICKS)
                began = time.perf_counter()
                for name, world in found.items():
                    self._tick(world, pools[name], number)
                for name in well:
                    waits[name] += [
                        self._launch(name, pool, number) - began for pool in pools[name]
                    ]
        return {name: quantiles(waits[name], n=20)[-1] for name in well}

    def _prepare(self, world: World) -> list[Pool]:
        name = world.cloud.name
        first = 10 * CLOUDS.index(world.cloud)
        pools = create_pools(
            world.deps.stores.pools,
            range(first, first + self._pools),
            launch_configs=2,
            cloud=world.cloud,
            registration_seconds=86_400,
        )
        world.handle(
            provision_tick=lambda _: provision_tick(_tick(world), world.deps),
            scan_tick=lambda _: scan_tick(_tick(world), world.deps),
            provision=self._provision(name, world),
            scan=lambda body: scan(ScanPool.from_json(body), world.deps),
            advance=lambda body: advance([advance_from_json(body)], world.deps),
        )
        hangs = [HANGS] if name == self._hanging else []
        world.simulated.control(latency={"*": CALL_SECONDS}, faults=hangs)
        return pools

    def _provision(self, name: str, world: World) -> Callable[[Any], None]:
        def handle(body: Any) -> None:
            message = ProvisionPool.from_json(body)
            report = provision(message, world.deps, DEADLINE)
            with self._changed:
                done = self._launched.setdefault((name, message.pool_id), [])
                done += [time.perf_counter()] * report.ordered
                self._changed.notify_all()

        return handle

    def _tick(self, world: World, pools: list[Pool], number: int) -> None:
        """One more task waits in each pool, and the schedules fire."""
        for pool in pools:
            world.queue.set_counts(pool.pool_id, pending=number)
        for queue in ("provision_tick", "scan_tick"):
            world.delivery.sender(queue).send([Message({})])

    def _launch(self, name: str, pool: Pool, number: int) -> float:
        """When the machine number ``number`` of a pool was launched."""
        done: Mapping[tuple[str, str], list[float]] = self._launched
        key = (name, pool.pool_id)
        with self._changed:
            if not self._changed.wait_for(
                lambda: len(done.get(key, ())) >= number, timeout=GIVE_UP_SECONDS
            ):
                raise RuntimeError(f"{key} launched {len(done.get(key, ()))} machines of {number}")
            return done[key][number - 1]


def _tick(world: World) -> Tick:
    return Tick(world.deps.clock(), 0, world.deps.timing.tick)
