"""A clock that stands still until told otherwise."""

from __future__ import annotations


class VirtualClock:
    """Seconds since 1970; starts in December 2026."""

    def __init__(self) -> None:
        self.now = 1_796_000_000.0

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds
