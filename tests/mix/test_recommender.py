"""What is recommended, carried out in a simulation of the month after."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mix.simulation import START, bursts, machines_of, office, pool_of, tasks_of, work
from worker_manager.mix.entities import Machine, Pool, Wishes
from worker_manager.mix.load import SLOT, Sample
from worker_manager.mix.recommender import SHARE, recommend
from worker_manager.mix.waits import LONGEST

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.mix.simulation import Task
    from worker_manager.mix.entities import Recommendation
    from worker_manager.mix.load import Loads

    Rate = Callable[[float], float]

MONTH = 28
END = START + timedelta(days=MONTH)


@dataclass(frozen=True)
class Fleet:
    """Pools with a month behind them, and the tasks of the next."""

    pools: list[Pool]
    machines: list[Machine]
    future: dict[str, list[Task]]

    @classmethod
    def of(
        cls, *kinds: tuple[Rate, float, int], seed: int = 1, wishes: Sequence[Wishes] = ()
    ) -> Fleet:
        """Each of a rate, minutes that tasks take, and machines."""
        fleet = cls([], [], {})
        for number, (rate, minutes, had) in enumerate(kinds):
            name, rng = f"racks/p{number}", Random(f"{seed}/{number}")
            past = work(tasks_of(rate, minutes=minutes, days=MONTH, rng=rng), had)
            wish = wishes[number] if wishes else Wishes()
            samples = past.samples(had, days=MONTH)
            fleet.pools.append(pool_of(name, samples, minutes, wish))
            fleet.machines.extend(machines_of(name, had, wish.classes[0]))
            fleet.future[name] = tasks_of(rate, minutes=minutes, days=MONTH, rng=rng)
        return fleet

    def recommended(self) -> Recommendation:
        return recommend(self.pools, self.machines, now=END)

    def waited(self, has: dict[str, int]) -> float:
        """What all tasks of the next month wait, in hours."""
        return sum(work(tasks, has[name]).waited for name, tasks in self.future.items()) / 3600


def now_of(mix: Recommendation) -> dict[str, int]:
    return {line.queue_id: line.now for line in mix.lines}


def proposed(mix: Recommendation) -> dict[str, int]:
    return {line.queue_id: line.proposed for line in mix.lines}


def shifting(before: float, after: float) -> Rate:
    """Demand that went elsewhere ten days ago, and stays there."""
    return lambda hour: before if hour < 24 * 18 else after


def at_random(rng: Random) -> tuple[Rate, float, int]:
    """A pool of which nobody thought."""
    if rng.random() < 0.6:
        rate = office(rng.uniform(20, 80), rng.uniform(1, 25))
    else:
        rate = bursts(rng.uniform(40, 150), rng.uniform(3, 20), every=24, rng=rng)
    return rate, rng.choice([5.0, 20.0, 45.0]), rng.randint(8, 40)


MONTHS = {
    "seasonal": [(office(60), 30, 25), (office(60, first_hour=20), 30, 35)],
    "bursty": [(bursts(100, 5, every=24, rng=Random(5)), 20, 10), (lambda _: 20, 20, 30)],
    "saturated": [(office(80, 5), 30, 20), (lambda _: 6, 30, 40)],
    "short of machines": [(office(60, 10), 30, 16), (office(60, 10), 30, 24)],
    "short tasks": [(office(150), 4, 9), (office(30), 4, 21)],
    "shifted": [(shifting(40, 4), 30, 30), (shifting(4, 40), 30, 15)],
}


@pytest.mark.parametrize("name", MONTHS)
def test_what_is_recommended_waits_less(name: str) -> None:
    fleet = Fleet.of(*MONTHS[name])

    mix = fleet.recommended()

    assert mix.moves, mix.reason
    assert fleet.waited(proposed(mix)) < 0.95 * fleet.waited(now_of(mix))


@pytest.mark.parametrize("seed", range(4))
def test_of_fleets_at_random_it_waits_less_or_nothing_is_recommended(seed: int) -> None:
    rng = Random(seed)
    fleet = Fleet.of(*(at_random(rng) for _ in range(3)), seed=seed)

    mix = fleet.recommended()

    if mix.moves:
        assert fleet.waited(proposed(mix)) < fleet.waited(now_of(mix))
    else:
        assert proposed(mix) == now_of(mix)


@pytest.mark.parametrize(
    ("kinds", "wishes", "reason"),
    [
        ([(office(40), 30, 30)] * 2, (), "no move would save more"),
        ([(office(70), 30, 24), (office(10), 30, 30)], "xy", "no move would save more"),
        ([(office(70), 30, 24)], (), "no move would save more"),
        ([], (), "of no pool"),
    ],
    ids=["in balance", "incompatible", "alone", "nobody takes part"],
)
def test_nothing_is_recommended_where_nothing_would_help(
    kinds: list[tuple[Rate, float, int]], wishes: str, reason: str
) -> None:
    mix = Fleet.of(*kinds, wishes=[Wishes(classes=(of,)) for of in wishes]).recommended()

    assert not mix.moves
    assert proposed(mix) == now_of(mix)
    assert mix.reason.startswith(reason)


def test_what_was_recorded_is_as_good_as_what_is_in_memory(loads: Loads) -> None:
    fleet = Fleet.of(*MONTHS["saturated"])
    first = END - timedelta(hours=8)
    recorded = []
    for pool in fleet.pools:
        early = [sample for sample in pool.samples if sample.at < first]
        for sample in pool.samples[len(early) :]:
            loads.note(pool.queue_id, sample)
        found = loads.of(pool.queue_id, since=START, until=END)
        recorded.append(replace(pool, samples=early + found))

    assert recommend(recorded, fleet.machines, now=END) == fleet.recommended()


def flat(
    name: str, load: int, machines: int, wishes: Wishes | None = None, days: int = MONTH
) -> tuple[Pool, list[Machine]]:
    """A pool that is asked for the same all the time, one half of a day more than the other."""
    samples = []
    for number in range(days * 288):
        wanted = load if number % 288 < 144 else load // 2
        claimed = min(wanted, machines)
        samples.append(Sample(START + number * SLOT, wanted - claimed, claimed, machines, 0))
    pool = pool_of(name, samples, 60, wishes)
    return pool, machines_of(name, machines, pool.wishes.classes[0])


def test_machines_to_move_are_the_idlest_and_of_those_the_worst() -> None:
    busy, its = flat("racks/busy", 30, 20)
    idle, others = flat("racks/idle", 2, 40)
    others[0] = replace(others[0], is_busy=True)
    others[1] = replace(others[1], unusable="quarantined")
    others[7] = replace(others[7], last_claim=others[2].last_claim, bad_share=0.4)
    others[9] = replace(others[9], last_claim=None)

    mix = recommend([busy, idle], [*its, *others], now=END)

    assert [move.machine.key.worker_id for move in mix.moves] == ["m9", "m7"]
    assert {move.target for move in mix.moves} == {"racks/busy"}
    assert "never had a task" in mix.moves[0].reason
    assert "last task taken 2026-11-02 02:00" in mix.moves[1].reason
    line = mix.lines[1]
    assert (line.now, line.unusable, line.proposed) == (39, 1, 37)


def test_machines_that_are_none_of_use_are_no_capacity() -> None:
    busy, its = flat("racks/busy", 20, 20)
    idle, others = flat("racks/idle", 2, 40)
    its = [replace(one, unusable="silent") if n < 10 else one for n, one in enumerate(its)]
    assert not recommend([busy, idle], machines_of("racks/busy", 20) + others, now=END).moves

    mix = recommend([busy, idle], its + others, now=END)

    assert now_of(mix)["racks/busy"] == 10
    assert proposed(mix)["racks/busy"] == 12


def test_a_pool_of_which_too_little_is_known_keeps_its_machines() -> None:
    busy, its = flat("racks/busy", 30, 20)
    idle, others = flat("racks/idle", 2, 40)
    young, few = flat("racks/young", 0, 30, days=3)
    never = Pool(queue_id="racks/never", samples=idle.samples)

    mix = recommend([busy, idle, young, never], [*its, *others, *few], now=END)

    assert {move.machine.key.pool_id for move in mix.moves} == {"racks/idle"}
    reasons = {line.queue_id: line.reason for line in mix.lines}
    assert "of 1728 samples that are needed there are 864" in reasons["racks/young"]
    assert "no task has ended" in reasons["racks/never"]


@pytest.mark.parametrize(
    ("wishes", "taken"),
    [
        ((Wishes(), Wishes()), 3),
        ((Wishes(), Wishes(minimum=39)), 1),
        ((Wishes(maximum=21), Wishes()), 1),
        ((Wishes(target=timedelta(hours=3)), Wishes()), 2),
        ((Wishes(maximum=17), Wishes()), -3),
        ((Wishes(), Wishes(minimum=42)), -2),
    ],
    ids=["none", "a minimum", "a maximum", "a target", "above the maximum", "below the minimum"],
)
def test_limits_are_kept_and_mended(wishes: tuple[Wishes, Wishes], taken: int) -> None:
    busy, its = flat("racks/busy", 25, 20, wishes[0])
    idle, others = flat("racks/idle", 2, 40, wishes[1])

    mix = recommend([busy, idle], [*its, *others], now=END)

    assert proposed(mix)["racks/busy"] - 20 == taken


def test_of_two_pools_that_wait_the_one_that_counts_more_is_helped() -> None:
    first, its = flat("racks/first", 30, 20)
    second, others = flat("racks/second", 30, 20, Wishes(weight=50))
    idle, spare = flat("racks/idle", 2, 20)

    mix = recommend([first, second, idle], [*its, *others, *spare], now=END)

    assert proposed(mix) == {"racks/first": 20, "racks/second": 23, "racks/idle": 17}


def test_what_would_have_been_worse_lately_is_not_recommended() -> None:
    gone, its = flat("racks/gone", 30, 20, Wishes(weight=3))
    here, others = flat("racks/here", 2, 40)
    begin = len(gone.samples) - 7 * 288
    quiet, full = flat("racks/gone", 0, 20)[0], flat("racks/here", 40, 40)[0]
    pools = [
        replace(pool, samples=[*pool.samples[:begin], *lately.samples[begin:]])
        for pool, lately in ((gone, quiet), (here, full))
    ]

    mix = recommend(pools, [*its, *others], now=END)

    assert not mix.moves
    assert mix.reason == "the best mix of all weeks would have been worse in the last one"


@settings(deadline=None, max_examples=15)
@given(
    loads=st.lists(
        st.tuples(st.integers(0, 40), st.integers(0, 30), st.integers(0, 10), st.integers(10, 40)),
        min_size=2,
        max_size=4,
    ),
    order=st.randoms(use_true_random=False),
)
def test_never_too_many_never_past_limits_and_always_the_same(
    loads: list[tuple[int, int, int, int]], order: Random
) -> None:
    pools, machines = [], []
    for number, (load, has, minimum, maximum) in enumerate(loads):
        wishes = Wishes(minimum=minimum, maximum=maximum)
        pool, its = flat(f"racks/p{number}", load, has, wishes, days=7)
        pools.append(pool)
        machines += its

    mix = recommend(pools, machines, now=START + timedelta(days=7))

    assert len(mix.moves) <= max(1, SHARE * len(machines))
    assert sum(proposed(mix).values()) == len(machines)
    for line, pool in zip(mix.lines, pools, strict=True):
        low, high = pool.wishes.minimum, pool.wishes.maximum or 0
        assert min(line.now, low) <= line.proposed <= max(line.now, high)
        assert line.reason
    assert {move.machine.key for move in mix.moves} <= {one.key for one in machines}
    shuffled = order.sample(machines, len(machines))
    assert mix == recommend(pools[::-1], shuffled, now=START + timedelta(days=7))


def test_a_queue_that_tells_of_any_number_of_tasks_stops_no_recommendation() -> None:
    often = range(MONTH * 288)
    samples = [Sample(START + slot * SLOT, 10**12, 1, 3, 0) for slot in often]
    found = recommend([pool_of("racks/p0", samples, 5)], machines_of("racks/p0", 3), now=END)
    [line] = found.lines
    assert line.before is not None
    assert line.before.weekly == line.before.worst == LONGEST
