"""One call of a function in a process of its own, which tells what it took.

``python -m tests.benchmarks.alone`` reads an ``Errand`` and writes what was ``Found`` on doing it.
Memory is the peak of the whole process, what the benchmark itself imports included.
"""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import botocore.session

from tests.benchmarks.clouds import CLOUDS, ROOT, Simulated
from tests.benchmarks.units import item_bytes
from tests.benchmarks.world import HOME_REGION, QUEUES, deps_of, now, start_provider
from tests.fake_queue import FakeQueue
from worker_manager.core.messages import ProvisionPool, ScanPool
from worker_manager.queues import SqsSender
from worker_manager.reconcile.deadline import Deadline
from worker_manager.reconcile.listing import scan_tick
from worker_manager.reconcile.provision import provision
from worker_manager.reconcile.scan import read, scan
from worker_manager.reconcile.ticks import Tick, from_message, provision_tick
from worker_manager.store.tables import Tables

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from worker_manager.reconcile.deps import Deps

Bodies = dict[str, list[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """A ``function`` to call: for a tick, or with each of ``bodies``.

    ``blobs`` are texts too large for messages, by key; ``tables`` the tables' names.
    """

    function: str
    cloud: str
    url: str
    tables: Mapping[str, str]
    bodies: tuple[Any, ...] = ()
    blobs: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Found:
    """What a call took and did; ``sent`` are bodies of messages by queue."""

    seconds: float = 0.0
    megabytes: float = 0.0
    requests: int = 0
    """Of DynamoDB."""
    sqs_requests: int = 0
    largest_item: int = 0
    """Bytes of an item read or written."""
    largest_message: int = 0
    """Bytes of what one request to SQS holds, which has the same limit as a message."""
    sent: Bodies = field(default_factory=dict)
    blobs: dict[str, str] = field(default_factory=dict)


def call(errand: Errand, environment: Mapping[str, str]) -> Found:
    """Run it in a process with this environment; raises ``CalledProcessError`` if that fails."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.alone"],
        input=json.dumps(asdict(errand)),
        env=dict(environment),
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return Found(**json.loads(done.stdout.splitlines()[-1]))


class _Sqs:
    """The client of one queue: keeps what is sent."""

    def __init__(self, found: Found, queue: str) -> None:
        self._found, self._queue = found, queue

    def send_message_batch(self, *, QueueUrl: str, Entries: Any) -> dict[str, Any]:
        """As SQS, which refuses nothing."""
        texts = [entry["MessageBody"] for entry in Entries]
        self._found.sqs_requests += 1
        size = sum(len(text.encode()) for text in texts)
        self._found.largest_message = max(self._found.largest_message, size)
        self._found.sent.setdefault(self._queue, []).extend(texts)
        return {}


class _Blobs:
    """A bucket; what is put goes to the benchmark."""

    def __init__(self, found: Found, given: Mapping[str, str]) -> None:
        self._found, self._given = found, given

    def put(self, key: str, text: str) -> None:
        self._found.blobs[key] = text

    def get(self, key: str) -> str | None:
        return self._given.get(key)


class _NoBus:
    def publish(self, events: Any) -> set[str]:
        return {event["id"] for event in events}


def _count(client: Any, found: Found) -> None:
    """Count what a DynamoDB client asks, and keep nothing of it."""

    def asked(params: Mapping[str, Any], **_: Any) -> None:
        found.requests += 1
        writes = [params] if "Item" in params else _written(params)
        _see([write["Item"] for write in writes if "Item" in write])

    def answered(parsed: Mapping[str, Any], **_: Any) -> None:
        _see([*parsed.get("Items", ()), *([parsed["Item"]] if "Item" in parsed else ())])

    def _see(items: Any) -> None:
        found.largest_item = max([found.largest_item, *map(item_bytes, items)])

    client.meta.events.register("before-parameter-build.dynamodb", asked)
    client.meta.events.register("after-call.dynamodb", answered)


def _written(params: Mapping[str, Any]) -> list[Any]:
    return [next(iter(entry.values())) for entry in params.get("TransactItems", ())]


def _scan_tick(errand: Errand, deps: Deps) -> None:
    """A schedule's tick, or those that were shared out by it."""
    ticks = [from_message(body, deps.timing.scan) for body in errand.bodies]
    for tick in ticks or [Tick(now(), 0, deps.timing.scan)]:
        scan_tick(tick, deps)


def _scan_pool(errand: Errand, deps: Deps) -> None:
    for body in errand.bodies:
        message = read(body, deps)
        if message is None:
            raise LookupError("the part of a list is gone")
        _hear_of(message, deps)
        scan(message, deps)


def _hear_of(message: ScanPool, deps: Deps) -> None:
    """The task queue knows all machines, and heard of them lately."""
    if isinstance(deps.queue, FakeQueue):
        for one in message.sightings:
            key = one.key
            lately = now() - timedelta(minutes=1)
            deps.queue.set_activity(
                key.pool_id, key.group, key.worker_id, first_claim=lately, last_active=lately
            )


def _provision_tick(errand: Errand, deps: Deps) -> None:
    provision_tick(Tick(now(), 0, deps.timing.tick), deps)


def _provision_pool(errand: Errand, deps: Deps) -> None:
    for body in errand.bodies:
        deadline = Deadline.after(timedelta(minutes=5))
        provision(ProvisionPool.from_json(body), deps, deadline)


FUNCTIONS: dict[str, Callable[[Errand, Deps], None]] = {
    "scan_tick": _scan_tick,
    "scan_pool": _scan_pool,
    "provision_tick": _provision_tick,
    "provision_pool": _provision_pool,
}


def _run(errand: Errand) -> Found:
    found = Found()
    import_module(f"functions.{errand.function}.handler")
    (cloud,) = (cloud for cloud in CLOUDS if cloud.name == errand.cloud)
    shared = botocore.session.get_session()
    tables = Tables.bind(errand.tables, shared, HOME_REGION)
    _count(tables.connection.client, found)
    provider = start_provider(Simulated(cloud, errand.url), boto3.Session(botocore_session=shared))
    senders = {name: SqsSender(_Sqs(found, name), name) for name in QUEUES}
    deps = deps_of(provider, tables, senders, bus=_NoBus(), blobs=_Blobs(found, errand.blobs))
    began = time.perf_counter()
    FUNCTIONS[errand.function](errand, deps)
    found.seconds = time.perf_counter() - began
    found.megabytes = _most_megabytes()
    return found


def _most_megabytes() -> float:
    """The most memory that this process had; ``ru_maxrss`` would know its parent's, too."""
    kilobytes = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    if kilobytes is None:
        raise LookupError("VmHWM")
    return int(kilobytes[1]) / 1_024


if __name__ == "__main__":
    logging.disable(logging.INFO)
    print(json.dumps(asdict(_run(Errand(**json.load(sys.stdin))))))
