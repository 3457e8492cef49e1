"""Many calls in bounded time."""

from __future__ import annotations

from datetime import timedelta

from worker_manager.core.errors import (
    BadCredentialsError,
    CloudError,
    OutOfCapacityError,
    ThrottledError,
)
from worker_manager.providers.azure.visit import NOT_BEGUN, Visit


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_answers_and_errors_come_in_the_order_of_the_items() -> None:
    def call(item: int) -> int:
        if item % 2:
            raise OutOfCapacityError("no", code=str(item))
        return item * 10

    answers = Visit().each(call, range(40))
    assert [answer if isinstance(answer, int) else answer.code for answer in answers] == [
        str(item) if item % 2 else item * 10 for item in range(40)
    ]


def test_no_call_is_begun_that_could_not_end_in_time() -> None:
    clock = Clock()
    visit = Visit(monotonic=clock)
    began: list[float] = []

    def call(_: int) -> timedelta:
        began.append(clock.now)
        clock.now += 4
        return visit.timeout()

    answers = [answer for item in range(8) for answer in visit.each(call, [item])]
    assert began == [0, 4, 8, 12, 16]
    left = [answer for answer in answers if isinstance(answer, ThrottledError)]
    assert {(error.code, error.retry_after) for error in left} == {
        (NOT_BEGUN, timedelta(seconds=1))
    }
    assert len(left) == 3


def test_a_late_call_waits_less_for_its_answer() -> None:
    clock = Clock()
    visit = Visit(monotonic=clock, read_timeout=timedelta(seconds=20))
    assert visit.timeout() == timedelta(seconds=20)
    clock.now = 10
    assert visit.timeout() == timedelta(seconds=12)


def test_short_timeouts_leave_more_time_to_begin() -> None:
    clock = Clock()
    visit = Visit(monotonic=clock, read_timeout=timedelta(seconds=2))
    clock.now = 19
    assert visit.each(lambda item: item, [1]) == [1]


def test_waiting_and_bad_credentials_end_the_visit() -> None:
    for error in (ThrottledError("slowly"), BadCredentialsError("who?")):
        visit, asked = Visit(), list[int]()

        def call(item: int, error: CloudError = error, asked: list[int] = asked) -> None:
            asked.append(item)
            raise error

        assert visit.each(call, [1]) == [error]
        assert visit.each(call, [2, 3]) == [error, error]
        assert asked == [1]
