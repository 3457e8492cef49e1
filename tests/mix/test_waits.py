"""Waiting as it is replayed, against waiting as it was."""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.mix.simulation import START, bursts, office, tasks_of, work
from worker_manager.mix.load import SLOT, WEEK, Sample
from worker_manager.mix.waits import Replay

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

DAYS = 14
END = START + timedelta(days=DAYS)
NO_TARGET = timedelta()


def replay(samples: Sequence[Sample], minutes: float) -> Replay:
    return Replay.of(samples, service=timedelta(minutes=minutes), now=samples[-1].at)


def steady(pending: int, claimed: int, slots: int = 2016) -> list[Sample]:
    return [Sample(START + n * SLOT, pending, claimed, claimed, 0) for n in range(slots)]


@pytest.mark.parametrize(
    ("rate", "minutes", "had"),
    [
        (lambda _: office(60), 30, 22),
        (lambda rng: bursts(120, 10, every=24, rng=rng), 20, 12),
        (lambda _: office(300), 2, 9),
        (lambda _: office(20, 12), 90, 30),
    ],
    ids=["seasons", "bursts", "short tasks", "long tasks"],
)
def test_waits_with_other_numbers_of_machines_are_foreseen(
    rate: Callable[[Random], Callable[[float], float]], minutes: float, had: int
) -> None:
    tasks = tasks_of(rate(Random(1)), minutes=minutes, days=DAYS, rng=Random(2))
    past = replay(work(tasks, had).samples(had, days=DAYS), minutes)

    for machines in (had - 2, had, had + 2):
        waited = work(tasks, machines).waited / 2
        foreseen = past.waits(machines).weekly.total_seconds()
        # The last week counts twice: of both weeks alike, this is no more than near.
        assert foreseen == pytest.approx(waited, rel=0.35, abs=36_000)


def test_a_queue_that_stays_as_it_is_is_replayed_as_it_was() -> None:
    waits = replay(steady(pending=7, claimed=10), 30).waits(10)

    assert waits.weekly == pytest.approx(7 * WEEK, rel=1e-6)
    assert waits.worst == pytest.approx(timedelta(minutes=30) * 7 / 10, rel=1e-6)


def test_demand_shows_also_while_all_machines_are_at_work() -> None:
    growing = [Sample(START + n * SLOT, n, 10, 10, 0) for n in range(2016)]

    # One task in five minutes more than ten machines do, of tasks that take an hour.
    assert replay(growing, 60).demand == pytest.approx(22, rel=0.01)


def test_waiting_within_the_target_counts_a_tenth() -> None:
    past = replay(steady(pending=10, claimed=10), 30)

    whole = past.felt(10, target=NO_TARGET)
    assert past.felt(10, target=timedelta(hours=1)) == pytest.approx(whole / 10)
    # A queue of five is a quarter of an hour for ten machines.
    assert past.felt(10, target=timedelta(minutes=15)) == pytest.approx(whole * 0.55)


def test_a_pool_without_machines_waits_for_ever() -> None:
    past = replay(steady(pending=0, claimed=2), 30)

    assert past.waits(0).worst is None
    assert past.waits(3).worst == timedelta()


def test_the_last_week_counts_twice_as_much_as_the_one_before() -> None:
    busy, idle = steady(pending=9, claimed=10, slots=1990), steady(0, 4, slots=1990)

    def weekly(first: list[Sample], last: list[Sample]) -> timedelta:
        samples = first + [one._replace(at=one.at + WEEK) for one in last]
        past = Replay.of(samples, service=timedelta(minutes=30), now=START + 2 * WEEK)
        return past.waits(10).weekly

    assert weekly(busy, idle) == pytest.approx(3 * WEEK, rel=0.02)
    assert weekly(idle, busy) == pytest.approx(6 * WEEK, rel=0.02)


def test_missing_samples_are_taken_to_be_as_the_ones_before_and_long_gaps_are_left_out() -> None:
    samples = steady(pending=7, claimed=10)
    holes = [one for number, one in enumerate(samples) if number % 10 != 3]
    pause = samples[:500] + samples[600:]

    for some in (holes, pause):
        waits = replay(some, 30).waits(10)
        assert waits.weekly == pytest.approx(7 * WEEK, rel=1e-6)
    assert len(replay(holes, 5).came) == len(samples)


def test_more_machines_never_make_tasks_wait_longer() -> None:
    rng = Random(3)
    tasks = tasks_of(bursts(60, 5, every=12, rng=rng), minutes=25, days=DAYS, rng=rng)
    past = replay(work(tasks, 10).samples(10, days=DAYS), 25)

    felt = [past.felt(number, target=NO_TARGET) for number in range(30)]
    assert felt == sorted(felt, reverse=True)
