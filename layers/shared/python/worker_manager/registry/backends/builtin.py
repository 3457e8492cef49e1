"""Our own queue, which looks into the registry before it gives out a task, and writes into it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from worker_manager.core.model import WorkerKey
    from worker_manager.registry.observations import Observation


class BuiltinBackend:
    """There is nothing to carry from one to the other: both are the same rows."""

    def refresh(self, is_late: Callable[[], bool]) -> Mapping[str, int]:
        """Nothing is behind."""
        del is_late
        return {}

    def quarantine(self, key: WorkerKey, until: datetime, *, info: str) -> None:
        """The worker's row is where tasks are kept back."""

    def outcome(self, key: WorkerKey, task_id: str, run_id: int) -> Observation | None:
        """What ended is in the worker's row already."""
        del key, task_id, run_id
        return None

    def close(self, queue_id: str, until: datetime) -> None:
        """The type's row is where tasks are kept back."""
