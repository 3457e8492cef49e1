"""A task queue at which things happen, of each kind, and the registry that is to hear of them.

The queue elsewhere is our own one behind HTTP with a registry of its own, asked with the stock
client's URLs, and as coarse as Taskcluster's: it notes when it heard of a worker once in half an
hour, whatever that does, and puts nobody aside whom it does not know.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from tests.api.world import ISSUER, TOKEN, Clock
from tests.http_server import serving
from tests.registry_tables import a_registry, quarantines_of, queue_deps
from worker_manager.api.app import App
from worker_manager.api.queue import ROUTES
from worker_manager.core.ids import derived_slugid
from worker_manager.core.model import WorkerKey
from worker_manager.core.moments import to_wire
from worker_manager.core.roles import Roles
from worker_manager.queue.embedded import EmbeddedQueue
from worker_manager.registry.backends.builtin import BuiltinBackend
from worker_manager.registry.backends.events import EventsBackend
from worker_manager.registry.backends.remote import RemoteBackend
from worker_manager.registry.observations import Kind, Observation
from worker_manager.store.queue_table import QueueTable
from worker_manager.taskcluster.auth import LocalAuthenticator
from worker_manager.taskcluster.clients import Client
from worker_manager.taskcluster.observed_queue import ObservedQueue
from worker_manager.taskcluster.queue_http import QueueHttp

if TYPE_CHECKING:
    from collections.abc import Iterator

    from worker_manager.registry.entities import RegistryWorker
    from worker_manager.registry.registry import Registry
    from worker_manager.store.tables import Tables

POOL = "proj-x/builders"
IDLE, BUSY = WorkerKey(POOL, "rack-1", "idle"), WorkerKey(POOL, "rack-2", "busy")
MINUTE = timedelta(minutes=1)
COARSE = timedelta(minutes=30)
"""How exactly Taskcluster's queue knows when it heard of a worker."""
SERIAL = iter(range(1_000_000))


def in_time() -> bool:
    """There is always time left."""
    return False


@dataclass
class World:
    """A task queue at which things happen, and the registry that is to hear of them."""

    clock: Clock
    queue: EmbeddedQueue
    there: Registry
    """What the queue itself knows."""
    here: Registry
    backend: Any
    pushes: bool = False
    failing: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    noted: dict[tuple[str, str], datetime] = field(default_factory=dict)
    """By group and id, when the queue elsewhere last noted that it heard of a worker."""

    def look(self) -> Any:
        return self.backend.refresh(in_time)

    def poll(self, key: WorkerKey) -> list[Any]:
        body = {"workerGroup": key.group, "workerId": key.worker_id}
        noted = self.noted.get((key.group, key.worker_id))
        if noted is None or self.clock.now >= noted + COARSE:
            self.noted[key.group, key.worker_id] = self.clock.now
        tasks: list[Any] = self.queue.claim_work(key.pool_id, body).body["tasks"]
        runs = [(task["status"]["taskId"], task["runId"]) for task in tasks]
        self._tell(key, Kind.IDLE)
        for run in runs:
            self._tell(key, Kind.CLAIM, *run)
        return runs

    def create(self) -> str:
        task_id = derived_slugid("backends", next(SERIAL))
        self.queue.create_task(
            task_id,
            {
                "taskQueueId": POOL,
                "created": to_wire(self.clock.now),
                "deadline": to_wire(self.clock.now + timedelta(days=1)),
                "payload": {},
                "metadata": {
                    "name": "build",
                    "description": "builds",
                    "owner": "someone@example.com",
                    "source": "https://example.com/source",
                },
            },
        )
        return task_id

    def end(self, key: WorkerKey, run: tuple[str, int], state: str) -> None:
        reason = {"completed": "completed", "failed": "failed"}.get(state, "internal-error")
        match state:
            case "completed":
                self.queue.report_completed(*run)
            case "failed":
                self.queue.report_failed(*run)
            case _:
                self.queue.report_exception(*run, {"reason": reason})
        self._tell(key, Kind.RESOLVE, *run, state=state, reason=reason)

    def quarantine(self, key: WorkerKey, until: datetime) -> None:
        """As ``api.quarantines`` does it."""
        self.backend.quarantine(key, until, info="noisy")
        quarantines_of(self.here).change(
            key, until, info="noisy", client_id="test/root", now=self.clock.now
        )
        if self.pushes:  # whoever hears of it there
            quarantines_of(self.there).change(
                key, until, info="noisy", client_id="bridge", now=self.clock.now
            )

    def known(self, key: WorkerKey) -> RegistryWorker:
        worker = self.here.worker(key)
        assert worker is not None
        return worker

    def _tell(self, key: WorkerKey, kind: Kind, *run: Any, **more: Any) -> None:
        if self.pushes:
            names = dict(zip(("task_id", "run_id"), run, strict=False))
            told = Observation(key, kind, self.clock.now, **names, **more)
            self.here.observe([told])
            self.here.observe([told])  # at least once


def a_world(kind: str, tables: Tables) -> Iterator[World]:
    """A queue of this kind, with tables of its own."""
    number = next(SERIAL)
    clock = Clock(datetime(2026, 11, 30, 12, tzinfo=UTC))
    table = QueueTable.bind(f"queue-{number}", tables.connection)
    table.items.create_table(billing_mode="PAY_PER_REQUEST", wait=True)
    there = a_registry(tables, f"there-{number}")
    queue = EmbeddedQueue(table, there, clock, ISSUER)
    if kind == "builtin":
        yield World(clock, queue, there, there, BuiltinBackend())
        return
    here = a_registry(tables, f"here-{number}")
    if kind == "events":
        yield World(clock, queue, there, here, EventsBackend(), pushes=True)
        return
    found: list[World] = []

    def handle(url: str) -> Any:
        client = Client("test/root", TOKEN, ("*",))
        authenticator = LocalAuthenticator([client], Roles(()), lambda: datetime.now(UTC))
        deps: Any = queue_deps(queue, there, authenticator=authenticator, root_url=url, clock=clock)
        app = App[Any](ROUTES, deps)

        def answer(event: dict[str, Any]) -> dict[str, Any]:
            world = found[0]
            world.asked.append(f"{event['httpMethod']} {event['path']}")
            if any(part in event["path"] for part in world.failing):
                return _an_answer(500, {})
            if event["httpMethod"] == "PUT" and there.worker(_named(event["path"])) is None:
                return _an_answer(404, {"code": "ResourceNotFound"})
            answer = app.handle(event)
            return _coarse(answer, world) if event["path"].endswith("/workers") else answer

        return answer

    with serving(handle) as url:
        http = QueueHttp(url, {"clientId": "test/root", "accessToken": TOKEN})
        backend = RemoteBackend(here, quarantines_of(here), ObservedQueue(http), clock)
        found.append(World(clock, queue, there, here, backend))
        yield found[0]
        http.close()


def _named(path: str) -> WorkerKey:
    """The worker of a path ``.../provisioners/p/worker-types/t/workers/g/w``."""
    *_, provisioner_id, _, worker_type, _, group, worker_id = path.split("/")
    return WorkerKey(f"{provisioner_id}/{worker_type}", group, worker_id)


def _coarse(answer: dict[str, Any], world: World) -> dict[str, Any]:
    page = json.loads(answer["body"])
    for worker in page["workers"]:
        noted = world.noted.get((worker["workerGroup"], worker["workerId"]))
        if noted is not None:
            worker["lastDateActive"] = to_wire(noted)
    return _an_answer(answer["statusCode"], page)


def _an_answer(status: int, body: Any) -> dict[str, Any]:
    return {
        "statusCode": status,
        "headers": {"Content-Type": "application/json"},
        "body": json.dumps(body),
        "isBase64Encoded": False,
    }
