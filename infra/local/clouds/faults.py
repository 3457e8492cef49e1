"""Things that go wrong on purpose: refusals, lost responses, calls that hang.

Each cloud derives a ``Fault`` with the fields by which it tells its calls apart.  Read next: a
cloud's ``service``, where a drawn fault takes effect.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping
    from random import Random
    from typing import Any


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
    code: str = "InternalError"
    message: str = "An internal error has occurred"
    seconds: float = 0.0
    times: int | None = 1
    """How many calls it still hits; ``None`` is without end."""
    probability: float = 1.0

    def __post_init__(self) -> None:
        self.kind = FaultKind(self.kind)

    def matches(self, call: Mapping[str, str]) -> bool:
        """Whether a call is of the kind that this rule hits; ``call`` has its fields by name."""
        return self.times != 0 and all(
            getattr(self, field) in ("*", value) for field, value in call.items()
        )


F = TypeVar("F", bound=Fault)


class Faults(Generic[F]):
    """The rules in force, first match first.  Not thread-safe: the cloud's lock guards it.

    ``rule`` is the cloud's own kind of ``Fault``.
    """

    def __init__(self, rule: type[F], rng: Random) -> None:
        self._rule = rule
        self._rng = rng
        self._rules: list[F] = []

    def add(self, fault: F) -> None:
        """Put a rule behind those in force."""
        self._rules.append(fault)

    def read(self, fields: Mapping[str, Any]) -> None:
        """Add a rule given by its fields; ``TypeError`` or ``ValueError`` for a senseless one."""
        self.add(self._rule(**fields))

    def clear(self) -> None:
        """Let everything go well again."""
        self._rules.clear()

    def draw(self, **call: str) -> F | None:
        """The fault that hits this call, if any; it is used up by one."""
        for rule in self._rules:
            if not rule.matches(call):
                continue
            if rule.probability < 1.0 and self._rng.random() >= rule.probability:
                continue
            if rule.times is not None:
                rule.times -= 1
            return rule
        return None
