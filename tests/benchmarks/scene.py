"""A stage whose functions are called one by one and metered, with its fleet: where deeds happen.

The functions are the real ones, wired as in production and called with the events that AWS would
send, with the local stage's template as their environment; tables, queues, bus and bucket are the
emulator's, machines the simulated EC2's.  Where to read next: ``metering``, then ``deeds``.
"""

from __future__ import annotations

import json
import urllib.request
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tests.benchmarks.machine_requests import ROOT_URL
from tests.benchmarks.metering import Meter
from tests.benchmarks.task_queue import a_task_queue
from tests.benchmarks.usage import Usage
from tests.benchmarks.world import now, point_sdks_at, processes
from tests.functions.deployed import DeployedStage, local_template
from tests.functions.lambda_context import LambdaContext
from worker_manager.core.model import State
from worker_manager.core.moments import to_wire
from worker_manager.settings import Settings
from worker_manager.wiring.base import Base

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from tests.benchmarks.world import Endpoints
    from worker_manager.core.model import Pool
    from worker_manager.store.stores import Stores


DEPLOYMENT = "worker-manager-local"


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
        changes = {"POWERTOOLS_METRICS_NAMESPACE": "bench"}
        if asks:
            changes["WM_QUEUE_ROOT_URL"] = self.queue_url
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
        queue_url = stack.enter_context(a_task_queue(folder))
        meter = Meter()
        with urllib.request.urlopen(
            f"{endpoints.ec2.url}/_control/public-key", timeout=10
        ) as answer:
            key = answer.read().decode()
        stage = DeployedStage(
            {"RootUrl": ROOT_URL, "TickSeconds": "30", "Timings": "{}", "TrustedEc2Keys": key}
        )
        given = stage.environment("provision-pool-aws") | {"AWS_REGION": "us-east-1"}
        stores = Base(Settings.of(given)).stores
        stack.enter_context(meter.attached())
        yield Scene(endpoints, queue_url, stage, meter, stores, Deeds())


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
