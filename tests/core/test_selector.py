from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.strategies import heads
from tests.factories import a_head
from worker_manager.core.selector import (
    MAX_MACHINES,
    MAX_ORDERS,
    Candidate,
    launchable,
    select,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker_manager.core.model import LaunchConfigHead
    from worker_manager.core.selector import Choice

seeds = st.integers(0, 1000)


def offer(head: LaunchConfigHead, *, room: int = 1000, weight: float | None = None) -> Candidate:
    """A launch config with its initial weight, and room up to its own limit."""
    limit = room if head.max_capacity is None else min(room, head.max_capacity)
    share = head.initial_weight if weight is None else weight
    return Candidate(head, limit // head.capacity_per_instance, share)


def pick(
    given_heads: Sequence[LaunchConfigHead], wanted: int, *, seed: int = 1, headroom: int = 1000
) -> list[Choice]:
    found = [offer(head, room=headroom) for head in launchable(given_heads)]
    return select(found, min(wanted, headroom), Random(seed), headroom=headroom)


def machines(choices: Sequence[Choice]) -> Counter[str]:
    found: Counter[str] = Counter()
    for choice in choices:
        found[choice.head.launch_config_id] += choice.count
    return found


def test_shares_follow_the_weights_exactly() -> None:
    low, high = a_head("lc-a", manager={"initialWeight": 0.25}), a_head("lc-b")
    for seed in range(50):
        chosen = machines(pick([low, high], 50, seed=seed))
        assert chosen.total() == 50
        assert 9 <= chosen["lc-a"] <= 11


def test_a_single_machine_goes_by_the_weights_in_the_long_run() -> None:
    low, high = a_head("lc-a", manager={"initialWeight": 0.25}), a_head("lc-b")

    drawn = Counter[str]()
    for seed in range(2000):
        drawn += machines(pick([low, high], 1, seed=seed))

    assert 320 < drawn["lc-a"] < 480


def test_a_single_machine_goes_to_each_of_equal_launch_configs_as_often() -> None:
    drawn = Counter[str]()
    for seed in range(3000):
        drawn += machines(pick([a_head("lc-a"), a_head("lc-b"), a_head("lc-c")], 1, seed=seed))

    assert all(900 < count < 1100 for count in drawn.values())


def test_many_launch_configs_together_order_what_is_needed_and_no_more() -> None:
    """Report B47 (ec2-fleet-plugin#35, #76): eight clouds at once made 142 of 96."""
    for seed in range(20):
        chosen = machines(pick([a_head(f"lc-{n}") for n in range(8)], 96, seed=seed))
        assert chosen == {f"lc-{n}": 12 for n in range(8)}


def test_the_own_limit_holds_for_each_launch_and_not_only_before_it() -> None:
    """Report S5: with room for one machine, fifty were launched."""
    found = [offer(a_head(), room=1)]

    assert machines(select(found, 50, Random(1), headroom=50)) == {"lc-a": 1}


def test_what_one_launch_config_cannot_take_goes_to_the_others() -> None:
    small = a_head("lc-a", manager={"maxCapacity": 3})

    assert machines(pick([small, a_head("lc-b")], 40)) == {"lc-a": 3, "lc-b": 37}


def test_a_machine_too_large_for_what_is_left_gives_way_to_smaller_ones() -> None:
    assert machines(pick([a_head("lc-a", capacity_per_instance=8), a_head("lc-b")], 4)).total() > 0
    assert machines(
        pick([a_head("lc-a", capacity_per_instance=8), a_head("lc-b")], 4, headroom=4)
    ) == {"lc-b": 4}


def test_wanted_capacity_is_rounded_up_to_whole_machines_below_the_maximum() -> None:
    assert machines(pick([a_head(capacity_per_instance=4)], 9)) == {"lc-a": 3}
    assert machines(pick([a_head(capacity_per_instance=4)], 9, headroom=11)) == {"lc-a": 2}


def test_large_choices_are_cut_into_orders_that_a_cloud_takes() -> None:
    assert [choice.count for choice in pick([a_head()], 250)] == [100, 100, 50]


def test_a_plan_has_no_more_orders_than_fit_and_the_largest_come_first() -> None:
    many = [a_head(f"lc-{n:03d}", manager={"initialWeight": 0.01}) for n in range(150)]

    choices = pick([*many, a_head("lc-heavy")], 500, headroom=5000)

    assert len(choices) == MAX_ORDERS
    assert choices[0].head.launch_config_id == "lc-heavy"
    assert all(choice.count <= MAX_MACHINES for choice in choices)


def test_capacity_without_end_is_cut_before_it_is_counted_out() -> None:
    endless = 10**15

    choices = pick([a_head("lc-a"), a_head("lc-b")], endless, headroom=endless)

    assert len(choices) == MAX_ORDERS
    assert {choice.count for choice in choices} == {MAX_MACHINES}


def test_of_many_equal_orders_any_may_be_cut_and_not_always_the_same() -> None:
    many = [a_head(f"lc-{n:03d}") for n in range(300)]
    drawn = Counter[str]()
    for seed in range(60):
        drawn += machines(pick(many, 300, seed=seed))

    assert len(drawn) == 300


@pytest.mark.parametrize(
    ("manager", "can"),
    [
        ({}, True),
        ({"initialWeight": 0}, False),
        ({"initialWeight": 0.01, "maxCapacity": 4}, True),
        ({"maxCapacity": 3}, False),
        ({"maxCapacity": 0}, False),
    ],
)
def test_a_launch_config_that_is_off_or_smaller_than_a_machine_can_launch_none(
    manager: dict[str, float], can: bool
) -> None:
    head = a_head(capacity_per_instance=4, manager=manager)

    assert launchable([head]) == [head] * can


def test_no_offers_are_no_choices() -> None:
    assert select([], 5, Random(1), headroom=5) == []


weights = st.sampled_from([1e-100, 0.01, 0.3, 1.0, 7.0])


@st.composite
def candidates(draw: st.DrawFn, at_least: int = 0) -> list[Candidate]:
    """Offers of any room and weight, as ``standing`` makes them."""
    return [
        Candidate(head, draw(st.integers(0, 30)), draw(weights))
        for head in draw(heads(at_least=at_least))
    ]


@given(found=candidates(), wanted=st.integers(0, 200), spare=st.integers(0, 40), seed=seeds)
def test_a_draw_stays_within_every_limit_and_takes_what_it_can(
    found: list[Candidate], wanted: int, spare: int, seed: int
) -> None:
    headroom = wanted + spare

    choices = select(found, wanted, Random(seed), headroom=headroom)

    chosen = machines(choices)
    capacity = sum(choice.capacity for choice in choices)
    assert capacity <= headroom
    assert all(choice.count > 0 for choice in choices)
    assert all(chosen[one.head.launch_config_id] <= one.room for one in found)
    fits = [o for o in found if o.room and o.head.capacity_per_instance <= headroom]
    assert bool(choices) == bool(fits and wanted)
    if capacity < wanted:
        left = headroom - capacity
        assert all(
            chosen[o.head.launch_config_id] == o.room or o.head.capacity_per_instance > left
            for o in found
        )
    if capacity > wanted:
        largest = max(choice.head.capacity_per_instance for choice in choices)
        assert capacity - wanted < largest


@given(
    found=candidates(at_least=2),
    wanted=st.integers(1, 60),
    seed=seeds,
    shuffle=st.randoms(use_true_random=False),
)
def test_the_order_of_launch_configs_does_not_matter(
    found: list[Candidate], wanted: int, seed: int, shuffle: Random
) -> None:
    shuffled = list(found)
    shuffle.shuffle(shuffled)

    def choose(in_order: list[Candidate]) -> list[Choice]:
        return select(in_order, wanted, Random(seed), headroom=100)

    assert choose(found) == choose(shuffled)


@given(seed=seeds, wanted=st.integers(1, 10))
def test_weights_too_small_for_odds_still_choose_some_launch_config(seed: int, wanted: int) -> None:
    found = [offer(a_head(name), weight=1e-100) for name in ("lc-a", "lc-b")]

    assert machines(select(found, wanted, Random(seed), headroom=10)).total() == wanted
