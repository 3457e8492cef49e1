from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.strategies import heads, healths
from tests.factories import a_head
from worker_manager.core.health import Health
from worker_manager.core.selector import (
    MAX_MACHINES,
    MAX_ORDERS,
    Candidate,
    candidates,
    first_machine,
    select,
)
from worker_manager.core.tally import Counts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from worker_manager.core.model import LaunchConfigHead
    from worker_manager.core.selector import Choice

seeds = st.integers(0, 1000)


def offers(
    given_heads: Sequence[LaunchConfigHead],
    *,
    maximum: int = 1000,
    counts: Mapping[str, Counts] | None = None,
    health: Mapping[str, Health] | None = None,
) -> list[Candidate]:
    return candidates(given_heads, counts or {}, health or {}, maximum=maximum)


def pick(
    given_heads: Sequence[LaunchConfigHead], wanted: int, *, seed: int = 1, headroom: int = 1000
) -> list[Choice]:
    found = offers(given_heads, maximum=headroom)
    return select(found, min(wanted, headroom), Random(seed), headroom=headroom)


def machines(choices: Sequence[Choice]) -> Counter[str]:
    found: Counter[str] = Counter()
    for choice in choices:
        found[choice.head.launch_config_id] += choice.count
    return found


def test_a_launch_config_of_weight_zero_is_off_even_if_it_is_the_only_one() -> None:
    assert offers([a_head(manager={"initialWeight": 0})]) == []


def test_room_is_what_the_own_limit_leaves_in_whole_machines() -> None:
    head = a_head(capacity_per_instance=4, manager={"maxCapacity": 11})

    (offer,) = offers([head], counts={"lc-a": Counts(stopping=1, running=1)})

    assert offer.room == 2
    assert offer.weight == pytest.approx(9 / 11)


@pytest.mark.parametrize("limit", [0, 3, 4])
def test_a_full_launch_config_offers_nothing(limit: int) -> None:
    head = a_head(capacity_per_instance=2, manager={"maxCapacity": limit})

    assert offers([head], counts={"lc-a": Counts(running=3)}) == []


def test_a_launch_config_without_limit_has_that_of_the_pool() -> None:
    (offer,) = offers([a_head()], maximum=7, counts={"lc-a": Counts(running=5)})

    assert offer.room == 2


def test_one_failure_takes_a_share_and_not_everything() -> None:
    """Report S7: one error in an hour gave everything to the other launch config."""
    health = {"lc-a": Health(launched=20, failed={"no-capacity": 1})}
    weights = {
        offer.head.launch_config_id: offer.weight
        for offer in offers([a_head("lc-a"), a_head("lc-b")], health=health)
    }

    assert 0.9 < weights["lc-a"] < weights["lc-b"] == 1


def test_where_all_fail_alike_all_share_alike() -> None:
    """Report S7: of three exhausted launch configs the first in the list took all the load."""
    failing = {name: Health(failed={"no-capacity": 500}) for name in ("lc-a", "lc-b", "lc-c")}
    found = offers([a_head("lc-a"), a_head("lc-b"), a_head("lc-c")], health=failing)

    chosen = machines(select(found, 30, Random(1), headroom=1000))

    assert chosen == {"lc-a": 10, "lc-b": 10, "lc-c": 10}


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
    head = a_head(manager={"maxCapacity": 10})
    found = offers([head], counts={"lc-a": Counts(running=9)})

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


@pytest.mark.parametrize("seed", range(10))
def test_the_first_machine_is_one_of_the_smallest(seed: int) -> None:
    """Report B04 (#7091): the rule for machines larger than the maximum is explicit."""
    given_heads = [
        a_head("lc-a", capacity_per_instance=16),
        a_head("lc-b", capacity_per_instance=8),
        a_head("lc-c", capacity_per_instance=8),
        a_head("lc-d", capacity_per_instance=4, manager={"initialWeight": 0}),
        a_head("lc-e", capacity_per_instance=4, manager={"maxCapacity": 3}),
    ]

    (choice,) = first_machine(given_heads, Random(seed))

    assert choice.count == 1
    assert choice.head.launch_config_id in {"lc-b", "lc-c"}


def test_where_nothing_is_on_there_is_no_first_machine() -> None:
    assert first_machine([a_head(manager={"initialWeight": 0})], Random(1)) == []


@given(
    given_heads=heads(),
    health=healths,
    wanted=st.integers(0, 200),
    spare=st.integers(0, 40),
    seed=seeds,
)
def test_a_draw_stays_within_every_limit_and_takes_what_it_can(
    given_heads: list[LaunchConfigHead],
    health: dict[str, Health],
    wanted: int,
    spare: int,
    seed: int,
) -> None:
    headroom = wanted + spare
    found = offers(given_heads, maximum=max(1, headroom), health=health)

    choices = select(found, wanted, Random(seed), headroom=headroom)

    chosen = machines(choices)
    capacity = sum(choice.capacity for choice in choices)
    assert capacity <= headroom
    assert all(choice.count > 0 for choice in choices)
    assert all(chosen[offer.head.launch_config_id] <= offer.room for offer in found)
    fits = [o for o in found if o.head.capacity_per_instance <= headroom]
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
    given_heads=heads(at_least=2),
    health=healths,
    wanted=st.integers(1, 60),
    seed=seeds,
    shuffle=st.randoms(use_true_random=False),
)
def test_the_order_of_launch_configs_does_not_matter(
    given_heads: list[LaunchConfigHead],
    health: dict[str, Health],
    wanted: int,
    seed: int,
    shuffle: Random,
) -> None:
    shuffled = list(given_heads)
    shuffle.shuffle(shuffled)

    def choose(in_order: list[LaunchConfigHead]) -> list[Choice]:
        found = offers(in_order, maximum=100, health=health)
        return select(found, wanted, Random(seed), headroom=100)

    assert choose(given_heads) == choose(shuffled)
    assert first_machine(given_heads, Random(seed)) == first_machine(shuffled, Random(seed))


@given(seed=seeds, wanted=st.integers(1, 10))
def test_weights_too_small_for_arithmetic_still_choose_some_launch_config(
    seed: int, wanted: int
) -> None:
    tiny = {"initialWeight": 5e-324}
    heads = [a_head("lc-a", manager=tiny), a_head("lc-b", manager=tiny)]
    health = {"lc-a": Health(failed={"no-capacity": 50})}
    worn = candidates(heads, {}, health, maximum=10)

    assert machines(select(worn, wanted, Random(seed), headroom=10)).total() == wanted
