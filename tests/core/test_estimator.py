from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.strategies import demands, ratios
from worker_manager.core.activity import QueueCounts
from worker_manager.core.estimator import Estimate, Limits, estimate, needed_capacity
from worker_manager.core.tally import Counts, Tally

counts = st.builds(
    Counts,
    running=st.integers(0, 60),
    requested=st.integers(0, 60),
    stopping=st.integers(0, 60),
    quarantined=st.integers(0, 60),
)


@st.composite
def tallies(draw: st.DrawFn) -> Tally:
    pool = draw(counts)
    return Tally(pool, stuck=draw(st.integers(0, pool.stopping)))


@st.composite
def limits(draw: st.DrawFn) -> Limits:
    maximum = draw(st.integers(0, 200))
    return Limits(draw(st.integers(0, maximum)), maximum, draw(ratios))


def judge(
    *,
    pending: int = 0,
    claimed: int = 0,
    minimum: int = 0,
    maximum: int = 100,
    ratio: float = 1.0,
    stuck: int = 0,
    **existing: int,
) -> Estimate:
    return estimate(
        QueueCounts(pending=pending, claimed=claimed),
        Tally(Counts(**existing), stuck=stuck),
        Limits(minimum, maximum, ratio),
    )


def test_requested_capacity_is_subtracted_once() -> None:
    """Report S1: ten tasks, five workers on their way, and none was ordered."""
    assert judge(pending=10, requested=5).to_spawn == 5
    assert judge(minimum=5, requested=2).to_spawn == 3


@pytest.mark.parametrize(
    ("minimum", "running", "stopping", "expected"), [(1, 0, 1, 1), (5, 4, 3, 1), (5, 5, 3, 0)]
)
def test_the_minimum_is_kept_while_workers_stop(
    minimum: int, running: int, stopping: int, expected: int
) -> None:
    """Report S2: a stopping worker stood for one of the minimum."""
    assert judge(minimum=minimum, running=running, stopping=stopping).to_spawn == expected


@pytest.mark.parametrize(
    ("pending", "ratio", "expected"),
    [(3, 0.5, 2), (1, 0.1, 1), (10, 0.1, 1), (11, 0.1, 2), (30, 0.1, 3), (7, 0.0, 0), (7, 1.0, 7)],
)
def test_capacity_is_whole_and_rounded_up_once(pending: int, ratio: float, expected: int) -> None:
    """Report S3: three tasks at a ratio of a half made one and a half workers."""
    assert judge(pending=pending, ratio=ratio).to_spawn == expected


def test_machines_that_do_not_go_away_cannot_starve_a_pool() -> None:
    """Report S4 (#6641, #8161): 1,680 tasks waited behind 1,185 ghosts; a tenth is forgiven."""
    ghosts = {"pending": 1680, "claimed": 815, "running": 815, "stopping": 1185, "maximum": 2000}

    assert judge(**ghosts, stuck=1185).to_spawn == 200
    assert judge(**ghosts, stuck=50).to_spawn == 50
    assert judge(**ghosts).to_spawn == 0
    assert judge(**ghosts).held_back == 1680


def test_one_ghost_is_forgiven_even_in_a_pool_of_one() -> None:
    """Report B06 (#8161)."""
    assert judge(pending=1, stopping=1, maximum=1, stuck=1).to_spawn == 1
    assert judge(pending=1, stopping=1, maximum=1).to_spawn == 0


def test_quarantined_capacity_does_no_work_but_counts_against_the_maximum() -> None:
    """Report B21 (#3794): a task waited for a quarantined worker."""
    assert judge(pending=1, quarantined=1, maximum=2).to_spawn == 1
    assert judge(pending=1, quarantined=1, maximum=1).to_spawn == 0


def test_everybody_may_go_when_the_minimum_falls_to_zero() -> None:
    """Report B12 (#8328): the formula for ordering kept idle workers alive."""
    assert judge(minimum=10, running=10).target == 10
    assert judge(minimum=0, running=10).target == 0


def test_a_lower_maximum_drains_what_is_beyond_it() -> None:
    """Report B46 (jenkinsci/ec2-fleet-plugin#157)."""
    assert judge(claimed=4, running=4, maximum=2).target == 2


def test_a_draining_worker_with_a_task_is_no_capacity_for_others() -> None:
    """Report B45 (buildkite-agent-scaler#39): four slots drain, three jobs wait."""
    assert judge(pending=3, claimed=1, stopping=4).to_spawn == 3
    assert judge(pending=3, claimed=1, running=4).to_spawn == 0


def test_more_claims_than_known_capacity_are_no_debt() -> None:
    assert judge(claimed=9, running=2, requested=1).to_spawn == 0
    assert judge(claimed=9, pending=4, running=2).to_spawn == 4


@given(pending=st.integers(0, 10_000), twentieths=st.integers(0, 20))
def test_rounding_is_exact_whatever_floats_do(pending: int, twentieths: int) -> None:
    demand = QueueCounts(pending=pending, claimed=0)

    exact = math.ceil(Fraction(twentieths, 20) * pending)
    assert needed_capacity(demand, twentieths / 20) == exact


@given(demand=demands, tally=tallies(), limit=limits())
def test_nothing_negative_and_nothing_past_the_maximum_is_ordered(
    demand: QueueCounts, tally: Tally, limit: Limits
) -> None:
    estimated = estimate(demand, tally, limit)

    forgiven = min(tally.stuck, max(1, limit.maximum // 10))
    assert estimated.to_spawn >= 0
    assert estimated.held_back >= 0
    assert estimated.to_spawn == 0 or (
        tally.pool.total + estimated.to_spawn <= limit.maximum + forgiven
    )


@given(demand=demands, tally=tallies(), limit=limits())
def test_spawning_and_letting_go_never_contradict_each_other(
    demand: QueueCounts, tally: Tally, limit: Limits
) -> None:
    """Report B43 (gitlab-runner#37526): relaunched right after scaling down."""
    estimated = estimate(demand, tally, limit)

    if estimated.to_spawn > 0:
        assert tally.pool.running <= estimated.target
    assert limit.minimum <= estimated.target <= max(limit.maximum, limit.minimum)


@given(demand=demands, running=st.integers(0, 100), limit=limits())
def test_after_letting_go_nothing_is_ordered_again(
    demand: QueueCounts, running: int, limit: Limits
) -> None:
    before = estimate(demand, Tally(Counts(running=running)), limit)
    kept = min(running, max(before.target, demand.claimed))

    if before.target < running:
        assert estimate(demand, Tally(Counts(running=kept)), limit).to_spawn == 0


@given(pending=st.integers(0, 500), ratio=ratios, limit=limits(), ticks=st.integers(1, 60))
def test_demand_held_while_machines_boot_is_ordered_once_in_all(
    pending: int, ratio: float, limit: Limits, ticks: int
) -> None:
    """Reports B02 (#5441): 167 ordered eight times over; B03 (PR#2407): up to the maximum."""
    demand = QueueCounts(pending=pending, claimed=0)
    limit = Limits(0, limit.maximum, ratio)
    ordered = 0
    for _ in range(ticks):
        ordered += estimate(demand, Tally(Counts(requested=ordered)), limit).to_spawn

    assert ordered == min(needed_capacity(demand, ratio), limit.maximum)


def test_the_numbers_of_the_reports_come_out_right() -> None:
    """Report B02: 167 in all, not 1,336.  Report B03: exactly five in 60 ticks."""
    for pending, ticks in ((167, 8), (5, 60)):
        requested = 0
        for _ in range(ticks):
            requested += judge(pending=pending, requested=requested, maximum=2000).to_spawn
        assert requested == pending


@given(demand=demands, tally=tallies(), limit=limits(), more=st.integers(1, 50))
def test_more_work_never_orders_less(
    demand: QueueCounts, tally: Tally, limit: Limits, more: int
) -> None:
    busier = QueueCounts(pending=demand.pending + more, claimed=demand.claimed)

    assert estimate(busier, tally, limit).to_spawn >= estimate(demand, tally, limit).to_spawn
    assert estimate(busier, tally, limit).target >= estimate(demand, tally, limit).target


BOOTING, WORKING, DELETING = range(3)


@dataclass
class Day:
    """A pool whose machines boot in three ticks, sometimes in vain, and take long to delete."""

    rng: Random
    failing: float
    delete_ticks: int
    maximum: int
    waiting: int
    machines: list[list[int]] = field(default_factory=list)
    most: int = 0
    ticks: int = 0

    def count(self, phase: int) -> int:
        return sum(machine[0] == phase for machine in self.machines)

    def tick(self) -> None:
        self.ticks += 1
        estimated = judge(
            pending=self.waiting,
            requested=self.count(BOOTING),
            running=self.count(WORKING),
            stopping=self.count(DELETING),
            maximum=self.maximum,
        )
        self.machines += [[BOOTING, 3] for _ in range(estimated.to_spawn)]
        self.most = max(self.most, len(self.machines))
        for machine in self.machines:
            machine[1] -= 1
            if machine[1] > 0:
                continue
            if machine[0] == BOOTING and self.rng.random() >= self.failing:
                machine[:] = [WORKING, 2]
            elif machine[0] == WORKING and self.waiting > 0:
                self.waiting -= 1
                machine[:] = [WORKING, 2]
            elif machine[0] != DELETING:
                machine[:] = [DELETING, self.delete_ticks]
            else:
                machine[:] = [DELETING, 0]
        self.machines = [machine for machine in self.machines if machine != [DELETING, 0]]


@given(
    seed=st.integers(0, 99),
    failing=st.sampled_from([0.0, 0.3, 0.7]),
    delete_ticks=st.integers(1, 40),
    maximum=st.integers(1, 10),
)
def test_slow_deletes_and_failing_starts_neither_exceed_the_maximum_nor_starve_the_pool(
    seed: int, failing: float, delete_ticks: int, maximum: int
) -> None:
    """Report B06 (#6067, #6641, #8161): not counting stopping broke one, counting it the other."""
    day = Day(Random(seed), failing, delete_ticks, maximum, waiting=30)
    while day.waiting and day.ticks < 4000:
        day.tick()

    assert day.waiting == 0
    assert day.most <= maximum
