"""What our functions do all day, each done once and metered: the counts behind the bill.

The functions are the real ones, wired as in production and called with the events that AWS would
send, with the local stage's template as their environment; tables, queues, bus and bucket are the
emulator's, machines the simulated EC2's.  Where to read next: ``metering``, then ``bill`` (how
often a day has each).
"""

from __future__ import annotations

import json
import sys
import urllib.request
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from infra.local.children import Child, clean_environment, free_port
from tests.benchmarks.fleet import seed
from tests.benchmarks.machine_requests import (
    API,
    ROOT_URL,
    path_of,
    poll,
    registration,
    renewal,
    report,
    signed,
)
from tests.benchmarks.metering import Meter
from tests.benchmarks.pools import create_pools
from tests.benchmarks.usage import Usage
from tests.benchmarks.world import ROOT, now, point_sdks_at, processes
from tests.events import a_proxy_event, a_scheduled_event, an_sqs_event
from tests.functions.deployed import TOKEN, DeployedStage, local_template
from tests.functions.lambda_context import LambdaContext
from worker_manager.core.messages import ProvisionPool
from worker_manager.core.model import State, Worker
from worker_manager.core.moments import to_wire
from worker_manager.settings import Settings
from worker_manager.wiring.base import Base

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from tests.benchmarks.world import Endpoints
    from worker_manager.core.model import Pool
    from worker_manager.store.stores import Stores

LAUNCH_CONFIGS = 7
DEPLOYMENT = "worker-manager-local"
BUSY_POOLS = 30
"""Pools in which workers are born and die."""
MACHINES = 3
"""Machines that each of them gets with one order or more."""
POLLS = 200


@dataclass(frozen=True, slots=True)
class Deed:
    """What doing something once uses, and which function does it."""

    function: str
    memory_mb: int
    usage: Usage


@dataclass
class Deeds:
    """All deeds by name, and what the fleet showed of itself."""

    scans: int = 0
    """Messages of one scan tick: a pool and a location each."""
    by_name: dict[str, Deed] = field(default_factory=dict)
    metrics: set[tuple[str, ...]] = field(default_factory=set)

    def note(self, name: str, function: str, usages: Sequence[Usage]) -> Usage:
        """Keep the average as the deed of this name."""
        mean = sum(usages, Usage()).times(1 / len(usages))
        self.by_name[name] = Deed(function, memory_of(function), mean)
        return mean

    def note_extra(
        self, name: str, function: str, usages: Sequence[Usage], *, usual: Usage, times: int
    ) -> None:
        """Keep what these used beyond the usual, for each of ``times`` occasions."""
        extra = sum((usage - usual for usage in usages), Usage()).times(1 / times)
        self.by_name[name] = Deed(function, memory_of(function), replace(extra, calls=0))


@dataclass(frozen=True, slots=True)
class Scene:
    """The fleet, what it runs on, and what is found out about it."""

    endpoints: Endpoints
    queue_url: str
    stage: DeployedStage
    meter: Meter
    stores: Stores
    deeds: Deeds

    def run(self, function: str, warm: Any, events: Iterable[Any]) -> list[tuple[Any, Usage]]:
        """Answers and usage of each event, after one unmetered, in one container."""
        folder = function.removesuffix("-aws").replace("-", "_")
        found = []
        asks = "WM_QUEUE_ROOT_URL" in self.stage.environment(function)
        changes = {"WM_QUEUE_ROOT_URL": self.queue_url} if asks else {}
        with self.stage.container(function, **changes):
            handle = import_module(f"functions.{folder}.handler").handle
            with self.meter.reading():
                handle(warm, LambdaContext())
            for event in events:
                with self.meter.reading() as reading:
                    answer = handle(event, LambdaContext())
                self.deeds.metrics |= reading.metrics
                found.append((answer, _with_http(reading.usage, event, answer)))
        return found

    def use(self, function: str, warm: Any, events: Iterable[Any]) -> list[Usage]:
        """Only the usage."""
        return [usage for _, usage in self.run(function, warm, events)]

    def tell_queue(self, pools: Iterable[Pool], **facts: Any) -> None:
        """Say what the task queue knows of each pool; every live worker has claimed."""
        document = {}
        for pool in pools:
            rows = [
                row for row in self.stores.workers.live(pool.pool_id) if row.state is State.RUNNING
            ]
            document[pool.pool_id] = {
                "pending": 0,
                "claimed": len(rows),
                "active": to_wire(now()),
                "workers": [
                    (row.key.group, row.key.worker_id, to_wire(row.first_claim or now()))
                    for row in rows
                ],
                **facts,
            }
        request = urllib.request.Request(
            f"{self.queue_url}/pools", json.dumps(document).encode(), method="PUT"
        )
        urllib.request.urlopen(request, timeout=60).close()


@contextmanager
def a_scene(folder: Path) -> Iterator[Scene]:
    """Everything that the deeds need, in processes of their own; logs are in ``folder``."""
    with ExitStack() as stack:
        endpoints = stack.enter_context(processes(folder))
        point_sdks_at(endpoints)
        queue_url = stack.enter_context(_task_queue(folder))
        meter = Meter()
        with urllib.request.urlopen(f"{endpoints.ec2}/_control/public-key", timeout=10) as answer:
            key = answer.read().decode()
        stage = DeployedStage(
            {"RootUrl": ROOT_URL, "TickSeconds": "30", "Timings": "{}", "TrustedEc2Keys": key}
        )
        given = stage.environment("provision-pool-aws") | {"AWS_REGION": "us-east-1"}
        stores = Base(Settings.of(given)).stores
        stack.enter_context(meter.attached())
        yield Scene(endpoints, queue_url, stage, meter, stores, Deeds())


@contextmanager
def _task_queue(folder: Path) -> Iterator[str]:
    port = free_port()
    child = Child(
        "task queue",
        [sys.executable, "-m", "tests.benchmarks.task_queue", str(port)],
        environment=clean_environment(home=folder / "queue", path="/usr/bin", PYTHONPATH=str(ROOT)),
        log=folder / "queue.log",
    )
    try:
        child.wait_for_port(port)
        yield f"http://127.0.0.1:{port}"
    finally:
        child.stop()


def measure_deeds(scene: Scene, *, pools: int, workers: int) -> Deeds:
    """Do everything that a day has, on a fleet of this size."""
    fleet = create_pools(scene.stores.pools, range(pools), launch_configs=LAUNCH_CONFIGS)
    seed(scene.endpoints, scene.stores.workers, fleet, workers, deployment=DEPLOYMENT)
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
        "workers-api", _ping(), [registration(scene.endpoints.ec2, row) for row in born]
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
    scene.endpoints.control({"settings": {"shutting_down_seconds": 0}})
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


def _with_http(usage: Usage, event: Mapping[str, Any], answer: Any) -> Usage:
    """Bytes of request and answer, where it is HTTP; an answer that is no success is an error."""
    if "httpMethod" not in event:
        return usage
    if answer["statusCode"] != 200:
        raise RuntimeError(f"{event['path']}: {answer['body']}")
    came = len(event["path"]) + _bytes_of(event["headers"]) + len(event["body"] or "")
    went = _bytes_of(answer["headers"]) + len(answer["body"])
    return replace(usage, came_in=came, went_out=went)


def memory_of(function: str) -> int:
    """Megabytes that the template gives a function."""
    for resource in local_template()["Resources"].values():
        found = resource["Properties"] if resource["Type"] == "AWS::Lambda::Function" else {}
        if found.get("FunctionName") == f"wm-local-{function}":
            return int(found["MemorySize"])
    raise LookupError(function)


def _bytes_of(headers: Mapping[str, str]) -> int:
    return sum(len(name) + len(value) + 4 for name, value in headers.items())
