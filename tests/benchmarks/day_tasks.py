"""The task queue of one pool in the simulated day: who waits, who works, who is idle."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from worker_manager.core.activity import QueueCounts

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from worker_manager.core.model import WorkerKey


@dataclass(frozen=True, slots=True)
class Task:
    """A task: when it came, and how long it takes."""

    created: datetime
    lasts: timedelta


@dataclass(frozen=True, slots=True)
class Waited:
    """A task that was claimed, and how long it had waited, in seconds."""

    created: datetime
    seconds: float


@dataclass
class TaskQueue:
    """First come, first served; ``idle`` workers are told since when they are."""

    pending: deque[Task] = field(default_factory=deque)
    working: set[WorkerKey] = field(default_factory=set)
    idle: dict[WorkerKey, datetime] = field(default_factory=dict)
    waited: list[Waited] = field(default_factory=list)

    @property
    def counts(self) -> QueueCounts:
        """What the queue tells of this pool."""
        return QueueCounts(pending=len(self.pending), claimed=len(self.working))

    def claim(self, key: WorkerKey, now: datetime) -> Task | None:
        """Give a worker the oldest task; without one it is idle."""
        if not self.pending:
            self.idle.setdefault(key, now)
            return None
        task = self.pending.popleft()
        self.idle.pop(key, None)
        self.working.add(key)
        self.waited.append(Waited(task.created, (now - task.created).total_seconds()))
        return task

    def forget(self, key: WorkerKey) -> None:
        """The worker is no more."""
        self.working.discard(key)
        self.idle.pop(key, None)
