"""How long tasks would have waited with other numbers of machines: the past, replayed.

Samples tell how many tasks were there and how many were being worked on.  From both follows what
was asked for, also while all machines were at work and a count of claims would say no more than
how many there are.  Replayed against another number of machines, tasks that find none free wait:
a queue that is filled by what came and emptied by as many as can be worked on at once, step by
step.  Random ups and downs, days and weeks are in it as they were.

By Little's law all waiting together is the sum of how many waited, over time.
Where to read next: ``assignment``, which weighs the replays of pools against each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING

from worker_manager.mix.entities import Waits
from worker_manager.mix.load import SLOT, WEEK

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from worker_manager.mix.load import Sample

GAP = timedelta(hours=1)
"""Over which load is taken to have stayed as it was, where samples are missing."""
FADING = 0.5
"""What a week counts beside the one after it."""
WITHIN_TARGET = 0.1
"""What waiting counts as long as the pool's people do not mind."""
QUANTILE = 0.95
NEAR = 0.5
"""Tasks by which a queue may differ from another, to be taken as the same."""
LONGEST_STEP = 6
"""Slots that are replayed in one, of tasks that take an hour or more."""
LONGEST = timedelta(days=365_000)
"""What is told of longer waiting: a queue may tell of any number of tasks."""


def time_of(seconds: float) -> timedelta:
    """So many seconds, or ``LONGEST``."""
    return timedelta(seconds=min(seconds, LONGEST.total_seconds()))


@dataclass(frozen=True, slots=True)
class Replay:
    """What a pool was asked for, step by step, and what would have come of it."""

    step: timedelta
    """A slot, or several where tasks take much longer than one."""
    ratio: float
    """Tasks that one place works off within a step."""
    began: tuple[int | None, ...]
    """How many tasks were there, where nothing is known of the time before; else ``None``."""
    came: tuple[float, ...]
    """Tasks, less those that left without being worked on."""
    free: tuple[float, ...]
    """How many would be worked on with any number of machines."""
    counts: tuple[float, ...]
    """What a step counts, by its age."""

    @classmethod
    def of(cls, samples: Sequence[Sample], *, service: timedelta, now: datetime) -> Replay:
        """From samples in order, of a pool whose tasks take so long."""
        slots = max(1, min(LONGEST_STEP, int(service / (2 * SLOT))))
        step = slots * SLOT
        ratio = step / max(service, timedelta(seconds=1))
        began: list[int | None] = []
        came: list[float] = []
        free: list[float] = []
        before: Sample | None = None
        taken = list(islice(_filled(samples), 0, None, slots))
        for sample in taken:
            there = sample.pending + sample.claimed
            if before is None or sample.at - before.at > step:
                began.append(there)
                came.append(0.0)
                free.append(float(there))
            else:
                arrived = there - before.pending - before.claimed + ratio * sample.claimed
                began.append(None)
                came.append(arrived)
                free.append(max(0.0, free[-1] + arrived) / (1 + ratio))
            before = sample
        counts = tuple(FADING ** ((now - sample.at) // WEEK) for sample in taken)
        return cls(step, ratio, tuple(began), tuple(came), tuple(free), counts)

    @property
    def demand(self) -> float:
        """Places that 95 of 100 steps would keep at work."""
        return sorted(self.free)[int(len(self.free) * QUANTILE)] if self.free else 0.0

    def since(self, first: int) -> Replay:
        """The steps from this one on, as if nothing had been before."""
        return Replay(
            self.step,
            self.ratio,
            (round(self.free[first]), *self.began[first + 1 :]),
            self.came[first:],
            self.free[first:],
            self.counts[first:],
        )

    def waiting(self, places: float) -> list[tuple[int, float]]:
        """The steps in which tasks would wait for one of so many places, and how many would."""
        found: list[tuple[int, float]] = []
        resumed = 0
        for first, wanted in enumerate(self.free):
            if wanted > places and first >= resumed:
                resumed = self._wait(first, places, found)
        return found

    def _wait(self, first: int, places: float, found: list[tuple[int, float]]) -> int:
        """Add the steps from this one on, until all goes as with any number; that step."""
        came, free, began = self.came, self.free, self.began
        ratio, worked_off = self.ratio, self.ratio * places
        there = free[first] if began[first] is not None else free[first - 1]
        for step in range(first, len(free)):
            if began[step] is None:
                there = max(0.0, there + came[step])
                idle_after = there / (1 + ratio)
                there = idle_after if idle_after <= places else there - worked_off
            elif step > first:
                return step
            if there > places:
                found.append((step, there - places))
            elif there - free[step] < NEAR:
                return step
        return len(free)

    def felt(self, places: float, *, target: timedelta) -> float:
        """How long all tasks of a week wait together, in seconds that count."""
        minded = self._minded(places, target)
        total = 0.0
        for step, number in self.waiting(places):
            within = min(number, minded)
            total += self.counts[step] * (number - within * (1 - WITHIN_TARGET))
        return total * self._weekly()

    def waits(self, places: float) -> Waits:
        """The same as people are told of it, whatever they mind."""
        found = self.waiting(places)
        total = sum(self.counts[step] * number for step, number in found)
        return Waits(
            weekly=time_of(total * self._weekly()),
            worst=self._worst(found, places),
        )

    def _minded(self, places: float, target: timedelta) -> float:
        """How many tasks may wait, that the last of them waits no longer than the target."""
        return places * self.ratio * (target / self.step)

    def _weekly(self) -> float:
        """Seconds of a week by each unit of what all slots count."""
        total = sum(self.counts)
        return WEEK.total_seconds() / total if total else 0.0

    def _worst(self, found: Sequence[tuple[int, float]], places: float) -> timedelta | None:
        coming = [
            max(0.0, came) * count for came, count in zip(self.came, self.counts, strict=True)
        ]
        left = (1 - QUANTILE) * sum(coming)
        for number, step in sorted(((number, step) for step, number in found), reverse=True):
            left -= coming[step]
            if left < 0:
                if not places:
                    return None
                return time_of(self.step.total_seconds() * number / (places * self.ratio))
        return timedelta()


def _filled(samples: Sequence[Sample]) -> Iterator[Sample]:
    """Samples with what is missing among them as it was before."""
    before: Sample | None = None
    for sample in samples:
        if before is not None and sample.at - before.at <= GAP:
            for number in range(1, (sample.at - before.at) // SLOT):
                yield before._replace(at=before.at + number * SLOT)
        yield sample
        before = sample
