"""What is going to happen, in order of time.

Nothing runs in the background: whoever looks at the cloud first lets happen what is due.  Read
next: ``lifecycle``, which plans creations and deletions.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from itertools import count as counting
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True, order=True)
class _Entry:
    due: float
    number: int
    happen: Callable[[float], None] = field(compare=False)


class Agenda:
    """Things to come.  Not thread-safe: the cloud's lock guards it."""

    def __init__(self) -> None:
        self._entries: list[_Entry] = []
        self._numbers = counting()

    def plan(self, due: float, happen: Callable[[float], None]) -> None:
        """Let ``happen`` be called with its own time, ``due``."""
        heapq.heappush(self._entries, _Entry(due, next(self._numbers), happen))

    def run(self, now: float) -> None:
        """Let everything happen that is due, and what that entails."""
        while self._entries and self._entries[0].due <= now:
            entry = heapq.heappop(self._entries)
            entry.happen(entry.due)

    def clear(self) -> None:
        """Let nothing happen any more."""
        self._entries.clear()
