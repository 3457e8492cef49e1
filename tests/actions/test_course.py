"""How runs go on, as values: leases, attempts, sightings and time."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.action_tables import a_run, later
from worker_manager.actions import course
from worker_manager.actions.course import COMES_BACK, LEASE, UNTAKEN, Beginning, Ending
from worker_manager.actions.entities import Lease, Result, Run, RunState
from worker_manager.core.errors import ConflictError

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

MINUTE = timedelta(minutes=1)


def lease(number: int = 1, *, at: Any = None) -> Lease:
    return Lease(f"lease-{number}", "dc1", (at or later()) + LEASE)


def taken(run: Run | None = None, *, at: Any = None) -> Run:
    return course.take(run or a_run(), lease(at=at), now=at or later())


def tried(run: Run | None = None, method: str = "ssh", *, at: Any = None) -> Run:
    run = run or taken()
    number = len(run.attempts) + 1
    return course.begin(run, "lease-1", Beginning(number, method), now=at or later())


def test_a_run_goes_through_its_states_and_all_of_it_is_in_its_log() -> None:
    run = tried()
    run = course.end(run, "lease-1", Ending(1, Result.NO_CHANGE, "still up"), now=later(seconds=9))
    run = tried(run, "ipmi-cycle", at=later(seconds=10))
    run = course.end(run, "lease-1", Ending(2, Result.OK), now=later(seconds=30))
    run = course.resolve(
        run, "lease-1", state=RunState.SUCCEEDED, message="up", now=later(seconds=40)
    )

    assert (run.state, run.verified) == (RunState.RUNNING, later(seconds=40))
    run = course.settle(run, seen=later(seconds=90), now=later(seconds=100))
    assert (run.state, run.message) == (RunState.SUCCEEDED, "the worker was seen again")
    assert [line.text for line in run.log] == [
        "taken up by dc1",
        "attempt 1 begins: ssh",
        "attempt 1 (ssh): no-change: still up",
        "attempt 2 begins: ipmi-cycle",
        "attempt 2 (ipmi-cycle): ok",
        "done, the worker is waited for: up",
        "succeeded: the worker was seen again",
    ]


def test_what_the_last_one_had_begun_is_unknown_to_the_next_and_not_done_again() -> None:
    run = course.take(tried(), lease(2, at=later(minutes=2)), now=later(minutes=2))

    assert [(one.method, one.result) for one in run.attempts] == [("ssh", Result.UNKNOWN)]
    assert run.state is RunState.RUNNING
    with pytest.raises(ConflictError, match="number 2"):
        course.begin(run, "lease-2", Beginning(1, "ssh"), now=later(minutes=2))
    writes: tuple[Callable[[], Run], ...] = (
        lambda: course.hold(run, "lease-1", now=later(minutes=2)),
        lambda: course.begin(run, "lease-1", Beginning(2, "pdu"), now=later(minutes=2)),
        lambda: course.end(run, "lease-1", Ending(1, Result.OK), now=later(minutes=2)),
        lambda: course.resolve(
            run, "lease-1", state=RunState.FAILED, message="", now=later(minutes=2)
        ),
    )
    for late in writes:
        with pytest.raises(ConflictError, match="somebody else"):
            late()


def test_saying_the_same_again_is_the_same() -> None:
    run = tried()
    assert course.begin(run, "lease-1", Beginning(1, "ssh"), now=later(seconds=3)) is run
    with pytest.raises(ConflictError, match="has not ended"):
        course.begin(run, "lease-1", Beginning(2, "pdu"), now=later(seconds=3))
    ended = course.end(run, "lease-1", Ending(1, Result.OK), now=later(seconds=3))
    assert course.end(ended, "lease-1", Ending(1, Result.OK), now=later(seconds=4)) is ended
    with pytest.raises(ConflictError, match="not under way"):
        course.end(ended, "lease-1", Ending(1, Result.ERROR), now=later(seconds=4))
    for state in (RunState.SUCCEEDED, RunState.FAILED):
        over = course.resolve(ended, "lease-1", state=state, message="x", now=later(seconds=5))
        again = course.resolve(over, "lease-1", state=state, message="x", now=later(seconds=9))
        assert again is over
    over = course.cancel(run, by="me", reason="", now=later(seconds=3))
    assert course.cancel(over, by="you", reason="", now=later(seconds=4)) is over


def test_what_ends_while_it_is_tried_says_so_of_the_attempt() -> None:
    def result(run: Run) -> Result | None:
        return run.attempts[0].result

    run = tried()
    end: dict[str, Any] = {"message": "", "now": later(seconds=5)}
    assert result(course.resolve(run, "lease-1", state=RunState.FAILED, **end)) is Result.ERROR
    assert result(course.resolve(run, "lease-1", state=RunState.SUCCEEDED, **end)) is Result.OK
    assert result(course.cancel(run, by="me", reason="", now=later())) is Result.UNKNOWN
    timed_out = course.settle(run, seen=None, now=later(minutes=10))
    assert (timed_out.state, result(timed_out)) == (RunState.TIMED_OUT, Result.UNKNOWN)


@pytest.mark.parametrize(
    ("run", "seen", "after", "state", "message"),
    [
        (a_run(), None, UNTAKEN - MINUTE, RunState.QUEUED, ""),
        (a_run(), None, UNTAKEN, RunState.TIMED_OUT, "nobody took it up in time"),
        (taken(), None, 9 * MINUTE, RunState.CLAIMED, ""),
        (taken(), None, 10 * MINUTE, RunState.TIMED_OUT, "it took too long"),
        (a_run(), 5 * MINUTE, 6 * MINUTE, RunState.QUEUED, ""),
        (
            a_run(was_silent=True),
            5 * MINUTE,
            6 * MINUTE,
            RunState.SUCCEEDED,
            "the worker came back by itself",
        ),
        (a_run(was_silent=True), -MINUTE, 6 * MINUTE, RunState.QUEUED, ""),
        (tried(taken(a_run(was_silent=True))), MINUTE, 2 * MINUTE, RunState.RUNNING, ""),
        (replace(taken(), verified=later()), None, COMES_BACK - MINUTE, RunState.CLAIMED, ""),
        (replace(taken(), verified=later()), -MINUTE, MINUTE, RunState.CLAIMED, ""),
        (
            replace(taken(), verified=later()),
            None,
            COMES_BACK,
            RunState.FAILED,
            "the machine came up, its worker did not",
        ),
    ],
)
def test_what_time_and_sightings_do(
    run: Run, seen: timedelta | None, after: timedelta, state: RunState, message: str
) -> None:
    heard = later() + seen if seen is not None else None
    settled = course.settle(run, seen=heard, now=later() + after)

    assert (settled.state, settled.message) == (state, message)
    assert course.settle(settled, seen=heard, now=later() + after) is settled


def test_a_worker_that_came_back_after_an_attempt_is_told_so() -> None:
    run = tried(taken(a_run(was_silent=True)))
    run = course.end(run, "lease-1", Ending(1, Result.OK), now=later(seconds=5))

    over = course.settle(run, seen=later(seconds=9), now=later(seconds=9))
    assert over.message == "the worker was seen again after attempt 1 (ssh)"
    with pytest.raises(ConflictError, match="is over"):
        course.begin(over, "lease-1", Beginning(2, "pdu"), now=later(seconds=10))


def test_only_reboots_of_workers_wait_for_the_worker() -> None:
    run = taken(a_run(action={"name": "reimage"}))
    over = course.resolve(run, "lease-1", state=RunState.SUCCEEDED, message="", now=later())

    assert over.state is RunState.SUCCEEDED


def test_a_log_keeps_its_latest_lines() -> None:
    run = a_run()
    for number in range(40):
        run = course.said(run, f"{number:04d}" + "x" * 1000, now=later(seconds=number))

    assert 25 < len(run.log) < 40
    assert run.log[-1].text.startswith("0039")
    assert sum(len(line.text) for line in run.log) <= course.LONGEST_LOG


class Hands:
    """Three agents that know only their own lease, and everybody else who is at a run."""

    def __init__(self, run: Run) -> None:
        self.run, self.now = run, later()
        self.seen: datetime | None = None
        self.leases: dict[int, str] = {}
        self.made: list[int] = []

    def step(self, what: str, who: int) -> None:
        with suppress(ConflictError):
            self.run = course.settle(self.run, seen=self.seen, now=self.now)
            self.run = getattr(self, what)(who)

    def _mine(self, who: int) -> str:
        return self.leases.get(who, "none")

    def take(self, who: int) -> Run:
        name = f"lease-{len(self.run.log)}-{self.now}"
        run = course.take(self.run, Lease(name, str(who), self.now + LEASE), now=self.now)
        self.leases[who] = name
        return run

    def begin(self, who: int) -> Run:
        number = len(self.run.attempts) + 1
        run = course.begin(self.run, self._mine(who), Beginning(number, "pdu"), now=self.now)
        self.made.append(number)
        return run

    def end(self, who: int) -> Run:
        ending = Ending(len(self.run.attempts), Result.NO_CHANGE)
        return course.end(self.run, self._mine(who), ending, now=self.now)

    def hold(self, who: int) -> Run:
        return course.hold(self.run, self._mine(who), now=self.now)

    def succeed(self, who: int) -> Run:
        how: Any = {"state": RunState.SUCCEEDED, "message": ""}
        return course.resolve(self.run, self._mine(who), **how, now=self.now)

    def fail(self, who: int) -> Run:
        how: Any = {"state": RunState.FAILED, "message": ""}
        return course.resolve(self.run, self._mine(who), **how, now=self.now)

    def cancel(self, who: int) -> Run:
        return course.cancel(self.run, by=str(who), reason="", now=self.now)

    def see(self, _who: int) -> Run:
        self.seen = self.now
        return self.run


WHAT = st.sampled_from(["take", "begin", "end", "hold", "succeed", "fail", "cancel", "see"])
STEPS = st.lists(st.tuples(WHAT, st.integers(0, 2), st.integers(0, 90)), max_size=40)


@given(steps=STEPS, was_silent=st.booleans())
def test_however_many_hands_are_at_it_nothing_is_begun_twice(
    steps: list[tuple[str, int, int]], *, was_silent: bool
) -> None:
    hands = Hands(a_run(was_silent=was_silent))
    for what, who, pause in steps:
        hands.now += timedelta(seconds=pause)
        before = hands.run
        hands.step(what, who)
        run = hands.run
        assert run == before or not before.state.is_final
        assert len(hands.made) == len(set(hands.made)) == len(run.attempts)
        assert all(attempt.result for attempt in run.attempts[:-1])
        assert not (run.state.is_final and run.open_attempt)
        assert (run.ended is not None) == run.state.is_final
