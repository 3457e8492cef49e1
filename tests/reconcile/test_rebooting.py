"""Reboots of machines by their cloud: none twice for one asking, whatever dies or comes again."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.dynamodb.models import dynamodb_backends

from tests.action_tables import Seen, a_run, an_action, an_action_table
from tests.reconcile.conftest import REGION
from tests.reconcile.scenes import with_workers
from tests.reconcile.steps import CrashError
from worker_manager.actions.course import LEASE
from worker_manager.actions.entities import Kind, Operation, Result, Run, RunState
from worker_manager.actions.ledger import Runs
from worker_manager.core.errors import (
    CloudError,
    CloudUnavailableError,
    NotAuthorizedError,
    NotReachedError,
    ThrottledError,
)
from worker_manager.core.messages import Reboot, Terminate
from worker_manager.core.model import State, WorkerKey
from worker_manager.providers.fake import Method
from worker_manager.queues import Message
from worker_manager.reconcile.advance import advance
from worker_manager.reconcile.deadline import Deadline
from worker_manager.reconcile.deps import Ledger

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.reconcile.world import World
    from worker_manager.core.model import Worker
    from worker_manager.core.timing import Timing
    from worker_manager.store.action_table import ActionTable
    from worker_manager.store.tables import Tables

SETTLED = timedelta(seconds=46)
"""After which a machine that was rebooted is surely down."""


@pytest.fixture(scope="module")
def action_table(shared_tables: Tables) -> ActionTable:
    return an_action_table(shared_tables)


class Reboots:
    """A world whose ``advance`` knows of runs, and a sweep that sends on what nobody is at."""

    def __init__(self, world: World, table: ActionTable) -> None:
        dynamodb_backends[DEFAULT_ACCOUNT_ID][REGION].tables["test-actions"].items.clear()
        self.world = world
        self.seen = Seen()
        self.runs = Runs(table, self.seen, announce=world.outbox.send)
        self.leases = 0
        ledger = Ledger(self.runs, self.new_lease_id)
        world.deps = replace(world.deps, ledger=ledger)
        world.all_deps[world.deps.provider_id] = world.deps

    @property
    def timing(self) -> Timing:
        return self.world.timing

    def new_lease_id(self) -> str:
        self.leases += 1
        return f"lease-{self.leases}"

    def ask(self, key: WorkerKey, number: int = 1, **more: Any) -> Reboot:
        """Somebody asks for a reboot, and ``act`` hands it on."""
        action = an_action(
            Operation.REBOOT, kind=Kind.BUILTIN, agent_id=None, timeout=timedelta(hours=1)
        )
        with self.world.aside():
            run = a_run(number, key=key, action=action, requested=self.world.clock.now, **more)
            message = Reboot(key, self.runs.request(run).run_id)
        self.hand_on(message)
        return message

    def hand_on(self, message: Reboot) -> None:
        with self.world.aside():
            self.world.deps.senders["advance"].send([Message(message.to_json())])

    def sweep(self, message: Reboot) -> None:
        """What ``act`` does each minute: sends on a run whose lease is over."""
        with self.world.aside():
            run = self.runs.settle(message.run_id, now=self.world.clock.now)
        is_idle = run.lease is None or run.lease.until <= self.world.clock.now
        if is_idle and not run.state.is_final and run.verified is None:
            self.hand_on(message)

    def after(self, wait: timedelta) -> None:
        self.world.clock.now += wait
        self.world.deliver_all()

    def run(self, message: Reboot) -> Run:
        with self.world.aside():
            return self.runs.settle(message.run_id, now=self.world.clock.now)

    def times(self, key: WorkerKey) -> int:
        return self.world.cloud.machines[key].reboots


@pytest.fixture
def reboots(new_world: Callable[..., World], action_table: ActionTable) -> Reboots:
    return Reboots(new_world(), action_table)


def results(run: Run) -> list[Result | None]:
    return [attempt.result for attempt in run.attempts]


def test_a_rebooted_worker_succeeded_once_it_is_heard_of_after_it_was_down(
    reboots: Reboots,
) -> None:
    world = reboots.world
    (machine,) = with_workers(world, 1)
    message = reboots.ask(machine.key)

    reboots.after(timedelta(seconds=1))
    reboots.seen[machine.key] = world.clock.now  # It goes on until it is down.
    assert reboots.run(message).state is RunState.RUNNING
    assert reboots.run(message).verified is None
    reboots.after(SETTLED)
    assert reboots.run(message).verified is not None
    world.scan()
    assert world.row(machine.key).state is State.RUNNING

    reboots.seen[machine.key] = world.clock.now + timedelta(minutes=1)
    run = reboots.run(message)
    assert (run.state, run.message) == (RunState.SUCCEEDED, "the worker was seen again")
    assert results(run) == [Result.OK]
    assert reboots.times(machine.key) == 1
    assert world.bus.names().count("action-resolved") == 1


def test_whoever_is_not_heard_of_again_was_not_rebooted_with_success(reboots: Reboots) -> None:
    (machine,) = with_workers(reboots.world, 1)
    message = reboots.ask(machine.key)
    reboots.after(timedelta(seconds=1))
    reboots.after(SETTLED)
    reboots.after(reboots.timing.comes_back)
    run = reboots.run(message)
    assert (run.state, run.message) == (
        RunState.FAILED,
        "the machine came up, its worker did not",
    )


def test_a_message_that_comes_twice_at_any_time_reboots_nothing_twice(reboots: Reboots) -> None:
    (machine,) = with_workers(reboots.world, 1)
    message = reboots.ask(machine.key)
    for _ in range(4):
        reboots.hand_on(message)
        reboots.world.clock.advance(seconds=16)
        reboots.world.deliver_all(copies=2)
    run = reboots.run(message)
    assert run.verified is not None
    assert results(run) == [Result.OK]
    assert reboots.times(machine.key) == 1


@pytest.mark.parametrize(
    ("error", "wait"),
    [
        (ThrottledError("slow", retry_after=timedelta(seconds=100)), timedelta(seconds=100)),
        (NotReachedError("no route"), timedelta(seconds=30)),
    ],
)
def test_a_cloud_that_did_nothing_is_asked_again_after_its_time_by_the_same_holder(
    reboots: Reboots, error: CloudError, wait: timedelta
) -> None:
    (machine,) = with_workers(reboots.world, 1)
    reboots.world.provider.fail(Method.REBOOT, error)
    message = reboots.ask(machine.key)
    reboots.after(timedelta(seconds=1))
    asked = reboots.world.clock.now
    while not reboots.times(machine.key):
        reboots.after(timedelta(seconds=5))
        reboots.sweep(message)
        assert reboots.run(message).lease is not None
    assert wait <= reboots.world.clock.now - asked <= wait + LEASE
    assert results(reboots.run(message)) == [Result.ERROR, Result.OK]
    assert reboots.leases == 1


@pytest.mark.parametrize(
    ("error", "acts", "result", "words"),
    [
        (CloudUnavailableError("no answer"), True, Result.UNKNOWN, "may have been rebooted"),
        (CloudUnavailableError("no answer"), False, Result.UNKNOWN, "may have been rebooted"),
        (
            ThrottledError("slow", is_doubtful=True),
            True,
            Result.UNKNOWN,
            "may have been rebooted",
        ),
        (NotAuthorizedError("you may not"), False, Result.ERROR, "you may not"),
    ],
)
def test_what_may_have_been_done_is_not_done_again_and_fails_saying_so(
    reboots: Reboots, error: CloudError, acts: bool, result: Result, words: str
) -> None:
    (machine,) = with_workers(reboots.world, 1)
    reboots.world.provider.fail(Method.REBOOT, error, after_acting=acts)
    message = reboots.ask(machine.key)
    reboots.after(timedelta(seconds=1))
    run = reboots.run(message)
    assert run.state is RunState.FAILED
    assert words in run.message
    assert results(run) == [result]
    reboots.hand_on(message)
    reboots.after(LEASE)
    assert reboots.times(machine.key) == int(acts)


def stopped(world: World, key: WorkerKey) -> WorkerKey:
    world.remove(key)
    return key


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (stopped, "the worker is stopping"),
        (lambda _, key: replace(key, worker_id="i-0"), "the worker is unknown"),
    ],
)
def test_who_is_not_there_any_more_is_not_rebooted(
    reboots: Reboots, change: Callable[[World, WorkerKey], WorkerKey], words: str
) -> None:
    (machine,) = with_workers(reboots.world, 1)
    message = reboots.ask(change(reboots.world, machine.key))
    reboots.after(timedelta(seconds=1))
    run = reboots.run(message)
    assert (run.state, run.message, run.attempts) == (RunState.FAILED, words, ())
    assert reboots.times(machine.key) == 0


def test_a_machine_that_is_gone_fails_alone_and_all_are_asked_for_with_one_call(
    reboots: Reboots,
) -> None:
    world = reboots.world
    machines = with_workers(world, 3)
    world.cloud.vanish(machines[1].key)
    messages = [reboots.ask(machine.key, number) for number, machine in enumerate(machines)]
    world.lose("advance")
    assert advance(messages, world.deps) == frozenset()
    states = [reboots.run(message).state for message in messages]
    assert states == [RunState.RUNNING, RunState.FAILED, RunState.RUNNING]
    assert "is gone" in reboots.run(messages[1]).message
    calls = [call for call in world.provider.calls if call.method is Method.REBOOT]
    assert len(calls) == 1


def test_a_cancelled_run_begins_no_further_attempt(reboots: Reboots) -> None:
    (machine,) = with_workers(reboots.world, 1)
    reboots.world.provider.fail(Method.REBOOT, ThrottledError("slow"))
    message = reboots.ask(machine.key)
    reboots.after(timedelta(seconds=1))
    with reboots.world.aside():
        reboots.runs.cancel(message.run_id, by="test/root", now=reboots.world.clock.now)
    reboots.after(LEASE)
    assert reboots.run(message).state is RunState.CANCELLED
    assert reboots.times(machine.key) == 0


def test_whoever_came_back_by_itself_is_not_rebooted(reboots: Reboots) -> None:
    (machine,) = with_workers(reboots.world, 1)
    message = reboots.ask(machine.key, was_silent=True)
    reboots.seen[machine.key] = reboots.world.clock.now + timedelta(seconds=1)
    reboots.after(timedelta(seconds=2))
    run = reboots.run(message)
    assert (run.state, run.message) == (RunState.SUCCEEDED, "the worker came back by itself")
    assert reboots.times(machine.key) == 0


def test_with_little_time_left_nothing_is_begun(reboots: Reboots) -> None:
    world = reboots.world
    (machine,) = with_workers(world, 1)
    message = reboots.ask(machine.key)
    world.lose("advance")
    short = Deadline.after(timedelta(seconds=30))
    assert advance([message], world.deps, short) == frozenset()
    assert reboots.run(message).lease is None
    reboots.after(timedelta(seconds=5))
    assert reboots.times(machine.key) == 1


def test_a_table_that_fails_gets_the_message_again_and_harms_no_other(reboots: Reboots) -> None:
    world = reboots.world
    (machine,) = with_workers(world, 1)
    message = reboots.ask(machine.key)
    world.remove(machine.key)
    world.lose("advance")

    def fail(_: str) -> None:
        raise OSError("no table")

    delete = Terminate(machine.key)
    world.fuse.on_request = lambda name: fail(name) if name == "TransactWriteItems" else None
    assert advance([delete, message], world.deps) == {message}
    assert world.cloud.alive() == []


def steps_of(reboots: Reboots, crash_at: int | None) -> Run:
    """One reboot from its message on, with a death at one step; then time, and no other deaths."""
    world = reboots.world
    (machine,) = with_workers(world, 1)
    message = reboots.ask(machine.key)
    world.fuse.reset(crash_at)
    for _ in range(6):
        mail = list(world.mail)
        try:
            reboots.after(timedelta(seconds=31))
        except CrashError:
            steps = list(world.fuse.steps)
            world.fuse.reset()
            world.fuse.steps.extend(steps)
            world.mail[:] = mail  # SQS has what was not acknowledged come again.
        reboots.sweep(message)
    reboots.seen[machine.key] = world.clock.now + timedelta(minutes=1)
    world.clock.advance(minutes=2)
    return reboots.run(message)


def test_whoever_dies_at_any_step_leaves_one_outcome_and_no_second_reboot(
    new_world: Callable[..., World], action_table: ActionTable
) -> None:
    reboots = Reboots(new_world(), action_table)
    assert steps_of(reboots, None).state is RunState.SUCCEEDED
    count = len(reboots.world.fuse.steps)
    assert count >= 6
    ends = []
    for crash_at in range(1, count + 1):
        reboots = Reboots(new_world(), action_table)
        run = steps_of(reboots, crash_at)
        (machine,) = reboots.world.cloud.alive()
        assert machine.reboots <= 1
        assert reboots.world.row(machine.key).rebooted or not machine.reboots
        if run.state is RunState.SUCCEEDED:
            assert machine.reboots == 1
        else:
            assert run.state is RunState.FAILED
            assert "may have been rebooted" in run.message
        assert reboots.world.bus.names().count("action-resolved") == 1
        ends.append(run.state)
    assert RunState.FAILED in ends
    assert ends.count(RunState.SUCCEEDED) > len(ends) // 2


@pytest.mark.parametrize(
    ("error", "is_marked"),
    [
        (None, True),
        (CloudUnavailableError("no answer"), True),
        (ThrottledError("slow", is_doubtful=True), True),
        (ThrottledError("slow"), False),
        (NotReachedError("no route"), False),
        (NotAuthorizedError("you may not"), False),
    ],
)
def test_who_may_have_been_rebooted_may_register_again_and_nobody_else(
    reboots: Reboots, error: CloudError | None, is_marked: bool
) -> None:
    world = reboots.world
    rebooted, other = with_workers(world, 2)
    if error is not None:
        world.provider.fail(Method.REBOOT, error)
    reboots.ask(rebooted.key)
    reboots.after(timedelta(seconds=1))
    assert world.row(rebooted.key).rebooted == (world.clock.now if is_marked else None)
    assert world.row(other.key).rebooted is None


def test_a_row_that_others_write_at_that_moment_is_marked_all_the_same(
    reboots: Reboots, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = reboots.world
    (machine,) = with_workers(world, 1)
    workers = world.deps.stores.workers
    change, races = workers.change, [machine.key]

    def raced(before: Worker, **changes: Any) -> Worker | None:
        if races:
            assert change(world.row(races.pop()), first_claim=world.clock.now)
        return change(before, **changes)

    reboots.ask(machine.key)
    monkeypatch.setattr(workers, "change", raced)
    reboots.after(timedelta(seconds=1))
    row = world.row(machine.key)
    assert (row.rebooted, row.first_claim) == (world.clock.now, world.clock.now)
    assert reboots.times(machine.key) == 1
