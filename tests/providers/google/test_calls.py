"""Calls side by side, all over in time."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from worker_manager.core.errors import CloudError, ThrottledError
from worker_manager.providers.google.calls import PARALLEL, Calls

if TYPE_CHECKING:
    from worker_manager.providers.google.calls import TimeLeft


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def timeouts(time_left: TimeLeft) -> Any:
    """Connect and read timeouts, as the SDK hands them to its HTTP session."""
    return time_left()(lambda timeout: timeout)()


def test_whoever_begins_late_gets_less_time_and_who_is_too_late_waits() -> None:
    clock = Clock()
    moments = [0, 1, 10, 17, 17.5]

    def ask(moment: float, time_left: TimeLeft) -> Any:
        clock.now = 100 + moment
        return timeouts(time_left)

    found: list[Any] = []
    calls = Calls(clock=clock)
    for moment in moments:
        clock.now = 100.0
        found += calls.side_by_side(ask, [moment])

    assert found[:4] == [(3, 20), (3, 20), (3, 12), (3, 5)]
    assert isinstance(found[4], ThrottledError)
    assert found[4].retry_after == timedelta(seconds=1)


def test_a_throttled_call_ends_the_asking() -> None:
    asked: list[int] = []
    gate = threading.Barrier(PARALLEL)

    def ask(number: int, _: TimeLeft) -> int:
        asked.append(number)
        if number < PARALLEL:
            gate.wait(5)
        raise ThrottledError("too fast", retry_after=timedelta(seconds=30))

    found = Calls().side_by_side(ask, range(100))

    assert len(found) == 100
    assert all(isinstance(one, ThrottledError) and one.retry_after.seconds == 30 for one in found)
    assert len(asked) < 2 * PARALLEL


def test_one_calls_error_is_its_own() -> None:
    def ask(number: int, _: TimeLeft) -> int:
        if number == 1:
            raise CloudError("no")
        return number

    zero, one, two = Calls().side_by_side(ask, [0, 1, 2])

    assert (zero, two) == (0, 2)
    assert isinstance(one, CloudError)
