"""A mix of pools for machines that stay, by what there was to do in the last weeks.

Pure: pools with their samples, and machines, in; a proposal with its reasons out.  Nothing here
moves a machine.  The proposal is kept to what is surely better: a twentieth of the machines at
most, a tenth less waiting at least, also in the last week alone; else nothing is proposed.
Where to read next: ``waits`` (what waiting would have been), ``assignment`` (who goes where).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from worker_manager.mix.assignment import Demand, assign
from worker_manager.mix.entities import Line, Machine, Move, Pool, Recommendation
from worker_manager.mix.load import SLOT, WEEK
from worker_manager.mix.waits import Replay, time_of
from worker_manager.mix.wording import about_pool, because_of, in_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from worker_manager.mix.assignment import Flow
    from worker_manager.mix.entities import Waits

SHARE = 0.05
"""Of all machines, what may be moved in a week; one always may."""
BETTER_BY = 0.1
"""Of all waiting, what a proposal must save."""
MOVE_COST = timedelta(hours=2)
"""Of waiting in a week, what every machine that is moved must save for its trouble."""
LEAST_KNOWN = WEEK // SLOT * 6 // 7
"""Samples of a pool, before anything is proposed for it: those of six days."""
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A pool whose load is known well enough, with its machines and its replay."""

    pool: Pool
    now: int
    replay: Replay

    def felt(self, machines: int, replay: Replay | None = None) -> float:
        """What waiting costs with so many machines, in seconds of a week, by the pool's weight."""
        places = machines * self.pool.slots
        wishes = self.pool.wishes
        return wishes.weight * (replay or self.replay).felt(places, target=wishes.target)

    def waits(self, machines: int) -> Waits:
        """How long tasks wait with so many machines."""
        return self.replay.waits(machines * self.pool.slots)

    def felt_lately(self, machines: int) -> float:
        """The same by the last week alone."""
        counts = self.replay.counts
        first = next((slot for slot, count in enumerate(counts) if count == counts[-1]), 0)
        return self.felt(machines, self.replay.since(first))


def recommend(
    pools: Sequence[Pool], machines: Sequence[Machine], *, now: datetime
) -> Recommendation:
    """The mix that would have made tasks wait least; the same for the same, in any order."""
    usable = [machine for machine in machines if not machine.unusable]
    has = Counter(machine.key.pool_id for machine in usable)
    known = {pool.queue_id: one for pool in pools if (one := _known(pool, has, now)) is not None}
    most = max(1, int(len(usable) * SHARE))
    flow = _flow(known, usable, most)
    proposed = Counter(has)
    for (group, target), number in flow.items():
        proposed[group[1]] -= number
        proposed[target] += number
    refused = _refusal(known, proposed, flow)
    if refused:
        flow, proposed = {}, has
    lines = {pool.queue_id: _line(pool, known, machines, proposed) for pool in pools}
    return Recommendation(
        lines=tuple(lines[queue_id] for queue_id in sorted(lines)),
        moves=_named(flow, usable, lines),
        most=most,
        reason=refused or _saving(known, proposed),
    )


def _known(pool: Pool, has: Mapping[str, int], now: datetime) -> Known | None:
    """``None`` for a pool of which too little is known; it keeps what it has."""
    if pool.service is None or len(pool.samples) < LEAST_KNOWN:
        return None
    replay = Replay.of(pool.samples, service=pool.service, now=now)
    return Known(pool=pool, now=has.get(pool.queue_id, 0), replay=replay)


def _flow(known: Mapping[str, Known], usable: Sequence[Machine], most: int) -> Flow:
    groups = Counter(
        (machine.machine_class, machine.key.pool_id)
        for machine in usable
        if machine.key.pool_id in known
    )
    if not groups:
        return {}
    demands = {queue_id: _demand(one, most) for queue_id, one in known.items()}
    return assign(groups, demands, most=most, move_cost=int(MOVE_COST.total_seconds()))


def _demand(one: Known, most: int) -> Demand:
    wishes, now = one.pool.wishes, one.now
    far = sorted({0, most, *(2**power for power in range(most.bit_length()))})
    numbers = {max(0, now - step) for step in far} | {now + step for step in far}
    return Demand(
        now=now,
        minimum=wishes.minimum,
        maximum=now + most if wishes.maximum is None else wishes.maximum,
        classes=frozenset(wishes.classes),
        costs={number: round(one.felt(number)) for number in numbers},
    )


def _refusal(known: Mapping[str, Known], proposed: Mapping[str, int], flow: Flow) -> str:
    """Why this is not to be proposed; empty if it is."""
    if not known:
        return "of no pool six days of load, and how long its tasks take, are known"
    if not flow:
        return "no move would save more waiting than it costs"
    if any(_mends(one, proposed[queue_id]) for queue_id, one in known.items()):
        return ""
    before, after = (
        sum(one.felt(number) for one, number in pairs) for pairs in _both(known, proposed)
    )
    if after > before * (1 - BETTER_BY):
        return f"the best mix would save less than {BETTER_BY:.0%} of the waiting"
    before, after = (
        sum(one.felt_lately(number) for one, number in pairs) for pairs in _both(known, proposed)
    )
    if after > before:
        return "the best mix of all weeks would have been worse in the last one"
    return ""


def _both(
    known: Mapping[str, Known], proposed: Mapping[str, int]
) -> tuple[list[tuple[Known, int]], list[tuple[Known, int]]]:
    """Pools with their machines as they are, and as they are proposed."""
    return (
        [(one, one.now) for one in known.values()],
        [(one, proposed[queue_id]) for queue_id, one in known.items()],
    )


def _mends(one: Known, proposed: int) -> bool:
    """Whether the proposal brings a pool nearer to the limits that its people set."""
    wishes = one.pool.wishes
    is_below = one.now < wishes.minimum and proposed > one.now
    is_above = wishes.maximum is not None and one.now > wishes.maximum and proposed < one.now
    return is_below or is_above


def _saving(known: Mapping[str, Known], proposed: Mapping[str, int]) -> str:
    before, after = (
        time_of(sum(one.felt(number) for one, number in pairs)) for pairs in _both(known, proposed)
    )
    return f"tasks would wait {in_words(after)} a week together, in place of {in_words(before)}"


def _line(
    pool: Pool,
    known: Mapping[str, Known],
    machines: Sequence[Machine],
    proposed: Mapping[str, int],
) -> Line:
    queue_id, one = pool.queue_id, known.get(pool.queue_id)
    mine = [machine for machine in machines if machine.key.pool_id == queue_id]
    unusable = sum(1 for machine in mine if machine.unusable)
    now, then = len(mine) - unusable, proposed[queue_id]
    before = after = demand = None
    if one is not None:
        before = one.waits(now)
        after = before if then == now else one.waits(then)
        demand = one.replay.demand / pool.slots
    line = Line(
        queue_id=queue_id,
        now=now,
        unusable=unusable,
        proposed=then,
        demand=demand,
        service=pool.service,
        before=before,
        after=after,
        reason="",
    )
    return about_pool(line, pool, enough=LEAST_KNOWN)


def _named(flow: Flow, usable: Sequence[Machine], lines: Mapping[str, Line]) -> tuple[Move, ...]:
    """The machines that are meant: the idlest first, of those the ones that do least well."""
    waiting: defaultdict[tuple[str, str], list[Machine]] = defaultdict(list)
    for machine in sorted(usable, key=_idlest_first):
        waiting[machine.machine_class, machine.key.pool_id].append(machine)
    moves = []
    for (group, target), number in sorted(flow.items()):
        chosen, waiting[group] = waiting[group][:number], waiting[group][number:]
        moves += [
            Move(machine=one, target=target, reason=because_of(one, lines[target]))
            for one in chosen
        ]
    return tuple(moves)


def _idlest_first(machine: Machine) -> tuple[bool, datetime, float, str, str]:
    key = machine.key
    last = machine.last_claim or LONG_AGO
    return machine.is_busy, last, -machine.bad_share, key.group, key.worker_id
