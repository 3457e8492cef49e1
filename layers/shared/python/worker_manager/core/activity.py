"""What the task queue knows and we plan with: how much work there is, and who was heard of.

``taskcluster.queue`` asks for these values; ``tally``'s readers and the zombie rules use them, and
lists of workers show them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from worker_manager.core.model import Json


@dataclass(frozen=True, slots=True)
class Downtime:
    """A whole task queue is closed: none of its tasks is given out until then."""

    until: datetime
    since: datetime | None = None
    """When it was closed, or that was last changed."""
    by: str | None = None
    """Who said so, as a client id."""
    info: str = ""
    """Why."""


@dataclass(frozen=True, slots=True)
class QueueCounts:
    """Tasks of one pool by where they are; the two are disjoint and never negative.

    Raises ``ValueError`` when built with a negative number: no queue means that.
    """

    pending: int
    """Waiting for a worker."""
    claimed: int
    """Being worked on."""
    downtime: Downtime | None = None
    """Why no more of them are given out, if they are not."""

    @property
    def to_be_given(self) -> int:
        """Those waiting for which a worker is of use."""
        return 0 if self.downtime is not None else self.pending

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

    @property
    def is_seen(self) -> bool:
        """Whether the worker ever called; one may be quarantined before it does."""
        return self.first_claim is not None or self.last_active is not None


@dataclass(frozen=True, slots=True)
class SeenWorker:
    """One worker in a queue's list."""

    group: str
    worker_id: str
    activity: Activity
    latest_task: Json | None = None
    """``{taskId, runId}`` of what it claimed last."""

    @property
    def name(self) -> tuple[str, str]:
        """Its group and id, by which lists are ordered."""
        return self.group, self.worker_id


@dataclass(frozen=True, slots=True)
class WorkerHistory:
    """All that a queue knows of one worker."""

    activity: Activity
    first_claim: datetime | None
    """``None`` for one that was only spoken of."""
    expires: datetime
    """When the queue forgets it, unless it calls again."""
    recent_tasks: tuple[Json, ...] = ()
    """``{taskId, runId}``, oldest first."""
    quarantine_changes: tuple[Json, ...] = ()
    """``{clientId, updatedAt, quarantineUntil, quarantineInfo}``, oldest first."""
