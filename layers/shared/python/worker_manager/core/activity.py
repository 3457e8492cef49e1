"""What the task queue knows and we plan with: how much work there is, and who was heard of.

``taskcluster.queue`` asks for these values; ``tally``'s readers and the zombie rules use them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


@dataclass(frozen=True, slots=True)
class QueueCounts:
    """Tasks of one pool by where they are; the two are disjoint and never negative.

    Raises ``ValueError`` when built with a negative number: no queue means that.
    """

    pending: int
    """Waiting for a worker."""
    claimed: int
    """Being worked on."""

    def __post_init__(self) -> None:
        if self.pending < 0 or self.claimed < 0:
            raise ValueError(f"negative counts: {self.pending} pending, {self.claimed} claimed")


@dataclass(frozen=True, slots=True)
class Activity:
    """When the queue heard of one worker.  ``None`` is "unknown", which is not "never"."""

    first_claim: datetime | None = None
    """Its first call for work, whether or not there was any."""
    last_active: datetime | None = None
    """Its latest call; a queue may tell it up to half an hour late."""
    quarantine_until: datetime | None = None
    """Until when it gets no tasks; ``None`` when it is not quarantined."""
