"""Runs as they are kept: one open run a worker, exact limits, and nothing done twice."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from moto.core.botocore_stubber import BotocoreStubber

from tests.action_tables import HOST, Seen, a_run, an_action, host, later, some_runs
from worker_manager.actions import bulks, ledger, records
from worker_manager.actions.course import LEASE, Ending
from worker_manager.actions.entities import (
    Context,
    Kind,
    Lease,
    Result,
    Run,
    RunState,
    Target,
)
from worker_manager.actions.ledger import NoPlaceError, Runs
from worker_manager.core.errors import ConflictError, DuplicateError, NotFoundError
from worker_manager.core.ids import derived_slugid
from worker_manager.store import action_table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from worker_manager.core.model import Json
    from worker_manager.store.tables import Tables


class World:
    """A ledger, who was seen, and what was told."""

    def __init__(self, tables: Tables) -> None:
        self.seen = Seen()
        self.told: list[Json] = []
        self.runs = some_runs(tables, self.seen, announce=self.announce)
        self.leases = 0

    def announce(self, _key: str, events: Sequence[Json]) -> None:
        self.told += events

    def new_lease_id(self) -> str:
        self.leases += 1
        return f"lease-{self.leases}"

    def claim(self, most: int = 1, *, agent: str = "dc1", now: datetime | None = None) -> list[Run]:
        return self.runs.claim(
            agent, most=most, new_lease_id=self.new_lease_id, now=now or later(seconds=1)
        )

    def fail(self, run: Run, *, now: datetime | None = None) -> Run:
        """An attempt, and the end of the run."""
        now, lease_id = now or later(seconds=2), lease_of(run)
        self.runs.begin(run.run_id, lease_id, number=1, method="ssh", now=now)
        return self.runs.resolve(run.run_id, lease_id, state=RunState.FAILED, message="no", now=now)


def lease_of(run: Run) -> str:
    assert run.lease is not None
    return run.lease.lease_id


@pytest.fixture
def world(tables: Tables) -> World:
    return World(tables)


@pytest.fixture
def _atomic_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each request as a whole, as in DynamoDB."""
    lock, answer = threading.Lock(), BotocoreStubber.process_request

    def one_by_one(self: BotocoreStubber, request: Any) -> Any:
        with lock:
            return answer(self, request)

    monkeypatch.setattr(BotocoreStubber, "process_request", one_by_one)


def test_every_field_of_a_run_comes_back_from_its_row(world: World) -> None:
    action = an_action(
        required_scopes=("a", "b"), params={"x": 1.5}, timeout=timedelta(hours=1), is_bulk=True
    )
    run = world.runs.request(
        a_run(action=action, params={"deep": [None, False, ""]}, reason="why", was_silent=True)
    )
    (run,) = world.claim()
    run = world.runs.begin(run.run_id, lease_of(run), number=1, method="ssh", now=later(seconds=2))
    assert world.runs.get(run.run_id) == run
    run = world.runs.end(
        run.run_id, lease_of(run), Ending(1, Result.OK, "hm"), now=later(seconds=3)
    )
    run = world.runs.resolve(
        run.run_id, lease_of(run), state=RunState.SUCCEEDED, message="up", now=later(seconds=4)
    )
    assert world.runs.get(run.run_id) == run
    stored = records.to_stored(run)
    assert records.from_stored(run.run_id, stored.body, run.version) == run
    assert not stored.has_place


def test_asking_twice_is_asking_once_and_another_by_the_same_name_is_refused(
    world: World,
) -> None:
    first = world.runs.request(a_run())
    again = a_run(requested=later(seconds=5), reason="said otherwise")
    assert world.runs.request(again) == first
    assert [event["name"] for event in world.told] == ["action-requested"]

    for other in (
        {"key": host(2)},
        {"action": {"name": "reimage"}},
        {"params": {"x": 1}},
        {"requested_by": "test/other"},
    ):
        with pytest.raises(DuplicateError, match="another one"):
            world.runs.request(a_run(**other))
    world.runs.cancel(first.run_id, by="me", now=later())
    assert world.runs.request(again).state is RunState.CANCELLED


@pytest.mark.usefixtures("_atomic_requests")
def test_of_many_who_ask_at_once_one_makes_the_run(world: World) -> None:
    def ask(number: int) -> str:
        try:
            return world.runs.request(a_run(number // 4)).run_id
        except ConflictError:
            return "refused"

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(16)))

    made = set(answers) - {"refused"}
    assert len(made) == 1
    assert answers.count(made.pop()) == 4
    assert [event["name"] for event in world.told] == ["action-requested"]


def test_a_worker_has_one_open_run_and_a_wider_target_one_of_each_action(world: World) -> None:
    world.runs.request(a_run(1))
    with pytest.raises(ConflictError, match="has an open run"):
        world.runs.request(a_run(2, action={"name": "reimage"}))
    world.runs.request(a_run(3, key=host(2)))

    wide: dict[str, Any] = {"target": Target("hw", "linux")}
    context = Context.WORKER_TYPE
    world.runs.request(a_run(4, **wide, action={"name": "clean", "context": context}))
    world.runs.request(a_run(5, **wide, action={"name": "sweep", "context": context}))
    with pytest.raises(ConflictError, match="has an open run"):
        world.runs.request(a_run(6, **wide, action={"name": "clean", "context": context}))


def test_an_open_run_whose_time_is_over_is_in_nobodys_way(world: World) -> None:
    old = world.runs.request(a_run(1))
    world.runs.request(a_run(2, requested=later(hours=1)))

    assert world.runs.get(old.run_id).state is RunState.TIMED_OUT


def test_what_was_done_lately_is_not_done_again_but_what_was_not_done_is(world: World) -> None:
    def again(number: int, now: datetime) -> Run:
        return world.runs.request(a_run(number, requested=now))

    world.runs.cancel(world.runs.request(a_run(1)).run_id, by="me", now=later())
    again(2, later(seconds=1))
    (run,) = world.claim()
    world.fail(run, now=later(seconds=10))
    with pytest.raises(ConflictError, match="again in 600 s"):
        again(3, later(seconds=10))
    world.runs.request(a_run(4, action={"name": "reimage"}, requested=later(seconds=10)))
    world.runs.cancel(derived_slugid("run", 4), by="me", now=later(seconds=11))
    again(5, later(seconds=610))
    free = {"name": "ping", "cooldown": timedelta()}
    for number in (6, 7):
        world.runs.request(a_run(number, key=host(2), action=free))
        (run,) = world.claim()
        world.fail(run)


def test_an_agent_is_given_its_own_runs_the_oldest_first(world: World) -> None:
    for number in range(4):
        world.runs.request(a_run(number, key=host(number), requested=later(seconds=-number)))
    world.runs.request(a_run(9, key=host(9), action={"agent_id": "dc2"}))
    ours = {"agent_id": None, "kind": Kind.BUILTIN}
    world.runs.request(a_run(8, key=host(8), action=ours))

    first = world.claim(3)
    assert [run.target.worker_id for run in first] == ["host-3", "host-2", "host-1"]
    assert [run.target.worker_id for run in world.claim(3)] == ["host-0"]
    assert world.claim(3) == []
    assert [run.target.worker_id for run in world.claim(3, agent="dc2")] == ["host-9"]
    assert world.claim(agent="worker-manager") == []


@pytest.mark.usefixtures("_atomic_requests")
def test_two_of_the_same_agent_at_once_share_what_there_is(world: World) -> None:
    for number in range(6):
        world.runs.request(a_run(number, key=host(number), action={"most_at_once": 4}))

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: world.claim(6), range(4)))

    taken = [run.run_id for runs in found for run in runs]
    assert len(taken) == len(set(taken)) == 4


def test_as_many_as_may_be_are_under_way_at_once_not_counting_who_only_waits(
    world: World,
) -> None:
    for number in range(4):
        world.runs.request(a_run(number, key=host(number), action={"most_at_once": 2}))
    first, second = world.claim(4)
    assert world.claim(4) == []
    lease = Lease("x", "dc1", later(minutes=2))
    with pytest.raises(NoPlaceError):
        world.runs.take(derived_slugid("run", 3), lease, now=later(seconds=1))

    done = {"message": "", "now": later(seconds=3)}
    world.runs.resolve(first.run_id, lease_of(first), state=RunState.SUCCEEDED, **done)
    assert world.runs.get(first.run_id).state is RunState.RUNNING
    (third,) = world.claim(4)
    world.runs.cancel(second.run_id, by="me", now=later(seconds=3))
    (fourth,) = world.claim(4)
    assert {third.run_id, fourth.run_id}.isdisjoint({first.run_id, second.run_id})
    # The one whose lease ended has its place still.
    again = world.claim(4, now=later(seconds=1) + LEASE)
    assert {run.run_id for run in again} == {third.run_id, fourth.run_id}


def test_a_stale_lease_changes_nothing_any_more(world: World) -> None:
    world.runs.request(a_run())
    (old,) = world.claim()
    world.runs.begin(old.run_id, lease_of(old), number=1, method="ssh", now=later(seconds=2))
    # While it is told of, it is nobody else's.
    world.runs.beat(old.run_id, lease_of(old), log="still there", now=later(seconds=50))
    assert world.claim(now=later(seconds=70)) == []
    (new,) = world.claim(now=later(seconds=110))
    assert [one.result for one in new.attempts] == [Result.UNKNOWN]
    before = world.runs.get(old.run_id)

    writes: tuple[Callable[[], Run], ...] = (
        lambda: world.runs.beat(old.run_id, lease_of(old), now=later(seconds=111)),
        lambda: world.runs.begin(
            old.run_id, lease_of(old), number=2, method="pdu", now=later(seconds=111)
        ),
        lambda: world.runs.end(
            old.run_id, lease_of(old), Ending(1, Result.OK), now=later(seconds=111)
        ),
        lambda: world.runs.resolve(
            old.run_id, lease_of(old), state=RunState.FAILED, message="", now=later(seconds=111)
        ),
    )
    for write in writes:
        with pytest.raises(ConflictError):
            write()
    assert world.runs.get(old.run_id) == before


def test_a_worker_that_comes_back_by_itself_ends_its_run_before_anything_is_done(
    world: World,
) -> None:
    world.runs.request(a_run(was_silent=True))
    (run,) = world.claim()
    world.seen[HOST] = later(seconds=5)

    with pytest.raises(ConflictError, match="came back by itself"):
        world.runs.begin(run.run_id, lease_of(run), number=1, method="ssh", now=later(seconds=6))
    over = world.runs.get(run.run_id)
    assert (over.state, over.attempts) == (RunState.SUCCEEDED, ())
    assert [event["name"] for event in world.told] == ["action-requested", "action-resolved"]
    assert world.told[1]["detail"]["message"] == "the worker came back by itself"
    world.runs.request(a_run(2, requested=later(seconds=7)))


def test_a_rebooted_worker_is_waited_for_and_then_is_or_is_not_back(world: World) -> None:
    for number in (1, 2):
        world.runs.request(a_run(number, key=host(number)))
    assert world.seen.watched == dict.fromkeys((host(1), host(2)), later(minutes=100))
    for run in world.claim(2):
        world.runs.resolve(
            run.run_id, lease_of(run), state=RunState.SUCCEEDED, message="up", now=later(minutes=1)
        )
    world.seen[host(1)] = later(minutes=2)
    world.seen[host(2)] = later(seconds=-5)

    first, second = (
        world.runs.settle(derived_slugid("run", n), now=later(minutes=3)) for n in (1, 2)
    )
    assert (first.state, second.state) == (RunState.SUCCEEDED, RunState.RUNNING)
    second = world.runs.settle(second.run_id, now=later(minutes=31))
    assert (second.state, second.message) == (
        RunState.FAILED,
        "the machine came up, its worker did not",
    )


def test_runs_are_listed_by_worker_and_by_queue_the_newest_first_a_page_at_a_time(
    world: World,
) -> None:
    for number in range(5):
        now = later(minutes=number)
        run = world.runs.request(a_run(number, requested=now, key=host(number % 2)))
        world.runs.cancel(run.run_id, by="me", now=now)
    wide = {"target": Target("hw", "linux"), "requested": later(minutes=9)}
    world.runs.request(a_run(9, **wide, action={"context": Context.WORKER_TYPE}))

    def pages(read: Any) -> list[str]:
        found, before = [], ""
        while True:
            runs, following = read(limit=2, before=before)
            found += [run.run_id for run in runs]
            if following is None:
                return found
            before = following

    ids = [derived_slugid("run", number) for number in range(10)]
    mine = Target.of_worker(host(0))
    assert pages(lambda **how: world.runs.of_target(mine, **how)) == [ids[4], ids[2], ids[0]]
    assert pages(lambda **how: world.runs.of_queue("hw/linux", **how)) == [
        ids[number] for number in (9, 4, 3, 2, 1, 0)
    ]
    assert [run.run_id for run in world.runs.open(limit=9)[0]] == [ids[9]]


def a_bulk(world: World, size: int) -> str:
    bulk = derived_slugid("bulk")
    bulks.begin(world.runs, bulk, "reboot all", now=later())
    for number in range(size):
        world.runs.request(a_run(number, key=host(number), bulk_id=bulk))
    return bulk


def stop(world: World, bulk: str, *, is_late: bool = False) -> tuple[int, bool]:
    now = later(minutes=1)
    return bulks.stop(world.runs, bulk, by="me", now=now, is_late=lambda: is_late)


def test_a_stopped_bulk_cancels_what_is_open_and_has_no_further_runs(world: World) -> None:
    bulk = a_bulk(world, 3)
    over, _ = world.claim(2)
    world.fail(over)

    assert stop(world, bulk) == (2, True)
    assert stop(world, bulk) == (0, True)
    with pytest.raises(ConflictError, match="was stopped"):
        world.runs.request(a_run(7, key=host(7), bulk_id=bulk))
    with pytest.raises(ConflictError, match="was stopped"):
        bulks.begin(world.runs, bulk, "reboot all", now=later())
    with pytest.raises(DuplicateError):
        bulks.begin(world.runs, bulk, "reboot others", now=later())
    with pytest.raises(NotFoundError):
        stop(world, derived_slugid("no"))
    assert world.runs.get(over.run_id).state is RunState.FAILED


def test_a_large_bulk_is_stopped_step_by_step_and_nobody_takes_up_the_rest(world: World) -> None:
    bulk = a_bulk(world, 2)
    assert stop(world, bulk, is_late=True) == (1, False)
    assert world.claim(2) == []
    assert stop(world, bulk, is_late=True) == (1, True)


def test_those_that_only_wait_for_their_worker_keep_nobody_from_the_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(2):
        world.runs.request(a_run(number, key=host(number), requested=later(seconds=number)))
    (first,) = world.claim(now=later(seconds=2))
    how: dict[str, Any] = {"state": RunState.SUCCEEDED, "message": "", "now": later(seconds=3)}
    world.runs.resolve(first.run_id, lease_of(first), **how)

    monkeypatch.setattr(ledger, "LOOKED_AT", 1)
    (second,) = world.claim(now=later(seconds=4))
    assert second.run_id != first.run_id
    world.seen[host(0)] = later(seconds=5)
    assert world.runs.settle(first.run_id, now=later(seconds=6)).state is RunState.SUCCEEDED


def test_many_that_must_wait_for_a_place_keep_nobody_from_another_place(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(action_table, "LINES_AT_ONCE", 2)
    one = {"action": {"most_at_once": 1}}
    for number in range(4):
        at = later(seconds=number - 9)
        world.runs.request(a_run(number, key=host(number), requested=at, **one))
    there = replace(host(9), pool_id="hw/other")
    world.runs.request(a_run(9, key=there, **one))
    assert [run.target.key for run in world.claim(4)] == [host(0), there]


def test_a_crash_between_any_two_calls_leaves_a_run_that_the_next_one_takes_up(
    world: World,
) -> None:
    """Whoever stops anywhere: the next one sees what may have been done, and goes on after it."""
    for stop in range(4):
        asked = {"requested": later(seconds=stop - 9), "action": {"most_at_once": 9}}
        world.runs.request(a_run(stop, key=host(stop), **asked))
        (run,) = world.claim()
        how: dict[str, Any] = {"now": later(seconds=2)}
        if stop > 0:
            world.runs.begin(run.run_id, lease_of(run), number=1, method="ssh", **how)
        if stop > 1:
            world.runs.end(run.run_id, lease_of(run), Ending(1, Result.NO_CHANGE), **how)
        if stop > 2:
            world.runs.begin(run.run_id, lease_of(run), number=2, method="pdu", **how)

    found = world.claim(4, now=later(minutes=2))
    assert [[str(one.result) for one in run.attempts] for run in found] == [
        [],
        ["unknown"],
        ["no-change"],
        ["no-change", "unknown"],
    ]
    assert [run.state for run in found] == [RunState.CLAIMED, *[RunState.RUNNING] * 3]


def test_what_the_outbox_holds_of_a_run_is_written_with_it(tables: Tables) -> None:
    told: list[str] = []
    runs: Runs = some_runs(tables, announce=lambda key, _events: told.append(key))
    run = runs.request(a_run())
    runs.cancel(run.run_id, by="me", now=later(seconds=1))

    waiting = [item.worker_pool_id for item in tables.providers.query("#outbox")]
    assert waiting == told
    assert len(told) == 2


def test_a_run_nobody_knows_is_not_found(world: World) -> None:
    with pytest.raises(NotFoundError):
        world.runs.settle(derived_slugid("none"), now=later())
