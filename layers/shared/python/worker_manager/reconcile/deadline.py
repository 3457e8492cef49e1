"""How long this invocation may still work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Deadline:
    """Time left, as the runtime tells it.

    Nothing that cannot be finished in the time left is begun: the next tick does it.
    """

    remaining: Callable[[], timedelta]

    def allows(self, duration: timedelta) -> bool:
        """Whether work of ``duration`` may still begin."""
        return self.remaining() > duration

    @classmethod
    def after(cls, duration: timedelta) -> Deadline:
        """A deadline that never comes nearer; for callers without a runtime limit."""
        return cls(lambda: duration)
