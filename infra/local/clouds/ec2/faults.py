"""Things that go wrong on purpose: refusals, lost responses, calls that hang.

Read next: ``service``, where a drawn fault takes effect.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random


class FaultKind(StrEnum):
    """What a fault does to a call."""

    ERROR = "error"
    """Refuse with ``code`` and ``message``, without acting."""
    DROP = "drop"
    """Close the connection without acting or answering."""
    HANG = "hang"
    """Neither act nor answer for ``seconds``, then close the connection."""
    LOST = "lost"
    """Act, then close the connection (after ``seconds``) instead of answering."""


@dataclass(slots=True)
class Fault:
    """A rule: which calls go wrong, how, how often.  ``*`` matches everything."""

    kind: FaultKind
    action: str = "*"
    region: str = "*"
    image_id: str = "*"
    instance_type: str = "*"
    code: str = "InternalError"
    message: str = "An internal error has occurred"
    seconds: float = 0.0
    times: int | None = 1
    """How many calls it still hits; ``None`` is without end."""
    probability: float = 1.0

    def __post_init__(self) -> None:
        self.kind = FaultKind(self.kind)

    def matches(self, *, action: str, region: str, image_id: str, instance_type: str) -> bool:
        """Whether a call is of the kind that this rule hits."""
        pairs = (
            (self.action, action),
            (self.region, region),
            (self.image_id, image_id),
            (self.instance_type, instance_type),
        )
        return self.times != 0 and all(wanted in ("*", got) for wanted, got in pairs)


class Faults:
    """The rules in force, first match first.  Not thread-safe: the cloud's lock guards it."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._rules: list[Fault] = []

    def add(self, fault: Fault) -> None:
        """Put a rule behind those in force."""
        self._rules.append(fault)

    def clear(self) -> None:
        """Let everything go well again."""
        self._rules.clear()

    def draw(self, *, action: str, region: str, image_id: str, instance_type: str) -> Fault | None:
        """The fault that hits this call, if any; it is used up by one."""
        for rule in self._rules:
            if not rule.matches(
                action=action, region=region, image_id=image_id, instance_type=instance_type
            ):
                continue
            if rule.probability < 1.0 and self._rng.random() >= rule.probability:
                continue
            if rule.times is not None:
                rule.times -= 1
            return rule
        return None
