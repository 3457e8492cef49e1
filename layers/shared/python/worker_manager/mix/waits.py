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


@dataclass(frozen=True, slots=True)
class Replay:
    """What a pool was asked for, slot by slot, and what would have come of it."""

    ratio: float
    """Tasks that one place works off within a slot."""
    began: tuple[int | None, ...]
    """How many tasks were there, where nothing is known of the time before; else ``None``."""
    came: tuple[float, ...]
    """Tasks, less those that left without being worked on."""
    free: tuple[float, ...]
    """How many would be worked on with any number of machines."""
    counts: tuple[float, ...]
    """What a slot counts, by its age."""

    @classmethod
    def of(cls, samples: Sequence[Sample], *, service: timedelta, now: datetime) -> Replay:
        """From samples in order, of a pool whose tasks take so long."""
        ratio = SLOT / max(service, timedelta(seconds=1))
        began: list[int | None] = []
        came: list[float] = []
        free: list[float] = []
        counts: list[float] = []
        before: Sample | None = None
        for sample in _filled(samples):
            there = sample.pending + sample.claimed
            if before is None or sample.at - before.at > SLOT:
                began.append(there)
                came.append(0.0)
                free.append(float(there))
            else:
                arrived = there - before.pending - before.claimed + ratio * sample.claimed
                began.append(None)
                came.append(arrived)
                free.append(max(0.0, free[-1] + arrived) / (1 + ratio))
            counts.append(FADING ** ((now - sample.at) // WEEK))
            before = sample
        return cls(ratio, tuple(began), tuple(came), tuple(free), tuple(counts))

    @property
    def demand(self) -> float:
        """Places that 95 of 100 slots would keep at work."""
        return sorted(self.free)[int(len(self.free) * QUANTILE)] if self.free else 0.0

    def since(self, first: int) -> Replay:
        """The slots from this one on, as if nothing had been before."""
        return Replay(
            self.ratio,
            (round(self.free[first]), *self.began[first + 1 :]),
            self.came[first:],
            self.free[first:],
            self.counts[first:],
        )

    def waiting(self, places: float) -> Iterator[tuple[int, float]]:
        """The slots in which tasks would wait for one of so many places, and how many would."""
        resumed = 0
        for first, wanted in enumerate(self.free):
            if wanted <= places or first < resumed:
                continue
            there = self.free[first - 1] if first and self.began[first] is None else wanted
            resumed = first
            while resumed < len(self.free):
                began = self.began[resumed]
                if began is not None and resumed > first:
                    break
                there = float(began) if began is not None else self._next(there, resumed, places)
                if there > places:
                    yield resumed, there - places
                elif there - self.free[resumed] < 0.5:
                    break
                resumed += 1

    def _next(self, there: float, slot: int, places: float) -> float:
        """How many tasks are there at a slot's end, of those at its beginning and what came."""
        there = max(0.0, there + self.came[slot])
        worked_on = there / (1 + self.ratio)
        return worked_on if worked_on <= places else there - self.ratio * places

    def felt(self, places: float, *, target: timedelta) -> float:
        """How long all tasks of a week wait together, in seconds that count."""
        minded = self._minded(places, target)
        total = 0.0
        for slot, number in self.waiting(places):
            within = min(number, minded)
            total += self.counts[slot] * (number - within * (1 - WITHIN_TARGET))
        return total * self._weekly()

    def waits(self, places: float, *, target: timedelta) -> Waits:
        """The same with more to tell."""
        found = list(self.waiting(places))
        total = sum(self.counts[slot] * number for slot, number in found)
        return Waits(
            weekly=timedelta(seconds=total * self._weekly()),
            felt=timedelta(seconds=self.felt(places, target=target)),
            worst=self._worst(found, places),
        )

    def _minded(self, places: float, target: timedelta) -> float:
        """How many tasks may wait, that the last of them waits no longer than the target."""
        return places * self.ratio * (target / SLOT)

    def _weekly(self) -> float:
        """Seconds of a week by each unit of what all slots count."""
        total = sum(self.counts)
        return WEEK.total_seconds() / total if total else 0.0

    def _worst(self, found: Sequence[tuple[int, float]], places: float) -> timedelta | None:
        coming = [
            max(0.0, came) * count for came, count in zip(self.came, self.counts, strict=True)
        ]
        left = (1 - QUANTILE) * sum(coming)
        for number, slot in sorted(((number, slot) for slot, number in found), reverse=True):
            left -= coming[slot]
            if left < 0:
                return SLOT * (number / (places * self.ratio)) if places else None
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
