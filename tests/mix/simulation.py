"""A fleet of machines at work, event by event: what the recommender's replays must foresee.

Tasks come at random, by a rate that changes with time; they wait in order for the first machine of
their pool that is free, and take as long as chance wants.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from worker_manager.core.model import WorkerKey
from worker_manager.mix.entities import DEFAULT_CLASS, Machine, Pool, Wishes
from worker_manager.mix.load import SLOT, Sample

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

HOURS = 3600.0
START = datetime(2026, 11, 2, tzinfo=UTC)
"""A Monday."""


@dataclass(frozen=True)
class Task:
    came: float
    """Seconds since the start."""
    takes: float


@dataclass(frozen=True)
class History:
    """What a pool did with its tasks."""

    starts: Sequence[float]
    tasks: Sequence[Task]

    @property
    def waited(self) -> float:
        """All tasks together, in seconds."""
        return sum(start - task.came for start, task in zip(self.starts, self.tasks, strict=True))

    def samples(self, workers: int, *, days: int) -> list[Sample]:
        """As they are taken every five minutes."""
        came = [task.came for task in self.tasks]
        ends = sorted(
            start + task.takes for start, task in zip(self.starts, self.tasks, strict=True)
        )
        samples = []
        for number in range(days * 288):
            at = number * SLOT.total_seconds()
            started, ended = bisect_right(self.starts, at), bisect_right(ends, at)
            pending, claimed = bisect_right(came, at) - started, started - ended
            samples.append(Sample(START + number * SLOT, pending, claimed, workers, 0))
        return samples


Rate = "Callable[[float], float]"
"""Tasks an hour, by the hours since the start."""


def tasks_of(
    rate: Callable[[float], float], *, minutes: float, days: int, rng: Random
) -> list[Task]:
    """Tasks that take so many minutes, by chance more or less, and come at a rate by the hour."""
    found = []
    for hour in range(days * 24):
        came = sorted(rng.random() for _ in range(_poisson(rate(hour), rng)))
        found += [
            Task((hour + at) * HOURS, 60 * minutes * (0.5 + rng.expovariate(2.0))) for at in came
        ]
    return found


def _poisson(mean: float, rng: Random) -> int:
    if mean > 50:
        return max(0, round(rng.gauss(mean, math.sqrt(mean))))
    left, number = math.exp(-mean), -1
    chance = 1.0
    while chance > left:
        chance *= rng.random()
        number += 1
    return max(0, number)


def work(tasks: Sequence[Task], machines: int) -> History:
    """So many machines do them, first come, first served."""
    free = [0.0] * machines
    starts = []
    for task in tasks:
        start = max(task.came, free[0])
        heapq.heapreplace(free, start + task.takes)
        starts.append(start)
    return History(starts, tasks)


def office(peak: float, base: float = 1.0, *, first_hour: int = 8) -> Callable[[float], float]:
    """Busy for ten hours of each working day."""

    def rate(hour: float) -> float:
        day, of_day = divmod(hour, 24)
        is_busy = day % 7 < 5 and first_hour <= of_day < first_hour + 10
        return peak if is_busy else base

    return rate


def bursts(height: float, base: float, *, every: int, rng: Random) -> Callable[[float], float]:
    """Quiet, but now and then an hour with much to do."""
    hours = {hour for hour in range(24 * 7 * 9) if rng.random() < 1 / every}
    return lambda hour: height if int(hour) in hours else base


def machines_of(queue_id: str, number: int, machine_class: str = DEFAULT_CLASS) -> list[Machine]:
    return [
        Machine(
            key=WorkerKey(queue_id, machine_class, f"m{index}"),
            machine_class=machine_class,
            last_claim=START + index * timedelta(hours=1),
        )
        for index in range(number)
    ]


def pool_of(
    queue_id: str, samples: Sequence[Sample], minutes: float, wishes: Wishes | None = None
) -> Pool:
    return Pool(
        queue_id=queue_id,
        samples=samples,
        service=timedelta(minutes=minutes),
        wishes=wishes or Wishes(),
    )
