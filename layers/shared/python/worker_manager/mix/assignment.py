"""Which pools machines should work for: a flow of least cost, from where they are to the work.

Machines of one class and pool are one source.  They stay, or pass the hub of their class, which
lets through as many as may be moved, to any pool that takes their class.  Each further machine of
a pool costs less waiting than the one before, so that the cheapest flow fills pools in the right
order by itself.  Costs are whole numbers, as the solver is exact only with those.

Where to read next: ``recommender``, which makes the costs and words of the result.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Group: TypeAlias = tuple[str, str]
"""The class of machines, and the pool that they are in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What machines are worth to one pool."""

    now: int
    """Machines that it has."""
    minimum: int
    maximum: int
    classes: frozenset[str]
    """Of machines that it takes."""
    costs: Mapping[int, int]
    """By numbers of machines, what waiting costs then; for those between, what lies between."""


Flow: TypeAlias = dict[tuple[Group, str], int]
"""How many machines of a group go to which other pool."""


def assign(
    groups: Mapping[Group, int], demands: Mapping[str, Demand], *, most: int, move_cost: int
) -> Flow:
    """The moves that cost least, ``most`` of them at most.

    A pool never gets beyond its maximum nor below its minimum, and if it is there already, no
    further; what takes it back goes before all waiting.
    """
    classes = sorted({machine_class for machine_class, _ in groups})
    flow = _solve(groups, demands, dict.fromkeys(classes, most), move_cost)
    moved: Counter[str] = Counter()
    for (group, _), number in flow.items():
        moved[group[0]] += number
    if moved.total() <= most:
        return flow
    return _solve(groups, demands, shared_out(most, moved), move_cost)


def shared_out(most: int, wanted: Mapping[str, int]) -> dict[str, int]:
    """So many, in proportion to what is wanted; the rest goes to the largest remainders."""
    total = sum(wanted.values())
    shares = {name: most * number // total for name, number in wanted.items()}
    by_rest = sorted(wanted, key=lambda name: (-(most * wanted[name] % total), name))
    for name in by_rest[: most - sum(shares.values())]:
        shares[name] += 1
    return shares


def _solve(
    groups: Mapping[Group, int],
    demands: Mapping[str, Demand],
    most_of: Mapping[str, int],
    move_cost: int,
) -> Flow:
    # No other function needs it, and this one only for this call.
    import networkx  # noqa: PLC0415

    steps = {queue_id: _steps(demand) for queue_id, demand in sorted(demands.items())}
    # More than all waiting together: what is beyond limits is mended whatever it costs.
    beyond = 1 + move_cost + sum(-cost * width for of in steps.values() for _, width, cost in of)
    graph: Any = networkx.MultiDiGraph()
    for (machine_class, queue_id), number in sorted(groups.items()):
        source, hub = ("group", machine_class, queue_id), ("hub", machine_class)
        graph.add_node(source, demand=-number)
        graph.add_edge(source, ("pool", queue_id), capacity=number, weight=0)
        graph.add_edge(source, hub, capacity=number, weight=move_cost)
    for machine_class, most in sorted(most_of.items()):
        hub, onward = ("hub", machine_class), ("onward", machine_class)
        graph.add_edge(hub, onward, capacity=most, weight=0)
        for queue_id, demand in sorted(demands.items()):
            if machine_class in demand.classes:
                graph.add_edge(onward, ("pool", queue_id), capacity=most, weight=0)
    for queue_id, of in steps.items():
        for urgency, width, cost in of:
            weight = cost - urgency * beyond
            graph.add_edge(("pool", queue_id), "work", capacity=width, weight=weight)
    graph.add_node("work", demand=sum(groups.values()))
    _, found = networkx.network_simplex(graph)
    return _moves(found, groups, most_of)


def _steps(demand: Demand) -> list[tuple[int, int, int]]:
    """Runs of machines that are worth the same: how urgent, how many, and what each costs.

    The urgency is 2 for what a pool may not lose, 1 up to its minimum, −1 beyond its maximum.
    """
    kept, most = min(demand.now, demand.minimum), max(demand.now, demand.maximum)
    hull = falling_hull(demand.costs)
    limits = {kept, min(demand.minimum, most), min(demand.maximum, most), most}
    stops = sorted({0, *limits, *(number for number, _ in hull if 0 < number < most)})
    return [
        (_urgency(first, kept, demand), after - first, _slope(hull, first))
        for first, after in pairwise(stops)
    ]


def _urgency(number: int, kept: int, demand: Demand) -> int:
    if number < kept:
        return 2
    if number < demand.minimum:
        return 1
    return -1 if number >= demand.maximum else 0


def _slope(hull: Sequence[tuple[int, int]], number: int) -> int:
    """What one more machine costs than so many; before the first known number nobody asks."""
    for (first, high), (after, low) in pairwise(hull):
        if number < after:
            return -((high - low) // (after - first))
    return 0


def falling_hull(costs: Mapping[int, int]) -> list[tuple[int, int]]:
    """Costs that fall, by less and less, as the number grows; nowhere above those given."""
    hull: list[tuple[int, int]] = []
    for number in sorted(costs):
        cost = min(costs[number], hull[-1][1]) if hull else costs[number]
        while len(hull) > 1 and _lies_above(hull[-2], hull[-1], (number, cost)):
            hull.pop()
        hull.append((number, cost))
    return hull


def _lies_above(first: tuple[int, int], middle: tuple[int, int], last: tuple[int, int]) -> bool:
    return (middle[1] - first[1]) * (last[0] - first[0]) >= (last[1] - first[1]) * (
        middle[0] - first[0]
    )


def _moves(found: Any, groups: Mapping[Group, int], most_of: Mapping[str, int]) -> Flow:
    """Who goes where, of those that pass a hub: in order of names, as all of a class are alike."""
    arriving: dict[str, list[str]] = {
        machine_class: [
            queue_id
            for (_, queue_id), edges in sorted(found.get(("onward", machine_class), {}).items())
            for _ in range(sum(edges.values()))
        ]
        for machine_class in most_of
    }
    flow: defaultdict[tuple[Group, str], int] = defaultdict(int)
    for group in sorted(groups):
        machine_class, queue_id = group
        leaving = sum(found[("group", *group)].get(("hub", machine_class), {}).values())
        for _ in range(leaving):
            target = arriving[machine_class].pop(0)
            if target != queue_id:
                flow[group, target] += 1
    return dict(flow)
