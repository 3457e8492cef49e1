"""What no agent does: our own actions, requests to other services, and looking after all runs."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.action_tables import a_run, an_action, some_runs
from tests.api.world import Clock, MemoryBus, MemorySender
from tests.factories import NOW, a_worker
from tests.registry_tables import a_registry, quarantines_of
from worker_manager.actions.course import LEASE
from worker_manager.actions.entities import (
    Kind,
    Lease,
    Operation,
    Result,
    Run,
    RunState,
    Target,
)
from worker_manager.core.errors import QueueUnavailableError
from worker_manager.core.ids import derived_slugid
from worker_manager.core.messages import Act, Reboot, Terminate, advance_from_json
from worker_manager.core.model import State, WorkerKey
from worker_manager.core.timing import Timing
from worker_manager.outbox import Outbox
from worker_manager.reconcile import act as act_module
from worker_manager.reconcile.act import ActDeps, act, sweep_runs
from worker_manager.reconcile.deadline import UNLIMITED, Deadline
from worker_manager.store.audit import AuditStore
from worker_manager.store.places import PlaceStore
from worker_manager.store.pool_errors import PoolErrorStore
from worker_manager.store.workers import WorkerStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from worker_manager.store.tables import Tables

RUN = derived_slugid("run", 1)
KEY = WorkerKey("proj-x/pool-1", "us-east-1", "i-1")


class Backend:
    """Where tasks are given out; with an ``error`` it does not answer."""

    def __init__(self) -> None:
        self.held: list[tuple[WorkerKey, datetime]] = []
        self.error: Exception | None = None

    def quarantine(self, key: WorkerKey, until: datetime, *, info: str) -> None:
        if self.error is not None:
            raise self.error
        self.held.append((key, until))


class Caller:
    """A service that answers; ``while_called`` happens meanwhile."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.answer = (Result.OK, "HTTP 200: done")
        self.while_called: Callable[[], object] = lambda: None

    def call(self, run: Run) -> tuple[Result, str]:
        self.calls.append(run.run_id)
        self.while_called()
        return self.answer


class World:
    """The function that does runs, over tables in memory."""

    def __init__(self, tables: Tables) -> None:
        self.clock = Clock()
        self.bus = MemoryBus()
        self.backend, self.caller = Backend(), Caller()
        self.advance, self.act_queue = MemorySender(), MemorySender()
        self.registry = a_registry(tables)
        self.workers = WorkerStore(tables, kept=Timing().worker_kept)
        places = PlaceStore(tables)
        outbox = Outbox(
            bus=self.bus,
            places=places,
            workers=self.workers,
            errors=PoolErrorStore(tables, kept=Timing().errors_kept),
        )
        self.audit = AuditStore(tables, kept=Timing().audit_kept)
        self.quarantines = quarantines_of(self.registry)
        self.runs = some_runs(tables, self.registry, announce=outbox.send)
        self.leases = 0
        stores: Any = self
        deps: Any = {"stores": stores, "caller": self.caller, "backend": self.backend}
        self.deps = ActDeps(
            runs=self.runs,
            audit=self.audit,
            outbox=outbox,
            quarantines=self.quarantines,
            senders={"aws": self.advance},
            act=self.act_queue,
            clock=self.clock,
            new_lease_id=self.new_lease_id,
            **deps,
        )

    def new_lease_id(self) -> str:
        self.leases += 1
        return f"lease-{self.leases}"

    def ask(self, operation: str, number: int = 1, key: WorkerKey = KEY, **more: Any) -> Run:
        ours = {"kind": Kind.BUILTIN, "agent_id": None, "cooldown": timedelta()}
        action = an_action(operation, **(ours | more.pop("action", {})))
        wanted = a_run(number, key=key, action=action, requested=self.clock.now, **more)
        return self.runs.request(wanted)

    def ask_http(self, number: int = 1, **more: Any) -> Run:
        http = {"kind": Kind.HTTP, "url": "https://x.example/", "method": "POST", "operation": None}
        return self.ask("reimage", number, action=http, **more)

    def act(self, run_id: str = RUN) -> list[str]:
        return act({"m": Act(run_id)}, self.deps)

    def has(self, state: State = State.RUNNING, **fields: Any) -> None:
        assert self.workers.put_new(a_worker(state=state, version=1, **fields))

    def state(self) -> State:
        worker = self.workers.get(KEY)
        assert worker is not None
        return worker.state

    def is_held(self) -> bool:
        worker = self.registry.worker(KEY)
        return worker is not None and worker.is_quarantined(self.clock.now)

    def sent(self) -> list[Any]:
        return [advance_from_json(message.body) for message in self.advance.messages]

    def over(self, run_id: str = RUN) -> tuple[RunState, str]:
        run = self.runs.get(run_id)
        return run.state, run.message


@pytest.fixture
def world(tables: Tables) -> World:
    return World(tables)


def test_quarantine_and_release_take_hold_where_tasks_are_given_out_and_here(
    world: World,
) -> None:
    world.ask("quarantine", reason="noisy")
    assert world.act() == []
    assert world.over() == (RunState.SUCCEEDED, "it gets no more tasks")
    assert world.is_held()
    (change,) = world.quarantines.history(KEY)
    assert (change.client_id, change.info) == ("test/root", "noisy")

    world.clock.advance(seconds=1)
    world.ask("release", 2)
    world.act(derived_slugid("run", 2))
    assert not world.is_held()
    assert [until > NOW + timedelta(days=1) for _, until in world.backend.held] == [True, False]
    # A message that comes again finds it over.
    world.act()
    assert not world.is_held()


@pytest.mark.parametrize(
    ("provider_id", "state", "message", "after", "is_held"),
    [
        ("aws", State.RUNNING, "its machine is being deleted", State.STOPPING, False),
        ("aws", State.REQUESTED, "its machine is being deleted", State.STOPPING, False),
        ("aws", State.STOPPING, "its machine is being deleted", State.STOPPING, False),
        ("aws", State.STOPPED, "it had stopped already", State.STOPPED, False),
        (
            "static",
            State.RUNNING,
            "stopped; its machine stays, and gets no more tasks",
            State.STOPPED,
            True,
        ),
        (
            "static",
            State.STOPPED,
            "stopped; its machine stays, and gets no more tasks",
            State.STOPPED,
            True,
        ),
    ],
)
def test_a_killed_worker_is_taken_away_as_its_kind_allows(
    world: World, provider_id: str, state: State, message: str, after: State, *, is_held: bool
) -> None:
    world.has(state, provider_id=provider_id)
    world.ask("kill", reason="stuck")
    for _ in range(2):
        assert world.act() == []

    assert world.over() == (RunState.SUCCEEDED, message)
    assert (world.state(), world.is_held()) == (after, is_held)
    is_deleted = provider_id == "aws" and state is not State.STOPPED
    assert world.sent() == ([Terminate(KEY)] if is_deleted else [])
    is_change = after is not state
    (*entries,) = world.audit.newest_first(KEY.pool_id)
    assert [(one.client_id, one.action) for one in entries] == [
        ("test/root", "removed")
    ] * is_change
    killed = [event for event in world.bus.events if event["name"].startswith("worker-")]
    assert {event["detail"]["reason"] for event in killed} == (
        {"killed: stuck"} if is_change else set()
    )


def test_a_worker_that_only_a_queue_knows_is_killed_by_quarantine(world: World) -> None:
    world.ask("kill")
    world.act()

    assert world.over() == (RunState.SUCCEEDED, "no machine of ours; it gets no more tasks")
    assert world.is_held()


def test_what_fails_in_the_middle_comes_again_and_is_done_again(world: World) -> None:
    world.has(provider_id="static")
    world.ask("kill")
    world.backend.error = QueueUnavailableError("down")
    assert world.act() == ["m"]
    assert world.runs.get(RUN).state is RunState.RUNNING
    # Too early: it counts as somebody's.
    assert world.act() == []
    world.backend.error = None
    world.clock.advance(seconds=90)
    assert world.act() == []

    assert world.over()[0] is RunState.SUCCEEDED
    assert [str(one.result) for one in world.runs.get(RUN).attempts] == ["unknown", "ok"]
    assert (world.state(), world.is_held()) == (State.STOPPED, True)


def test_another_service_is_called_once_and_what_it_says_is_told(world: World) -> None:
    world.ask_http()
    # The same message, delivered again while the first one is being worked on.
    world.caller.while_called = world.act
    assert world.act() == []
    assert world.over() == (RunState.SUCCEEDED, "HTTP 200: done")
    world.act()
    assert world.caller.calls == [RUN]


@pytest.mark.parametrize(
    ("result", "message"),
    [(Result.ERROR, "HTTP 403"), (Result.UNKNOWN, "no answer: it may have been done")],
)
def test_a_service_that_refuses_or_is_silent_is_not_called_again(
    world: World, result: Result, message: str
) -> None:
    world.ask_http()
    world.caller.answer = (result, message)
    world.act()

    assert world.over() == (RunState.FAILED, message)
    assert world.runs.get(RUN).attempts[0].result is result


def test_a_caller_that_dies_may_have_called_and_nobody_calls_again(world: World) -> None:
    world.ask_http()

    def die() -> None:
        raise KeyboardInterrupt

    world.caller.while_called = die
    with pytest.raises(KeyboardInterrupt):
        world.act()
    world.clock.advance(seconds=61)
    assert world.act() == []

    state, message = world.over()
    assert state is RunState.FAILED
    assert "may have been done" in message
    assert world.caller.calls == [RUN]


def test_a_reboot_is_for_the_provider_of_the_machine(world: World) -> None:
    world.has()
    world.ask("reboot")
    for _ in range(2):
        world.act()

    assert world.sent() == [Reboot(KEY, RUN)] * 2
    assert world.runs.get(RUN).state is RunState.QUEUED


@pytest.mark.parametrize("provider_id", ["static", "aws", None])
def test_what_no_cloud_reboots_is_not_rebooted(world: World, provider_id: str | None) -> None:
    if provider_id is not None:
        world.has(State.STOPPED, provider_id=provider_id)
    world.ask("reboot")
    world.act()

    assert world.over()[0] is RunState.FAILED
    assert world.sent() == []


def test_runs_of_agents_and_unknown_ones_are_left_alone(world: World) -> None:
    world.runs.request(a_run())
    assert world.act() == []
    assert world.runs.get(RUN).state is RunState.QUEUED
    assert world.act(derived_slugid("none")) == []


def test_a_sweep_finds_what_was_lost_and_ends_what_is_over(world: World) -> None:
    keys = [WorkerKey(KEY.pool_id, KEY.group, f"i-{number}") for number in range(6)]
    world.ask("quarantine", 0, keys[0])
    world.ask("quarantine", 1, keys[1])
    lease = Lease("dead", "worker-manager", world.clock.now + LEASE)
    world.runs.take(derived_slugid("run", 1), lease, now=world.clock.now)
    world.runs.request(a_run(2, key=keys[2]))
    world.clock.advance(minutes=2)
    world.ask("quarantine", 3, keys[3])
    lease = Lease("alive", "worker-manager", world.clock.now + LEASE)
    world.ask("quarantine", 4, keys[4])
    world.runs.take(derived_slugid("run", 4), lease, now=world.clock.now)

    assert sweep_runs(world.deps, UNLIMITED) == {"open": 5, "over": 0, "again": 2}
    again = [Act.from_json(message.body) for message in world.act_queue.messages]
    assert again == [Act(derived_slugid("run", number)) for number in (0, 1)]
    world.clock.advance(minutes=59)
    assert sweep_runs(world.deps, UNLIMITED)["over"] == 4
    assert sweep_runs(world.deps, Deadline.after(timedelta(seconds=1)))["open"] == 0
    assert world.runs.get(derived_slugid("run", 2)).message == "nobody took it up in time"


def test_a_queue_that_takes_nothing_keeps_no_run_from_its_end(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(act_module, "PAGE", 1)
    world.runs.request(a_run(1))
    world.clock.advance(minutes=60)
    world.ask("quarantine", 2, WorkerKey(KEY.pool_id, KEY.group, "i-2"))
    world.ask("quarantine", 3, WorkerKey(KEY.pool_id, KEY.group, "i-3"))
    world.clock.advance(minutes=1)
    world.act_queue.error = QueueUnavailableError("it is down")
    assert sweep_runs(world.deps, UNLIMITED) == {"open": 2, "over": 1, "again": 0}


def test_an_operation_that_nobody_has_fails(world: World) -> None:
    world.ask("dance")
    world.act()
    assert world.over() == (RunState.FAILED, "operation: 'dance' is nothing we do")
    world.ask(Operation.KILL, 2, target=Target("proj-x", "pool-1"))
    world.act(derived_slugid("run", 2))
    assert world.over(derived_slugid("run", 2)) == (RunState.FAILED, "target: is no worker")
