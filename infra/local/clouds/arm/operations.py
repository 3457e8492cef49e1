"""Asynchronous operations: what an accepted call is doing, and how it ended.

"Track asynchronous Azure operations" in the Azure Resource Manager documentation: an accepted call
answers with ``Azure-AsyncOperation`` (a status to read) and, or, ``Location``.  Read next:
``lifecycle``, which begins and ends them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class Status(StrEnum):
    """How an operation fares."""

    IN_PROGRESS = "InProgress"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    CANCELED = "Canceled"


@dataclass(slots=True, eq=False)
class Operation:
    """One of them.  Times are seconds on the cloud's clock."""

    operation_id: str
    provider: str
    location: str
    started_at: float
    ended_at: float | None = None
    status: Status = Status.IN_PROGRESS
    error: dict[str, Any] | None = None
    is_stuck: bool = False
    """Whether it will never end by itself."""
    when_over: list[Callable[[Operation, float], None]] = field(default_factory=list)
    """Called with the operation and the time once it is over."""

    @property
    def is_over(self) -> bool:
        """Whether it ended, well or not."""
        return self.status is not Status.IN_PROGRESS

    def end(self, now: float, error: dict[str, Any] | None = None) -> None:
        """Let it have succeeded, or failed with an error; later ends are ignored."""
        if self.is_over:
            return
        self.status = Status.FAILED if error else Status.SUCCEEDED
        self.ended_at, self.error = now, error
        for hear in self.when_over:
            hear(self, now)
        self.when_over.clear()


class Operations:
    """Those that are known.  Not thread-safe: the cloud's lock guards it."""

    def __init__(self) -> None:
        self._known: dict[str, Operation] = {}

    def begin(self, operation_id: str, provider: str, location: str, now: float) -> Operation:
        """A new operation in progress."""
        begun = Operation(operation_id, provider, location, now)
        self._known[operation_id] = begun
        return begun

    def get(self, operation_id: str, *, since: float) -> Operation | None:
        """An operation that is in progress or ended after ``since``."""
        found = self._known.get(operation_id)
        if found is not None and found.ended_at is not None and found.ended_at < since:
            del self._known[operation_id]
            return None
        return found

    def clear(self) -> None:
        """Forget all."""
        self._known.clear()
