"""What becomes of things that were accepted: creations that fail, never end, deletions without
effect, cascades that leave something behind.

Calls that go wrong are ``faults``; a fate befalls what a well-answered call began.  Read next:
``lifecycle``, where a drawn fate takes effect.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random


class Step(StrEnum):
    """What a fate befalls."""

    CREATE = "create"
    DELETE = "delete"
    CASCADE = "cascade"
    """The deletion of a NIC, address or disk together with its holder."""


class Outcome(StrEnum):
    """What becomes of it."""

    FAIL = "fail"
    """It ends with ``code`` and ``message``; a machine stays, in state Failed, without power."""
    RUNS_ANYWAY = "runs_anyway"
    """The creation of a machine ends with ``code`` and ``message``, but it is powered."""
    NEVER_ENDS = "never_ends"
    """It stays in progress for good."""
    NO_EFFECT = "no_effect"
    """A deletion succeeds, as it says, and the resource stays as it was."""
    LEFT_BEHIND = "left_behind"
    """A cascade passes it by: it is detached and stays."""


@dataclass(slots=True)
class Fate:
    """A rule: what becomes of which step, how often.  ``*`` matches everything."""

    step: Step
    outcome: Outcome
    kind: str = "*"
    """The type of resource, by the last part of its name, or ``deployments``."""
    location: str = "*"
    instance_type: str = "*"
    name: str = "*"
    code: str = "AllocationFailed"
    message: str = (
        "Allocation failed. We do not have sufficient capacity for the requested VM size."
    )
    times: int | None = 1
    """How often it still happens; ``None`` is without end."""
    probability: float = 1.0

    def __post_init__(self) -> None:
        self.step, self.outcome = Step(self.step), Outcome(self.outcome)

    @property
    def error(self) -> dict[str, str]:
        """What an operation tells that ends so."""
        return {"code": self.code, "message": self.message}

    def befalls(self, **what: str) -> bool:
        """Whether the rule is about that."""
        return self.times != 0 and all(
            getattr(self, field) in ("*", value) for field, value in what.items()
        )


class Fates:
    """The rules in force, first match first.  Not thread-safe: the cloud's lock guards it."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._rules: list[Fate] = []

    def add(self, fate: Fate) -> None:
        """Put a rule behind those in force."""
        self._rules.append(fate)

    def clear(self) -> None:
        """Let everything go well again."""
        self._rules.clear()

    def draw(
        self, step: Step, kind: str, *, name: str, location: str = "", instance_type: str = ""
    ) -> Fate | None:
        """What befalls this step, if anything; the rule is used up by one."""
        for rule in self._rules:
            if rule.step is not step or not rule.befalls(
                kind=kind, name=name, location=location, instance_type=instance_type
            ):
                continue
            if rule.probability < 1.0 and self._rng.random() >= rule.probability:
                continue
            if rule.times is not None:
                rule.times -= 1
            return rule
        return None
