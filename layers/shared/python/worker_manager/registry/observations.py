"""What a queue saw of a worker, whichever way we hear of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from worker_manager.core.model import WorkerKey


class Kind(StrEnum):
    """What a worker did, or what became of what it did."""

    IDLE = "idle"
    """It called for work and got none."""
    CLAIM = "claim"
    RECLAIM = "reclaim"
    RESOLVE = "resolve"
    """A run of its ended; also one that it lost without a word."""


CALLS = frozenset({Kind.IDLE, Kind.CLAIM})
"""Calls for work."""
UNKNOWN = "unknown"
"""How a run ended of which its queue has forgotten everything."""
ENDS = frozenset({"completed", "failed", "exception", UNKNOWN})
"""Ways in which a run ends."""


@dataclass(frozen=True, slots=True)
class Observation:
    """One thing that a queue saw.

    Raises ``ValueError`` when built without what its kind needs: a run, but for ``idle``; of
    ``resolve`` also the state.
    """

    key: WorkerKey
    kind: Kind
    at: datetime
    task_id: str | None = None
    run_id: int | None = None
    state: str | None = None
    reason: str | None = None
    began: datetime | None = None
    """Of ``resolve``: when the run was taken, where the queue tells that, too; it is right."""

    def __post_init__(self) -> None:
        if self.kind is not Kind.IDLE and (self.task_id is None or self.run_id is None):
            raise ValueError(f"{self.kind} of no run")
        if self.kind is Kind.RESOLVE and self.state not in ENDS:
            raise ValueError(f"a run cannot end as {self.state!r}")

    @property
    def is_sighting(self) -> bool:
        """Whether the worker itself was heard of; a run may end without it."""
        return self.kind is not Kind.RESOLVE or self.state in {"completed", "failed"}
