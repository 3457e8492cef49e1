"""What our functions do all day, each done once and metered: the counts behind the bill.

Where to read next: ``scene`` (where they are done), then ``bill`` (how often a day has each).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tests.benchmarks.fleet import seed
from tests.benchmarks.machine_requests import (
    API,
    path_of,
    poll,
    registration,
    renewal,
    report,
    signed,
)
from tests.benchmarks.pools import create_pools
from tests.benchmarks.scene import DEPLOYMENT
from tests.benchmarks.world import now
from tests.events import a_proxy_event, a_scheduled_event, an_sqs_event
from tests.functions.deployed import TOKEN
from worker_manager.core.messages import ProvisionPool
from worker_manager.core.model import State, Worker
from worker_manager.core.moments import to_wire

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.benchmarks.scene import Deeds, Scene
    from tests.benchmarks.usage import Usage
    from worker_manager.core.model import Pool

LAUNCH_CONFIGS = 7
BUSY_POOLS = 30
"""Pools in which workers are born and die."""
MACHINES = 3
"""Machines that each of them gets with one order or more."""
POLLS = 200


def measure_deeds(scene: Scene, *, pools: int, workers: int) -> Deeds:
    """Do everything that a day has, on a fleet of this size."""
    fleet = create_pools(scene.stores.pools, range(pools), launch_configs=LAUNCH_CONFIGS)
    seed(scene.endpoints.ec2, scene.stores.workers, fleet, workers, deployment=DEPLOYMENT)
    scene.tell_queue(fleet)
    idle = _look_around(scene)
    _by_the_clock(scene)
    busy = fleet[: min(BUSY_POOLS, len(fleet))]
    _bear(scene, busy, idle)
    _serve_operators(scene, fleet)
    return scene.deeds


def _look_around(scene: Scene) -> Usage:
    """Ticks that find nothing to do; what one pool's scan costs."""
    deeds = scene.deeds
    long_ago = a_scheduled_event(now().replace(year=2020))
    at = now().replace(microsecond=0)
    later = an_sqs_event([{"time": to_wire(at), "slot": 0}], queue="wm-local-provision-ticks-aws")
    ticks = scene.use("provision-tick-aws", long_ago, [a_scheduled_event(at)])
    provisions = scene.stage.drain("provision-aws.fifo")
    ticks += scene.use("provision-tick-aws", long_ago, [later])
    scene.stage.drain("provision-aws.fifo")
    deeds.note("provision tick", "provision-tick-aws", ticks)
    deeds.note(
        "look at a pool",
        "provision-pool-aws",
        scene.use("provision-pool-aws", _no_pool(), provisions),
    )
    deeds.note("scan tick", "scan-tick-aws", _scan_ticks(scene))
    scans = scene.stage.drain("scan-aws.fifo")
    deeds.scans = len(scans)
    return deeds.note(
        "look at a pool's machines in a region",
        "scan-pool-aws",
        scene.use("scan-pool-aws", _vanished(), scans),
    )


def _scan_ticks(scene: Scene) -> list[Usage]:
    long_ago = a_scheduled_event(now().replace(year=2020))
    return scene.use("scan-tick-aws", long_ago, [a_scheduled_event(now())])


def _by_the_clock(scene: Scene) -> None:
    for name in ("publish", "expire"):
        event = a_scheduled_event(now())
        scene.deeds.note(name, name, scene.use(name, event, [event]))


def _bear(scene: Scene, pools: Sequence[Pool], idle: Usage) -> None:
    """Lives of workers from the order to the end."""
    deeds = scene.deeds
    usual = deeds.by_name["look at a pool"].usage
    scene.tell_queue(pools, pending=MACHINES)
    orders = scene.use("provision-pool-aws", _no_pool(), _provisions(pools, "births"))
    deeds.note("order machines", "provision-pool-aws", orders)
    born = [
        row
        for pool in pools
        for row in scene.stores.workers.live(pool.pool_id)
        if row.state is State.REQUESTED
    ]
    if len(born) != MACHINES * len(pools):
        raise RuntimeError(f"{len(born)} machines were launched")
    registered = scene.run(
        "workers-api", _ping(), [registration(scene.endpoints.ec2.url, row) for row in born]
    )
    deeds.note("registerWorker", "workers-api", [usage for _, usage in registered])
    grants = [json.loads(answer["body"]) for answer, _ in registered]
    scene.tell_queue(pools)
    deeds.note_extra(
        "see a first claim",
        "scan-pool-aws",
        _scan(scene, pools),
        usual=idle,
        times=len(born),
    )
    _ask(scene, list(zip(born, grants, strict=True)))
    scene.tell_queue(pools, claimed=0)
    told = scene.use("provision-pool-aws", _no_pool(), _provisions(pools, "surplus"))
    rows = [row for pool in pools for row in scene.stores.workers.live(pool.pool_id)]
    gone = sum(row.surplus is not None for row in rows)
    deeds.note_extra("let go", "provision-pool-aws", told, usual=usual, times=gone)
    scene.tell_queue(pools)
    _bury(scene, pools, list(zip(born, grants, strict=True)), idle)


def _ask(scene: Scene, lives: Sequence[tuple[Worker, Mapping[str, Any]]]) -> None:
    """What a worker asks of us while it lives."""
    deeds = scene.deeds
    polls = [poll(*lives[number % len(lives)]) for number in range(POLLS)]
    deeds.note("shouldWorkerTerminate", "workers-api", scene.use("workers-api", _ping(), polls))
    reports = [report(row, grant) for row, grant in lives]
    deeds.note("reportWorkerError", "workers-api", scene.use("workers-api", _ping(), reports))
    renewals = [renewal(row, grant) for row, grant in lives]
    deeds.note("reregisterWorker", "workers-api", scene.use("workers-api", _ping(), renewals))


def _bury(
    scene: Scene,
    pools: Sequence[Pool],
    lives: Sequence[tuple[Worker, Mapping[str, Any]]],
    idle: Usage,
) -> None:
    """Workers take their leave, their machines are deleted, and the scan sees them gone."""
    deeds = scene.deeds
    scene.stage.drain("advance-aws")
    leaves = [signed("DELETE", path_of(row), grant["credentials"]) for row, grant in lives]
    deeds.note("removeWorker", "workers-api", scene.use("workers-api", _ping(), leaves))
    deletes = scene.stage.drain("advance-aws")
    deeds.note("delete a machine", "advance-aws", scene.use("advance-aws", deletes[0], deletes[1:]))
    scene.endpoints.ec2.control(settings={"shutting_down_seconds": 0})
    seen = _scan(scene, pools)
    deeds.note_extra("see a machine gone", "scan-pool-aws", seen, usual=idle, times=len(lives))


def _scan(scene: Scene, pools: Sequence[Pool]) -> list[Usage]:
    """A scan of these pools, with what its messages used."""
    scene.stage.drain("scan-aws.fifo")
    _scan_ticks(scene)
    wanted = {pool.pool_id for pool in pools}
    messages = [
        event
        for event in scene.stage.drain("scan-aws.fifo")
        if json.loads(event["Records"][0]["body"])["pool"] in wanted
    ]
    return scene.use("scan-pool-aws", _vanished(), messages)


def _serve_operators(scene: Scene, fleet: Sequence[Pool]) -> None:
    root = {"clientId": "test/root", "accessToken": TOKEN}
    names = [quote(pool.pool_id, safe="") for pool in fleet[:50]]
    reads = [signed("GET", f"{API}/worker-pool/{name}", root) for name in names]
    scene.deeds.note("workerPool", "pools-api", scene.use("pools-api", _ping(), reads))


def _provisions(pools: Sequence[Pool], tick: str) -> list[Any]:
    return [an_sqs_event([ProvisionPool(pool.pool_id, tick, at=now()).to_json()]) for pool in pools]


def _no_pool() -> Any:
    return an_sqs_event([ProvisionPool("no/pool", "warm", at=now()).to_json()])


def _vanished() -> Any:
    return an_sqs_event([{"blob": "scan/nothing.json"}])


def _ping() -> Any:
    return a_proxy_event("GET", f"{API}/ping")
