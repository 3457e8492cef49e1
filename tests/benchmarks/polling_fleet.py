"""Workers that ask our own queue for tasks: tables in memory, containers, and a virtual clock.

The queue and the registry are the real ones, as is the client of DynamoDB; behind it is moto, as
what counts is requests and sizes, not time.  Read next: ``polling``, which lets them ask.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import botocore.session
import pytest
from moto import mock_aws

from tests.benchmarks.pools import shares
from tests.benchmarks.units import Meter
from tests.quick_moto import hurry
from tests.quick_queries import look_into_one_partition
from tests.registry_tables import a_registry
from worker_manager.core.ids import derived_slugid
from worker_manager.core.model import WorkerKey
from worker_manager.core.moments import to_wire
from worker_manager.queue.embedded import EmbeddedQueue
from worker_manager.registry import changes
from worker_manager.registry.changes import RECENT
from worker_manager.registry.observations import Kind, Observation
from worker_manager.registry.registry import Registry
from worker_manager.store.queue_table import QueueTable
from worker_manager.store.tables import Tables
from worker_manager.taskcluster.credentials import Issuer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


WORKERS, POOLS, LARGEST = 10_000, 400, 2_000
"""Workers, their pools, and how many are in the largest; the others are alike."""
CONTAINERS = 20
"""Of the function that answers them, each with a memory of its own; which one is chance."""
PROVISIONERS = 10
ZONES = ("us-east-1a", "us-east-1b", "us-west-2a")
BEGINNING = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
TASK = timedelta(minutes=5)


@dataclass
class Clock:
    """A time that only moves when it is told to."""

    now: datetime = BEGINNING

    def __call__(self) -> datetime:
        """The time."""
        return self.now


@dataclass(frozen=True, slots=True)
class Fleet:
    """Workers by pool, the largest pool first, and the queue that they ask."""

    pools: Sequence[Sequence[WorkerKey]]
    containers: Sequence[EmbeddedQueue]
    registry: Registry
    clock: Clock
    meter: Meter
    chance: Random = field(default_factory=lambda: Random(5))

    @property
    def workers(self) -> list[WorkerKey]:
        """All of them."""
        return [key for pool in self.pools for key in pool]

    @property
    def names(self) -> int:
        """Groups, types and provisioners that are there to be seen."""
        keys = self.workers
        groups = {(key.pool_id, key.group) for key in keys}
        provisioners = {key.pool_id.partition("/")[0] for key in keys}
        return len(groups) + len(self.pools) + len(provisioners)

    def any_container(self) -> EmbeddedQueue:
        """The one that happens to get the next request."""
        return self.chance.choice(self.containers)

    def poll(self, key: WorkerKey) -> list[Any]:
        """What a worker is given when it asks for a task."""
        asked = {"workerGroup": key.group, "workerId": key.worker_id, "tasks": 1}
        given: list[Any] = self.any_container().claim_work(key.pool_id, asked).body["tasks"]
        return given


def _history(key: WorkerKey, until: datetime) -> Iterator[Observation]:
    """As many claims as a row remembers, one of ten failed."""
    for number in range(RECENT):
        run: Any = {"task_id": derived_slugid((key.worker_id, number)), "run_id": 0}
        began = until - (RECENT - number) * TASK
        state = "completed" if number % 10 else "failed"
        yield Observation(key, Kind.CLAIM, began, **run)
        yield Observation(key, Kind.RESOLVE, began + TASK, **run, state=state, reason=state)


def task_body(pool_id: str, now: datetime) -> dict[str, Any]:
    """A task as ``createTask`` takes it, of some 2 KB."""
    return {
        "taskQueueId": pool_id,
        "created": to_wire(now),
        "deadline": to_wire(now + timedelta(hours=24)),
        "scopes": [f"queue:route:index.project.{number}" for number in range(5)],
        "payload": {"command": [["./build.sh", "x" * 1_000]], "maxRunTime": 3_600},
        "metadata": {
            "name": "build",
            "description": "builds what the project ships, and runs its tests",
            "owner": "build-team@example.com",
            "source": "https://hg.example.com/project/rev/0123456789abcdef",
        },
    }


def keys_of(workers: int, pools: int, largest: int) -> list[list[WorkerKey]]:
    """Names of so many workers: a large pool first, then the others."""
    sizes = [largest, *shares(workers - largest, pools - 1)]
    return [
        [
            WorkerKey(
                f"project-{pool % PROVISIONERS}/builders-linux-{pool:04}",
                ZONES[number % len(ZONES)],
                f"i-{pool:05x}{number:012x}",
            )
            for number in range(size)
        ]
        for pool, size in enumerate(sizes)
    ]


@contextmanager
def a_fleet(scale: float = 1.0) -> Iterator[Fleet]:
    """Nobody of it has asked yet; containers are as many fewer as workers."""
    with in_memory():
        yield _fleet(scale)


@contextmanager
def in_memory() -> Iterator[None]:
    """AWS is in this process until the end of the block."""
    with ExitStack() as stack:
        stack.enter_context(patch.dict(os.environ, _environment(), clear=True))
        shorter = stack.enter_context(pytest.MonkeyPatch.context())
        hurry(shorter)
        look_into_one_partition(shorter)
        stack.enter_context(mock_aws())
        yield


def remember(registry: Registry, keys: Iterable[WorkerKey], *, until: datetime) -> None:
    """They have worked without a pause, the last time just before ``until``."""
    for key in keys:
        nobody = changes.meet(key, until - RECENT * TASK)
        past = list(_history(key, until))
        registry.save(changes.observed(nobody, past, interval=registry.interval))


def _fleet(scale: float) -> Fleet:
    tables = Tables.bind({}, botocore.session.get_session(), "us-east-1")
    tables.providers.create_table(billing_mode="PAY_PER_REQUEST", wait=True)
    table = QueueTable.bind("bench-queue", tables.connection)
    table.items.create_table(billing_mode="PAY_PER_REQUEST", wait=True)
    registry = a_registry(tables, "bench-registry")
    clock, meter = Clock(), Meter()
    meter.attach(tables.connection.client)
    issuer = Issuer("queue/issuer", "queue-issuer-access-token")
    containers = max(2, round(CONTAINERS * scale))
    pools = keys_of(*sizes(scale))
    queues = [
        EmbeddedQueue(table, Registry(registry.table), clock, issuer) for _ in range(containers)
    ]
    return Fleet(pools, queues, registry, clock, meter)


def sizes(scale: float) -> tuple[int, int, int]:
    """How many workers and pools, and how many workers in the largest."""
    return (
        max(20, round(WORKERS * scale)),
        max(4, round(POOLS * scale)),
        max(8, round(LARGEST * scale)),
    )


def _environment() -> dict[str, str]:
    """What a machine needs, and of AWS nothing but what the client must have."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return kept | {"AWS_ACCESS_KEY_ID": "dead", "AWS_SECRET_ACCESS_KEY": "dead"}
