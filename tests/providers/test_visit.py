"""Many calls in bounded time."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest

from worker_manager.core.errors import (
    BadCredentialsError,
    CloudError,
    OutOfCapacityError,
    ThrottledError,
)
from worker_manager.providers.visit import NOT_BEGUN, Visit, Visits

PARALLEL = 8


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def visits(**given: Any) -> Visits:
    """Visits with some times given, in seconds."""
    times = ("read_timeout", "least_read")
    facts: dict[str, Any] = {
        name: timedelta(seconds=x) if name in times else x for name, x in given.items()
    }
    return Visits(parallel=PARALLEL, **facts)


def test_answers_and_errors_come_in_the_order_of_the_items() -> None:
    def call(item: int) -> int:
        if item % 2:
            raise OutOfCapacityError("no", code=str(item))
        return item * 10

    answers = visits().begin().each(call, range(40))
    assert [answer if isinstance(answer, int) else answer.code for answer in answers] == [
        str(item) if item % 2 else item * 10 for item in range(40)
    ]


@pytest.mark.parametrize(
    ("given", "begun"),
    [
        ({}, {0: 20, 1: 20, 10: 12, 17: 5, 17.5: None, 30: None}),
        ({"read_timeout": 2}, {0: 2, 19: 2, 20.5: None}),
        ({"least_read": 20}, {0: 20, 2: 20, 3: None}),
    ],
)
def test_who_begins_late_waits_less_for_an_answer_and_who_is_too_late_is_not_begun(
    given: dict[str, float], begun: dict[float, float | None]
) -> None:
    clock = Clock()
    all_visits = visits(monotonic=clock, **given)
    for moment, expected in begun.items():
        clock.now = 100.0
        visit = all_visits.begin()
        clock.now += moment
        (found,) = visit.each(Visit.timeout, [visit])
        if expected is not None:
            assert found == timedelta(seconds=expected)
            continue
        assert isinstance(found, ThrottledError)
        assert (found.code, found.retry_after) == (NOT_BEGUN, timedelta(seconds=1))


def test_a_second_call_about_one_thing_has_the_time_that_is_left() -> None:
    clock = Clock()
    visit = visits(monotonic=clock).begin()
    asked: list[str] = []

    def call(item: str) -> None:
        asked.append(item)
        clock.now += 20
        visit.timeout()

    first, second = [visit.each(call, [item])[0] for item in "ab"]
    assert isinstance(first, ThrottledError)
    assert second is first
    assert asked == ["a"]


@pytest.mark.parametrize("error", [ThrottledError("slowly"), BadCredentialsError("who?")])
def test_waiting_and_bad_credentials_end_the_visit(error: CloudError) -> None:
    visit, asked = visits().begin(), list[int]()
    gate = threading.Barrier(PARALLEL)

    def call(item: int) -> None:
        asked.append(item)
        gate.wait(60)
        raise error

    assert visit.each(call, range(100)) == [error] * 100
    assert len(asked) == PARALLEL
    assert visit.each(call, [1]) == [error]
    assert len(asked) == PARALLEL


def test_all_visits_of_a_provider_together_make_so_many_calls_at_once() -> None:
    ours, busy, most = visits(), list[int](), list[int]()

    def call(item: int) -> None:
        busy.append(item)
        most.append(len(busy))
        busy.remove(item)

    begun = [threading.Thread(target=ours.begin().each, args=(call, range(50))) for _ in range(4)]
    for thread in begun:
        thread.start()
    for thread in begun:
        thread.join()
    assert max(most) <= PARALLEL
    assert len(most) == 200
