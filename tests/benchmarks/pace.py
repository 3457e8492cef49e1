"""A clock that may be faster than time, and may jump."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta


@dataclass(frozen=True, slots=True)
class Pace:
    """How time goes by for our code: ``speed`` times as fast as it does, and ahead of it.

    With more than 1 a simulated cloud's own durations have to be as much shorter.
    """

    speed: float = 1.0
    began: datetime = field(default_factory=lambda: datetime.now(UTC))
    ahead: list[timedelta] = field(default_factory=list)

    def __call__(self) -> datetime:
        """The time."""
        passed = (datetime.now(UTC) - self.began) * self.speed
        return self.began + passed + sum(self.ahead, timedelta(0))

    def skip(self, time: timedelta) -> None:
        """Let this much time be over."""
        self.ahead.append(time)
