"""Flows of machines, against all that could be done instead."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from worker_manager.mix.assignment import Demand, assign, falling_hull, shared_out

if TYPE_CHECKING:
    from worker_manager.mix.assignment import Flow, Group

NAMES = ("a/one", "a/two", "a/three")
SLOPES = st.lists(st.integers(0, 100), min_size=16, max_size=16)


def a_demand(
    now: int, slopes: list[int], limits: tuple[int, int] = (0, 99), classes: str = "x"
) -> Demand:
    """Each machine saves less than the one before."""
    falling = sorted(slopes, reverse=True)
    costs = {number: sum(falling[number:]) for number in range(len(falling) + 1)}
    return Demand(
        now=now,
        minimum=limits[0],
        maximum=limits[1],
        classes=frozenset(classes),
        costs=costs,
    )


def after(groups: dict[Group, int], flow: Flow) -> dict[str, int]:
    has = dict.fromkeys(NAMES, 0)
    for (_, queue_id), number in groups.items():
        has[queue_id] += number
    for (group, target), number in flow.items():
        has[group[1]] -= number
        has[target] += number
    return has


@settings(deadline=None, max_examples=40)
@given(
    numbers=st.tuples(*[st.integers(0, 4)] * 3).filter(any),
    slopes=st.tuples(SLOPES, SLOPES, SLOPES),
    most=st.integers(1, 6),
    move_cost=st.integers(1, 40),
)
def test_no_other_mix_costs_less(
    numbers: tuple[int, ...], slopes: tuple[list[int], ...], most: int, move_cost: int
) -> None:
    groups = {("x", name): number for name, number in zip(NAMES, numbers, strict=True)}
    demands = {
        name: a_demand(now, of) for name, now, of in zip(NAMES, numbers, slopes, strict=True)
    }

    def cost(has: dict[str, int]) -> int:
        moved = sum(max(0, has[name] - now) for name, now in zip(NAMES, numbers, strict=True))
        return move_cost * moved + sum(demands[name].costs[has[name]] for name in NAMES)

    def is_possible(has: dict[str, int]) -> bool:
        moved = sum(max(0, has[name] - now) for name, now in zip(NAMES, numbers, strict=True))
        return sum(has.values()) == sum(numbers) and moved <= most

    found = after(groups, assign(groups, demands, most=most, move_cost=move_cost))

    others = (
        dict(zip(NAMES, each, strict=True))
        for each in product(range(sum(numbers) + 1), repeat=3)
        if sum(each) == sum(numbers)
    )
    assert is_possible(found)
    assert cost(found) == min(cost(has) for has in others if is_possible(has))


@st.composite
def fleets(draw: st.DrawFn) -> tuple[dict[Group, int], dict[str, Demand]]:
    """Machines of two classes, and pools with limits of which some take only one."""
    groups = {(of, name): draw(st.integers(0, 4)) for of in "xy" for name in NAMES}
    now = after(groups, {})
    demands = {
        name: a_demand(
            now[name],
            draw(SLOPES),
            (draw(st.integers(0, 5)), draw(st.integers(5, 9))),
            draw(st.sampled_from(["x", "y", "xy"])),
        )
        for name in NAMES
    }
    return {group: number for group, number in groups.items() if number}, demands


@settings(deadline=None, max_examples=80)
@given(fleet=fleets().filter(lambda fleet: bool(fleet[0])), most=st.integers(1, 6))
def test_limits_classes_and_numbers_are_kept(
    fleet: tuple[dict[Group, int], dict[str, Demand]], most: int
) -> None:
    groups, demands = fleet
    now = after(groups, {})

    flow = assign(groups, demands, most=most, move_cost=5)

    found = after(groups, flow)
    assert sum(flow.values()) <= most
    assert all(number <= groups[group] for (group, _), number in flow.items())
    for (machine_class, queue_id), target in flow:
        assert machine_class in demands[target].classes
        assert target != queue_id
    for name, demand in demands.items():
        low, high = min(now[name], demand.minimum), max(now[name], demand.maximum)
        assert low <= found[name] <= high
    assert flow == assign(dict(reversed(groups.items())), demands, most=most, move_cost=5)


def test_a_pool_below_its_minimum_comes_before_all_waiting() -> None:
    groups = {("x", "a/one"): 6}
    demands = {
        "a/one": a_demand(6, [1000] * 16),
        "a/two": a_demand(0, [0] * 16, (2, 9)),
    }

    flow = assign(groups, demands, most=6, move_cost=5)

    assert flow == {(("x", "a/one"), "a/two"): 2}


def test_a_pool_above_its_maximum_gives_some_away() -> None:
    groups = {("x", "a/one"): 6}
    demands = {"a/one": a_demand(6, [1000] * 16, (0, 3)), "a/two": a_demand(0, [0] * 16)}

    assert assign(groups, demands, most=2, move_cost=5) == {(("x", "a/one"), "a/two"): 2}


def test_classes_that_want_more_than_may_be_moved_have_their_share() -> None:
    groups = {("x", "a/one"): 20, ("y", "a/two"): 10}
    demands = {
        "a/one": a_demand(20, [0] * 16, classes="x"),
        "a/two": a_demand(10, [0] * 16, classes="y"),
        "a/three": a_demand(0, [90] * 16, classes="xy"),
    }

    flow = assign(groups, demands, most=4, move_cost=5)

    assert sum(flow.values()) == 4
    assert shared_out(7, {"x": 2, "y": 1, "z": 1}) == {"x": 3, "y": 2, "z": 2}


def test_costs_that_go_up_and_down_are_taken_as_falling_ever_less() -> None:
    assert falling_hull({0: 100, 1: 100, 2: 40, 3: 45, 4: 10}) == [(0, 100), (2, 40), (4, 10)]
