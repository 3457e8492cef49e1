"""How long this invocation may still work."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

RESERVE = timedelta(seconds=3)
"""Kept back for writing down what came of the last calls."""


class Runtime(Protocol):
    """What Lambda tells a function of its own call."""

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until the call is ended."""
        ...


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
    def of(cls, context: Runtime) -> Deadline:
        """That of a Lambda call, less what is needed to write down what it did."""
        return cls(lambda: timedelta(milliseconds=context.get_remaining_time_in_millis()) - RESERVE)

    @classmethod
    def after(cls, duration: timedelta) -> Deadline:
        """A deadline that never comes nearer; for callers without a runtime limit."""
        return cls(lambda: duration)


UNLIMITED = Deadline.after(timedelta.max)
"""For callers whom nobody ends."""
