"""Which launch configs get the new machines.

Each launch config takes part by its weight (``standing``), and never beyond its own maximum.  The
shares are drawn by *systematic sampling*: one random
offset for the whole draw, so that every launch config gets its exact expected share, rounded up
or down, and a burst becomes few orders instead of a lottery per machine.  Every weight is above
0, so that some launch config is chosen whenever one has room.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from worker_manager.core.model import LaunchConfigHead

MAX_ORDERS = 100
MAX_MACHINES = 100
"""Most orders of one plan, and most machines of one order; the next tick continues."""


class Chance(Protocol):
    """The part of ``random.Random`` that a draw uses."""

    def random(self) -> float:
        """A number in [0, 1)."""
        ...


@dataclass(frozen=True, slots=True)
class Candidate:
    """A launch config with what planning knows of it.

    ``room`` is in machines: how many more its own limit allows; ``weight`` its share, above 0.
    """

    head: LaunchConfigHead
    room: int
    weight: float


@dataclass(frozen=True, slots=True)
class Choice:
    """So many machines of this launch config."""

    head: LaunchConfigHead
    count: int

    @property
    def capacity(self) -> int:
        """Tasks these machines can run at once."""
        return self.count * self.head.capacity_per_instance


def select(
    offers: Sequence[Candidate], to_spawn: int, chance: Chance, *, headroom: int
) -> list[Choice]:
    """Spread ``to_spawn`` capacity over the offers, rounded up to whole machines.

    Never more than ``headroom`` (the capacity left below the pool's maximum), never past a launch
    config's own room.  The order of ``offers`` shows in the odds in no way.
    """
    rooms = {offer.head.launch_config_id: offer.room for offer in offers}
    chosen: dict[str, int] = {}
    left = to_spawn
    while left > 0:
        takers = [
            offer
            for offer in offers
            if rooms[offer.head.launch_config_id] > 0
            and offer.head.capacity_per_instance <= headroom
        ]
        if not takers:
            break
        for choice in _share(takers, left, rooms, chance, headroom=headroom):
            name = choice.head.launch_config_id
            chosen[name] = chosen.get(name, 0) + choice.count
            rooms[name] -= choice.count
            left -= choice.capacity
            headroom -= choice.capacity
    return _in_orders(_rotated(offers, chance), chosen)


def launchable(heads: Iterable[LaunchConfigHead]) -> list[LaunchConfigHead]:
    """Launch configs that are on and whose own limit allows at least one machine."""
    return [
        head
        for head in heads
        if head.initial_weight > 0
        and (head.max_capacity is None or head.max_capacity >= head.capacity_per_instance)
    ]


def _rotated(offers: Sequence[Candidate], chance: Chance) -> list[Candidate]:
    """The offers by id from a random one on: whatever order they came in, the same odds."""
    ordered = sorted(offers, key=lambda offer: offer.head.launch_config_id)
    start = int(chance.random() * len(ordered))
    return ordered[start:] + ordered[:start]


def _share(
    takers: Sequence[Candidate],
    left: int,
    rooms: Mapping[str, int],
    chance: Chance,
    *,
    headroom: int,
) -> list[Choice]:
    """One round: as many machines as ``left`` asks for, by weight, each within its room."""
    ordered = _rotated(takers, chance)
    weights = [offer.weight for offer in ordered]
    given = []
    for offer, share in zip(ordered, _shares(ordered, weights, left, chance), strict=True):
        size = offer.head.capacity_per_instance
        count = min(
            share, rooms[offer.head.launch_config_id], headroom // size, math.ceil(left / size)
        )
        if count > 0:
            given.append(Choice(offer.head, count))
            left -= count * size
            headroom -= count * size
    if given:
        return given
    heaviest = max(zip(weights, ordered, strict=True), key=lambda pair: pair[0])[1]
    return [Choice(heaviest.head, 1)]


def _shares(
    ordered: Sequence[Candidate], weights: Sequence[float], left: int, chance: Chance
) -> list[int]:
    """Machines for each, by systematic sampling: exact shares, rounded up or down."""
    total = sum(weights)
    sizes = [offer.head.capacity_per_instance for offer in ordered]
    mean_size = sum(w * size for w, size in zip(weights, sizes, strict=True)) / total
    machines = max(1, math.floor(left / mean_size))
    offset, reached, shares = chance.random(), 0.0, []
    for weight in weights:
        before = math.floor(reached + offset)
        reached += machines * weight / total
        shares.append(math.floor(reached + offset) - before)
    return shares


def _in_orders(offers: Sequence[Candidate], chosen: Mapping[str, int]) -> list[Choice]:
    """Cut the choices into orders a cloud takes at once; the largest first if too many."""
    cut = []
    for offer in offers:
        count = min(chosen.get(offer.head.launch_config_id, 0), MAX_ORDERS * MAX_MACHINES)
        while count > 0:
            cut.append(Choice(offer.head, min(count, MAX_MACHINES)))
            count -= MAX_MACHINES
    return sorted(cut, key=lambda choice: -choice.count)[:MAX_ORDERS]
