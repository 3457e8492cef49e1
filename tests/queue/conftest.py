"""An embedded queue on an in-memory table, with a clock that tests move."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from botocore.session import Session
from moto import mock_aws

from tests.registry_tables import a_registry, quarantines_of
from worker_manager.core.ids import derived_slugid
from worker_manager.core.model import WorkerKey
from worker_manager.core.moments import to_wire
from worker_manager.queue.embedded import EmbeddedQueue
from worker_manager.store.queue_table import QueueTable
from worker_manager.store.tables import Tables
from worker_manager.taskcluster.credentials import Issuer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from worker_manager.registry.quarantines import Quarantines
    from worker_manager.registry.registry import Registry

POOL = "proj-x/builders"
NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
SESSION = Session()


@dataclass
class Clock:
    now: datetime = NOON

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **amount: float) -> None:
        self.now += timedelta(**amount)


@dataclass
class World:
    """A queue, its clock, and shorthand for what every test does."""

    queue: EmbeddedQueue
    table: QueueTable
    clock: Clock
    registry: Registry
    quarantines: Quarantines

    def key(self, worker_id: str = "i-1", pool: str = POOL) -> WorkerKey:
        return WorkerKey(pool, "us-west-2", worker_id)

    def quarantine(self, until: datetime, worker_id: str = "i-1", info: str = "noisy") -> None:
        self.quarantines.change(
            self.key(worker_id), until, info=info, client_id="test/admin", now=self.clock.now
        )

    def task_body(self, **overrides: Any) -> dict[str, Any]:
        body = {
            "taskQueueId": POOL,
            "created": to_wire(self.clock.now),
            "deadline": to_wire(self.clock.now + timedelta(hours=24)),
            "payload": {"seconds": 3, "ratio": 1.0},
            "metadata": {
                "name": "build",
                "description": "builds",
                "owner": "someone@example.com",
                "source": "https://example.com/source",
            },
        }
        return body | overrides

    def create(self, name: object, **overrides: Any) -> str:
        task_id = derived_slugid(name)
        self.queue.create_task(task_id, self.task_body(**overrides))
        return task_id

    def claim(self, worker_id: str = "i-1", tasks: int = 1, pool: str = POOL) -> list[Any]:
        body = {"workerGroup": "us-west-2", "workerId": worker_id, "tasks": tasks}
        claimed: list[Any] = self.queue.claim_work(pool, body).body["tasks"]
        return claimed

    def counts(self, pool: str = POOL) -> tuple[int, int]:
        counts = self.queue.task_queue_counts(pool)
        return counts["pendingTasks"], counts["claimedTasks"]

    def status(self, task_id: str) -> Any:
        return self.queue.status(task_id)["status"]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    for name, value in {
        "AWS_ACCESS_KEY_ID": "dead",
        "AWS_SECRET_ACCESS_KEY": "dead",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    with mock_aws():
        tables = Tables.bind({}, SESSION, "us-east-1")
        table = QueueTable.bind("queue-under-test", tables.connection)
        table.items.create_table(billing_mode="PAY_PER_REQUEST", wait=True)
        tables.providers.create_table(billing_mode="PAY_PER_REQUEST", wait=True)
        registry = a_registry(tables)
        clock = Clock()
        issuer = Issuer("queue/issuer", "queue-issuer-access-token")
        queue = EmbeddedQueue(table, registry, clock, issuer)
        yield World(queue, table, clock, registry, quarantines_of(registry))
