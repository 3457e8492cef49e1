"""What 10,000 workers that ask our own queue for tasks every 5 s cost DynamoDB, in half an hour.

Virtual time.  What is the same again and again is done once and multiplied: half a minute of polls
that note nothing, of the largest pool and one in ten of the others, stands for all of them, and a
hundred workers that work stand for the others.  Each worker's row has the 20 claims that it
remembers.  Read next: ``polling_fleet`` (who asks what), ``polling_results`` (what is promised).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.benchmarks.polling_fleet import TASK, Fleet, a_fleet, remember, task_body
from tests.benchmarks.polling_results import detail, measures
from worker_manager.core.ids import derived_slugid
from worker_manager.queue.ledger import SETTLED_EVERY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from tests.benchmarks.results import Detail, Measure
    from tests.benchmarks.units import Call
    from worker_manager.core.model import WorkerKey

EVERY = timedelta(seconds=5)
"""How often a worker without a task asks for one."""
WATCHED = SETTLED_EVERY + EVERY
"""For how long idle polls are: after so long every container looks for overdue claims again."""
HALF_HOUR = timedelta(minutes=30)
CYCLE = timedelta(minutes=10)
"""How often a worker gets a task, of half as long."""
ONE_IN = 10
"""Of the other pools that have nothing to do, so many are as one."""
AT_WORK = 100
"""Workers whose tasks are measured."""
CYCLES = 2
READS = frozenset({"GetItem", "Query", "BatchGetItem"})
"""Operations that change nothing."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Requests to DynamoDB of some occasions, and their units."""

    occasions: int
    requests: Counter[str] = field(default_factory=Counter)
    """By operation."""
    read_units: float = 0.0
    write_units: float = 0.0
    most_got: int = 0
    """Items read one by one on one occasion, at most."""
    hottest: float = 0.0
    """Read units of the partition that was read most."""
    conditional: int = 0
    """Writes outside of transactions."""

    @property
    def reads(self) -> int:
        """Requests that read."""
        return sum(n for name, n in self.requests.items() if name in READS)

    @property
    def writes(self) -> int:
        """Requests that write."""
        return sum(self.requests.values()) - self.reads


@dataclass(frozen=True, slots=True)
class Polled:
    """What was measured."""

    fleet: Fleet
    idle: Tally
    """Polls of everybody while nothing is due."""
    watched: timedelta
    """For how long those are."""
    noted: Tally
    """One poll of everybody when all sightings are due."""
    seen_writes: int
    """Workers' rows written by those."""
    name_writes: int
    """Groups, types and provisioners written by those, or found to be noted by others."""
    between: Tally
    """Polls of workers between two tasks."""
    steps: dict[str, Tally]
    """What happens to a task, by method."""


def tally(groups: Iterable[Sequence[Call]]) -> Tally:
    """The requests of each occasion, added up."""
    requests: Counter[str] = Counter()
    partitions: defaultdict[str, float] = defaultdict(float)
    occasions, read, write, most, conditional = 0, 0.0, 0.0, 0, 0
    for calls in groups:
        occasions += 1
        most = max(most, sum(call.operation == "GetItem" for call in calls))
        for call in calls:
            units = call.units
            requests[call.operation] += 1
            read, write = read + units.read, write + units.write
            conditional += call.operation in {"PutItem", "UpdateItem"}
            if units.read:
                partitions[_partition(call)] += units.read
    hottest = max(partitions.values(), default=0.0)
    return Tally(occasions, requests, read, write, most, hottest, conditional)


def measure_polling(*, scale: float = 1.0) -> tuple[list[Measure], Detail]:
    """Let the fleet ask, and see what it took."""
    with a_fleet(scale) as fleet:
        polled = poll(fleet)
    return measures(polled), detail(polled)


def poll(fleet: Fleet) -> Polled:
    """Idle polls, polls whose sightings are due, then some workers at work."""
    began, keys = fleet.clock.now, fleet.workers
    remember(fleet.registry, keys, until=began)
    due = began + HALF_HOUR
    noted = _each(fleet, keys, since=due, within=EVERY)
    seen = sum(call.operation == "PutItem" for calls in noted for call in calls)
    names = sum(call.operation == "UpdateItem" for calls in noted for call in calls)
    idle = _idle(fleet, since=due + EVERY)
    between, steps = _work(fleet)
    return Polled(fleet, tally(idle), WATCHED, tally(noted), seen, names, tally(between), steps)


def _idle(fleet: Fleet, *, since: datetime) -> list[list[Call]]:
    """All polls while containers look for overdue claims once: by the largest pool, and by others.

    Only one in so many of these polls, and counts as so many.
    """
    largest, others = fleet.pools[0], fleet.pools[1:]
    step = ONE_IN if len(others) >= 10 * ONE_IN else 1
    keys = [*largest, *(key for pool in others[::step] for key in pool)]
    found = []
    for number in range(WATCHED // EVERY):
        for calls in _each(fleet, keys, since=since + number * EVERY, within=EVERY):
            is_largest = _polled(calls) == largest[0].pool_id
            found += [calls] * (1 if is_largest else step)
    return found


def _polled(calls: Sequence[Call]) -> str:
    """Whose queue was asked."""
    return _partition(calls[0]).removesuffix("#workers")


def _each(
    fleet: Fleet, keys: Sequence[WorkerKey], *, since: datetime, within: timedelta
) -> list[list[Call]]:
    """The requests of each worker's poll, in an order of chance."""
    shuffled = fleet.chance.sample(keys, len(keys))
    found = []
    for number, key in enumerate(shuffled):
        fleet.clock.now = since + within * number / len(shuffled)
        found.append(_during(fleet, partial(fleet.poll, key)))
    return found


def _during(fleet: Fleet, act: Callable[[], object]) -> list[Call]:
    before = len(fleet.meter.calls)
    act()
    return fleet.meter.calls[before:]


def _work(fleet: Fleet) -> tuple[list[list[Call]], dict[str, Tally]]:
    """Some workers, each of a pool of its own, get tasks that they renew once and complete."""
    chosen = [pool[0] for pool in fleet.pools][:AT_WORK]
    between: list[list[Call]] = []
    steps: defaultdict[str, list[list[Call]]] = defaultdict(list)
    for number in range(CYCLES):
        start = fleet.clock.now
        for key in chosen:
            fleet.clock.now = start
            _one_task(fleet, key, derived_slugid((key.worker_id, "task", number)), steps)
            fleet.clock.now += TASK - EVERY
            between.append(_during(fleet, partial(fleet.poll, key)))
        fleet.clock.now = start + CYCLE
    return between, {name: tally(groups) for name, groups in steps.items()}


def _one_task(
    fleet: Fleet, key: WorkerKey, task_id: str, steps: defaultdict[str, list[list[Call]]]
) -> None:
    """From ``createTask`` to ``reportCompleted``, half a cycle later."""
    body = task_body(key.pool_id, fleet.clock.now)

    def step(name: str, act: Callable[[], object]) -> None:
        steps[name].append(_during(fleet, act))

    step("createTask", lambda: fleet.any_container().create_task(task_id, body))
    given: list[Any] = []
    step("claimWork with a task", lambda: given.extend(fleet.poll(key)))
    if [one["status"]["taskId"] for one in given] != [task_id]:
        raise RuntimeError(f"{key} was given {given}")
    fleet.clock.now += TASK / 2
    step("reclaimTask", lambda: fleet.any_container().reclaim_task(task_id, 0))
    fleet.clock.now += TASK / 2
    step("reportCompleted", lambda: fleet.any_container().report_completed(task_id, 0))


def _partition(call: Call) -> str:
    """Whose read units these are."""
    if call.operation == "GetItem":
        return str(call.asked["Key"]["pk"]["S"])
    values = call.asked.get("ExpressionAttributeValues", {})
    return str(values.get(":0", {}).get("S", ""))
