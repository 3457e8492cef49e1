"""What task queues had to do: a sample every five minutes, kept for four weeks.

Where to read next: ``store.load_table`` (how it is kept), ``waits`` (what follows from it).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from worker_manager.store.load_table import LoadTable

SLOT = timedelta(minutes=5)
"""From one sample to the next."""
WEEK = timedelta(weeks=1)
KEPT = 4 * WEEK
"""How long samples are kept."""


class Sample(NamedTuple):
    """A task queue at one moment; no figure is part of another."""

    at: datetime
    pending: int
    """Tasks that wait."""
    claimed: int
    """Tasks that workers hold."""
    workers: int
    """Workers that live and may take tasks."""
    quarantined: int
    """Workers that live and get no tasks."""


def slot_of(moment: datetime) -> datetime:
    """The beginning of the five minutes that a moment is in."""
    return moment.replace(minute=moment.minute - moment.minute % 5, second=0, microsecond=0)


class Loads:
    """The samples of all task queues; safe to use from threads and functions at once."""

    def __init__(self, table: LoadTable) -> None:
        """Over where they are kept."""
        self._table = table

    def note(self, queue_id: str, sample: Sample) -> None:
        """Keep a sample as that of its five minutes; told again, it is the same.  One write."""
        at = slot_of(sample.at)
        self._table.note(queue_id, at, sample[1:], until=at + KEPT + SLOT)

    def of(self, queue_id: str, *, since: datetime, until: datetime) -> list[Sample]:
        """A task queue's samples from ``since`` until before ``until``, in order."""
        found = self._table.read(queue_id, since=since, until=until)
        return [Sample(at, *figures) for at, figures in found]
