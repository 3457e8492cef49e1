"""A queue elsewhere that tells by itself what it sees (``api.observations``).

It is not asked anything here.  A quarantine is recorded, and told on the bus
(``worker-quarantined``, ``worker-released``); whoever brings us the queue's news lets it take hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker_manager.core.errors import InputInvalidError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from worker_manager.core.model import WorkerKey
    from worker_manager.registry.observations import Observation


class EventsBackend:
    """What it knows, it has told."""

    def refresh(self, is_late: Callable[[], bool]) -> Mapping[str, int]:
        """What was seen comes by itself."""
        del is_late
        return {}

    def quarantine(self, key: WorkerKey, until: datetime, *, info: str) -> None:
        """The event that tells of it is all there is to do."""

    def outcome(self, key: WorkerKey, task_id: str, run_id: int) -> Observation | None:
        """Ends come by themselves, too."""
        del key, task_id, run_id
        return None

    def close(self, queue_id: str, until: datetime) -> None:
        """Nobody there would hear of it."""
        raise InputInvalidError("taskQueueId", f"{queue_id} is not a queue of ours")
