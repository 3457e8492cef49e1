"""What the registry needs of the queue that gives tasks to workers.

Where to read next: ``builtin``, the simplest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from worker_manager.core.model import WorkerKey
    from worker_manager.registry.observations import Observation


class QueueBackend(Protocol):
    """A queue as the registry sees it; one that does not answer is a ``QueueUnavailableError``."""

    def refresh(self, is_late: Callable[[], bool]) -> Mapping[str, int]:
        """Bring the registry up to what the queue saw, until that says so; counts of what was done.

        What was not got to has its turn at a later one: nothing is left out for long.
        """
        ...

    def quarantine(self, key: WorkerKey, until: datetime, *, info: str) -> None:
        """Let a quarantine, or its end, take hold where tasks are given out."""
        ...

    def outcome(self, key: WorkerKey, task_id: str, run_id: int) -> Observation | None:
        """How a run of this worker ended; ``None`` if it did not yet, or if ends are not asked for.

        One that the queue has forgotten ended as ``observations.UNKNOWN``.
        """
        ...

    def close(self, queue_id: str, until: datetime) -> None:
        """Let a downtime of a whole type take hold; ``InputInvalidError`` where that cannot be."""
        ...
