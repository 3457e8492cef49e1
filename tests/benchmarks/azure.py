"""A hundred machines beside a standing fleet on Azure, whose operations take their half minute.

From the tick that orders them until every one is known to exist, by a template's deployment and by
one request each; then from their removal through the API until nothing is left of them.  The
reference needs 9 to 15 calls and 101 to 105 s for the one, 4 to 13 and 60 to 156 s for the other.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tests.benchmarks.clouds import AZURE, arm_inline_body, arm_template_body
from tests.benchmarks.fleets import CALL_SECONDS, FLEETS, stand_in
from tests.benchmarks.pools import create_pools
from tests.benchmarks.removals import operator
from tests.benchmarks.results import Measure
from worker_manager.core.messages import ProvisionPool, advance_from_json
from worker_manager.core.model import State
from worker_manager.queues import Message
from worker_manager.reconcile.advance import advance
from worker_manager.reconcile.deadline import Deadline
from worker_manager.reconcile.provision import provision
from worker_manager.reconcile.ticks import Tick, provision_tick

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.benchmarks.world import World
    from worker_manager.core.model import Pool, Worker

MACHINES = 100
LAUNCH_CONFIGS = 6
OPERATION_SECONDS = 30
WITHIN_SECONDS = OPERATION_SECONDS + 10
SEEN_WITHIN_SECONDS = WITHIN_SECONDS + 60
"""A row hears that its machine is gone from the next scan."""
SHAPES: dict[str, tuple[Callable[[str, int], dict[str, Any]], float]] = {
    "deployment": (arm_template_body, 4),
    "inline": (arm_inline_body, 3),
}
"""Launch configs, and how many calls a machine may take."""
MOST_CALLS_TO_REMOVE = 2
DEADLINE = Deadline.after(timedelta(minutes=5))
GIVE_UP_SECONDS = 240
SCANS = ("virtualMachines.listAll",)
"""What only scans call; what they look up besides is counted as if it were the launch's."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A world whose time goes by ``speed`` times as fast as real time does."""

    world: World
    speed: float

    def seconds_since(self, began: float) -> float:
        """Of the time that our code sees."""
        return (time.perf_counter() - began) * self.speed

    def calls(self) -> int:
        """Calls to Azure that belong to no scan's list."""
        simulated = self.world.simulated
        return simulated.calls() - simulated.calls(*SCANS)

    def until(self, is_done: Callable[[], bool]) -> float:
        """Tick and scan as schedules do until something is done; seconds it took.

        Raises ``TimeoutError`` if it never is.
        """
        began, beat = time.perf_counter(), 0
        while (seconds := self.seconds_since(began)) < GIVE_UP_SECONDS:
            if beat <= seconds / self.world.deps.timing.tick.total_seconds():
                self._tick(is_scan=beat % 2 == 0)
                beat += 1
            if is_done():
                return self.seconds_since(began)
            time.sleep(0.5 / self.speed)
        raise TimeoutError(f"not done after {GIVE_UP_SECONDS} s")

    def _tick(self, *, is_scan: bool) -> None:
        for queue in ("provision_tick", "tick") if is_scan else ("provision_tick",):
            self.world.delivery.sender(queue).send([Message({})])


def measure_azure(
    world: World, *, shape: str, scale: float = 1.0, speed: float = 1.0
) -> list[Measure]:
    """Launch and remove; ``speed`` is that of the world's time, and shortens the operations."""
    body, most_calls = SHAPES[shape]
    scene = Scene(world, speed)
    pool = _prepare(scene, body, scale)
    count = max(1, round(MACHINES * scale))
    world.queue.set_counts(pool.pool_id, pending=count)
    launched = scene.until(lambda: _is_known(world, pool, count))
    launch_calls = scene.calls()
    world.queue.set_counts(pool.pool_id)
    world.simulated.control(reset="counts")
    api = operator({"azure": world})
    for row in _rows(world, pool):
        api.remove(row.key)
    vanished, forgotten = _until_gone(scene, pool)
    removal_calls = scene.calls()
    left = sum(_standing(world, pool).values())
    return [
        Measure(f"azure_{shape}_seconds", round(launched, 1), "s", WITHIN_SECONDS),
        Measure(f"azure_{shape}_calls", round(launch_calls / count, 2), "a VM", most_calls),
        Measure(f"azure_{shape}_removal_seconds", round(vanished, 1), "s", WITHIN_SECONDS),
        Measure(
            f"azure_{shape}_removal_seen_seconds", round(forgotten, 1), "s", SEEN_WITHIN_SECONDS
        ),
        Measure(
            f"azure_{shape}_removal_calls",
            round(removal_calls / count, 2),
            "a VM",
            MOST_CALLS_TO_REMOVE,
        ),
        Measure(f"azure_{shape}_left_behind", left, "resources", 0),
    ]


def _prepare(scene: Scene, body: Callable[[str, int], dict[str, Any]], scale: float) -> Pool:
    """The standing fleet, an idle pool beside it, and operations that take their time."""
    world = scene.world
    workers, first, pools, launch_configs = FLEETS["azure"]
    stand_in(
        world,
        max(1, round(workers * scale)),
        first=first,
        pools=max(1, round(pools * scale)),
        launch_configs=launch_configs,
    )
    (pool,) = create_pools(
        world.deps.stores.pools,
        [first + pools],
        launch_configs=LAUNCH_CONFIGS,
        cloud=AZURE,
        body=body,
    )
    world.handle(
        **world.delivery.handlers,
        provision_tick=lambda _: provision_tick(_tick(world), world.deps),
        provision=lambda body: provision(ProvisionPool.from_json(body), world.deps, DEADLINE),
        advance=lambda body: advance([advance_from_json(body)], world.deps),
    )
    world.deliver("tick")
    seconds = OPERATION_SECONDS / scene.speed
    world.simulated.control(
        settings={"vm_create_seconds": seconds, "vm_delete_seconds": seconds},
        latency={"*": CALL_SECONDS},
        reset="counts",
    )
    return pool


def _tick(world: World) -> Tick:
    return Tick(world.deps.clock(), 0, world.deps.timing.tick)


def _rows(world: World, pool: Pool) -> list[Worker]:
    return list(world.deps.stores.workers.live(pool.pool_id))


def _is_known(world: World, pool: Pool, count: int) -> bool:
    """Whether all machines exist, all rows say so, and nobody has to look again.

    A creation that is followed has its next message on the way.
    """
    if not world.delivery.drain(seconds=0) or _standing(world, pool).get("Succeeded", 0) != count:
        return False
    keys = [row.key for row in _rows(world, pool)]
    rows = world.deps.stores.workers.get_many(keys).values()
    return len(rows) == count and all(
        "vmId" in row.identity and "deployment" not in row.identity for row in rows
    )


def _until_gone(scene: Scene, pool: Pool) -> tuple[float, float]:
    """Seconds until nothing of a pool is left at Azure, and until its rows say so."""
    world, began = scene.world, time.perf_counter()
    vanished: list[float] = []

    def is_gone() -> bool:
        if not vanished:
            if _standing(world, pool):
                return False
            vanished.append(scene.seconds_since(began))
        return all(row.state is State.STOPPED for row in _rows(world, pool))

    forgotten = scene.until(is_gone)
    return vanished[0], forgotten


def _standing(world: World, pool: Pool) -> dict[str, int]:
    """Machines of a pool at Azure, by provisioning state, and ``parts`` that go with them."""
    found: dict[str, int] = {}
    for one in world.simulated.look("resources"):
        if one["tags"].get("worker-manager:pool") == pool.pool_id:
            name = one["state"] if one["kind"] == "virtualMachines" else "parts"
            found[name] = found.get(name, 0) + 1
    return found
