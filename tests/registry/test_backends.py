"""One contract over the three ways in which the registry hears of workers.

The same story happens at a task queue; whether that is our own, a Taskcluster queue elsewhere that
is looked at, or one that tells what it sees, the registry then knows the same.  The queue elsewhere
is our own one behind HTTP with a registry of its own, asked with the stock client's URLs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from botocore.session import Session
from moto import mock_aws

from tests.api.world import ISSUER, TOKEN, Clock
from tests.http_server import serving
from tests.registry_tables import a_registry, quarantines_of, queue_deps
from worker_manager.api.app import App
from worker_manager.api.queue import ROUTES
from worker_manager.core.errors import InputInvalidError, QueueUnavailableError
from worker_manager.core.ids import derived_slugid
from worker_manager.core.model import WorkerKey
from worker_manager.core.moments import to_wire
from worker_manager.core.roles import Roles
from worker_manager.queue.embedded import EmbeddedQueue
from worker_manager.registry.backends import remote
from worker_manager.registry.backends.builtin import BuiltinBackend
from worker_manager.registry.backends.events import EventsBackend
from worker_manager.registry.backends.remote import RemoteBackend
from worker_manager.registry.declarations import Declarations
from worker_manager.registry.observations import Kind, Observation
from worker_manager.store.queue_table import QueueTable
from worker_manager.store.tables import Tables
from worker_manager.taskcluster.auth import LocalAuthenticator
from worker_manager.taskcluster.clients import Client
from worker_manager.taskcluster.observed_queue import ObservedQueue, RunEnd
from worker_manager.taskcluster.queue_http import QueueHttp

if TYPE_CHECKING:
    from collections.abc import Iterator

    from worker_manager.registry.entities import Outcomes, RegistryWorker
    from worker_manager.registry.registry import Registry

POOL = "proj-x/builders"
IDLE, BUSY = WorkerKey(POOL, "rack-1", "idle"), WorkerKey(POOL, "rack-2", "busy")
MINUTE = timedelta(minutes=1)
SERIAL = iter(range(1_000_000))


def late() -> bool:
    return True


def in_time() -> bool:
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

    def look(self) -> Any:
        return self.backend.refresh(in_time)

    def poll(self, key: WorkerKey) -> list[Any]:
        body = {"workerGroup": key.group, "workerId": key.worker_id}
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


@pytest.fixture(scope="module")
def _tables() -> Iterator[Tables]:
    with mock_aws():
        tables = Tables.bind({}, Session(), "us-east-1")
        tables.providers.create_table(billing_mode="PAY_PER_REQUEST", wait=True)
        yield tables


@pytest.fixture(params=["builtin", "remote", "events"])
def world(request: pytest.FixtureRequest, _tables: Tables) -> Iterator[World]:
    number = next(SERIAL)
    clock = Clock(datetime(2026, 11, 30, 12, tzinfo=UTC))
    table = QueueTable.bind(f"queue-{number}", _tables.connection)
    table.items.create_table(billing_mode="PAY_PER_REQUEST", wait=True)
    there = a_registry(_tables, f"there-{number}")
    queue = EmbeddedQueue(table, there, clock, ISSUER)
    if request.param == "builtin":
        yield World(clock, queue, there, there, BuiltinBackend())
        return
    here = a_registry(_tables, f"here-{number}")
    if request.param == "events":
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
                return {"statusCode": 500, "headers": {}, "body": "{}", "isBase64Encoded": False}
            return app.handle(event)

        return answer

    with serving(handle) as url:
        http = QueueHttp(url, {"clientId": "test/root", "accessToken": TOKEN})
        backend = RemoteBackend(here, quarantines_of(here), ObservedQueue(http), clock)
        found.append(World(clock, queue, there, here, backend))
        yield found[0]
        http.close()


def test_who_calls_is_known_at_all_four_levels(world: World) -> None:
    world.poll(IDLE)
    world.look()

    at = world.clock.now
    assert world.known(IDLE).first_claim == at
    assert world.known(IDLE).last_seen == at
    assert [group.group for group in world.here.groups(POOL)] == ["rack-1"]
    assert [one.last_seen for one in world.here.worker_types()] == [at]
    assert [one.provisioner_id for one in world.here.provisioners()] == ["proj-x"]


@pytest.mark.parametrize("state", ["completed", "failed", "exception"])
def test_what_a_worker_takes_is_known_while_it_runs_and_when_it_ended(
    world: World, state: str
) -> None:
    task_id = world.create()
    (run,) = world.poll(BUSY)
    world.look()
    (claim,) = world.known(BUSY).claims
    assert (claim.run, claim.claimed, claim.state) == ((task_id, 0), world.clock.now, None)

    world.clock.advance(minutes=5)
    world.end(BUSY, run, state)
    for _ in range(2):
        world.look()
    (claim,) = world.known(BUSY).claims
    assert (claim.state, claim.resolved) == (state, world.clock.now)
    assert sum(vars_of(world.known(BUSY).outcomes["2026-11-30"])) == 1


def vars_of(outcomes: Outcomes) -> list[int]:
    return [outcomes.completed, outcomes.failed, outcomes.exceptions, outcomes.others]


def test_what_began_and_ended_between_two_looks_is_known_too(world: World) -> None:
    world.poll(BUSY)
    world.look()
    world.create()
    world.clock.advance(minutes=1)
    (run,) = world.poll(BUSY)
    world.clock.advance(minutes=1)
    world.end(BUSY, run, "failed")
    for _ in range(2):
        world.look()

    (claim,) = world.known(BUSY).claims
    assert (claim.run, claim.state) == (run, "failed")


def test_a_worker_that_keeps_calling_is_not_forgotten(world: World) -> None:
    for _ in range(5):
        world.poll(IDLE)
        world.look()
        world.clock.advance(minutes=31)

    assert world.known(IDLE).last_seen == world.clock.now - 31 * MINUTE


def test_a_quarantine_takes_hold_and_ends(world: World) -> None:
    world.create()
    world.poll(IDLE)
    world.look()
    world.clock.advance(minutes=1)
    world.create()
    world.quarantine(IDLE, world.clock.now + timedelta(days=9))
    world.look()
    assert world.poll(IDLE) == []
    assert world.known(IDLE).is_quarantined(world.clock.now)

    world.quarantine(IDLE, world.clock.now)
    world.look()
    assert not world.known(IDLE).is_quarantined(world.clock.now)
    assert len(world.poll(IDLE)) == 1


def test_an_unknown_worker_can_be_put_aside_and_is_once_it_comes(world: World) -> None:
    world.quarantine(IDLE, world.clock.now + timedelta(days=9))
    assert world.known(IDLE).first_seen is None
    world.look()
    if world.here is not world.there and not world.pushes:
        # Taskcluster's queue refuses to put aside whom it does not know; ours does not.
        world.there.delete_worker(IDLE)
    world.poll(IDLE)
    world.look()
    world.create()

    assert world.known(IDLE).is_quarantined(world.clock.now)
    assert world.known(IDLE).first_claim is not None
    assert world.poll(IDLE) == []


@pytest.mark.parametrize("world", ["remote"], indirect=True)
def test_what_changed_nothing_writes_nothing(world: World, monkeypatch: Any) -> None:
    world.create()
    world.poll(BUSY)
    world.poll(IDLE)
    world.look()
    world.clock.advance(minutes=5)
    world.poll(IDLE)
    version = world.known(IDLE).version, world.known(BUSY).version

    report = world.look()

    assert (world.known(IDLE).version, world.known(BUSY).version) == version
    assert report == {"queues": 1, "failed": 0, "left": 0, "workers": 2, "observed": 0}


@pytest.mark.parametrize("world", ["remote"], indirect=True)
def test_a_quarantine_that_was_changed_there_is_told_here(world: World) -> None:
    world.poll(IDLE)
    until = world.clock.now + timedelta(days=1)
    there = quarantines_of(world.there)
    there.change(IDLE, until, info="", client_id="somebody", now=world.clock.now)
    world.look()
    assert world.known(IDLE).quarantine_until == until

    world.clock.advance(minutes=1)
    now = world.clock.now
    there.change(IDLE, now, info="", client_id="somebody", now=now)
    world.look()
    world.look()
    assert not world.known(IDLE).is_quarantined(now)
    history = quarantines_of(world.here).history(IDLE)
    assert [change.client_id for change in history] == ["task-queue", "task-queue"]


@pytest.mark.parametrize("world", ["remote"], indirect=True)
def test_a_queue_that_does_not_answer_stops_no_other(world: World) -> None:
    other = WorkerKey("proj-y/testers", "rack-1", "m-1")
    for key in (IDLE, other):
        world.poll(key)
    world.failing.append("/builders/workers")

    report = world.look()

    assert (report["queues"], report["failed"]) == (1, 1)
    assert world.here.worker(IDLE) is None
    assert world.here.worker(other) is not None
    world.failing[:] = ["/task-queues"]
    with pytest.raises(QueueUnavailableError):
        world.look()


@pytest.mark.parametrize("world", ["remote"], indirect=True)
def test_a_quarantine_that_the_queue_does_not_take_is_not_recorded(world: World) -> None:
    world.poll(IDLE)
    world.look()
    world.failing.append("/workers/rack-1")

    with pytest.raises(QueueUnavailableError):
        world.quarantine(IDLE, world.clock.now + timedelta(days=1))
    assert world.known(IDLE).quarantine_until is None


@pytest.mark.parametrize("world", ["remote"], indirect=True)
def test_a_lack_of_time_is_shared_by_all_queues(world: World) -> None:
    for number in range(4):
        world.poll(WorkerKey(f"proj-{number}/builders", "g", "w"))
    assert world.backend.refresh(late) == {
        "queues": 0,
        "failed": 0,
        "left": 4,
        "workers": 0,
        "observed": 0,
    }
    firsts = set()
    for _ in range(4):
        world.asked.clear()
        world.look()
        firsts.add(next(path for path in world.asked if path.endswith("/workers")))
        world.clock.advance(minutes=5)
    assert len(firsts) > 1


@pytest.mark.parametrize("world", ["remote", "events"], indirect=True)
def test_only_our_own_queue_can_close_a_whole_type(world: World) -> None:
    with pytest.raises(InputInvalidError, match="not a queue of ours"):
        world.backend.close(POOL, world.clock.now)


@pytest.mark.parametrize("world", ["remote"], indirect=True)
def test_a_quarantine_that_is_put_during_a_look_is_not_taken_for_lifted(world: World) -> None:
    world.poll(IDLE)
    world.look()
    listed = world.backend._queue.claims
    until = world.clock.now + timedelta(days=1)

    def quarantined_meanwhile(queue_id: str) -> Any:
        world.quarantine(IDLE, until)
        return listed(queue_id)

    world.backend._queue.claims = quarantined_meanwhile
    world.look()

    assert world.known(IDLE).quarantine_until == until
    assert len(quarantines_of(world.here).history(IDLE)) == 1


@pytest.mark.parametrize("world", ["remote"], indirect=True)
@pytest.mark.parametrize("is_declared", [True, False])
def test_a_quarantine_of_an_unknown_worker_is_told_again_if_it_could_not_be(
    world: World, is_declared: bool
) -> None:
    world.quarantine(IDLE, world.clock.now + timedelta(days=9))
    world.there.delete_worker(IDLE)
    if is_declared:
        Declarations(world.here).worker(IDLE, {"capacity": 1}, now=world.clock.now)
    world.poll(IDLE)
    world.failing.append("/workers/rack-1")
    assert world.look()["failed"] == 1
    world.failing.clear()
    world.look()
    world.create()

    assert world.known(IDLE).is_quarantined(world.clock.now)
    assert world.poll(IDLE) == []


@pytest.mark.parametrize("world", ["remote"], indirect=True)
def test_runs_of_which_the_queue_knows_nothing_hide_no_end(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = [
        Observation(
            WorkerKey(POOL, "rack-9", f"m-{n}"),
            Kind.CLAIM,
            world.clock.now,
            task_id=derived_slugid("lost", n),
            run_id=0,
        )
        for n in range(3)
    ]
    world.here.observe(lost)
    monkeypatch.setattr(remote, "ENDS_ASKED", 1)
    world.create()
    (run,) = world.poll(BUSY)
    world.look()
    world.end(BUSY, run, "completed")
    for _ in range(4):
        world.look()
        world.clock.advance(minutes=5)

    assert world.known(BUSY).claims[0].state == "completed"


@pytest.mark.parametrize("world", ["remote"], indirect=True)
def test_a_queue_that_tells_nonsense_stops_no_other(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = WorkerKey("proj-y/testers", "rack-1", "m-1")
    world.create()
    (run,) = world.poll(BUSY)
    world.look()
    world.end(BUSY, run, "failed")
    world.poll(other)
    end = RunEnd("half-done", None, world.clock.now)
    monkeypatch.setattr(ObservedQueue, "run_end", lambda *_: end)

    report = world.look()

    assert (report["queues"], report["failed"]) == (1, 1)
    assert world.here.worker(other) is not None
