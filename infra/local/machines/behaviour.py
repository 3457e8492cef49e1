"""How a machine behaves, and which machine behaves how.  Read next: ``machine``, ``worker``."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from infra.local.machines.assignment import Assignment
    from infra.local.machines.hypervisor import InstanceMetadata


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What a machine does with its life.  Durations are seconds."""

    boot_seconds: tuple[float, float] = (1.0, 3.0)
    """Shortest and longest boot; any time between is equally likely."""
    registers: bool = True
    claims: bool = True
    """Whether it does anything at all once it is registered."""
    keeps_credentials: bool = True
    """Whether it has them still after a reboot, or registers again."""
    hangs_in_task: bool = False
    """Claims once, then never calls anybody again."""
    reports_error: bool = False
    """Reports a start-up error after its registration, then leaves."""
    task_outcome: Literal["completed", "failed", "exception"] = "completed"
    task_seconds: float = 3.0
    """How long a task takes whose payload has no ``seconds``."""
    reclaim_seconds: float = 300.0
    """A task that takes longer is reclaimed on the way, at least this often."""
    capacity: int | None = None
    """Tasks at once; else ``workerConfig.capacity``, else 1."""
    poll_seconds: float = 2.0
    """Between one look for work and the next."""
    asks_every_pass: bool = True
    """Whether it asks to terminate before each claim, as stock workers do, or only when idle."""
    idle_seconds: float | None = None
    """Without work for so long counts as idle; else ``workerConfig.shutdown.afterIdleSeconds``."""
    retry_seconds: float = 5.0
    """Between attempts to register, where the service names no time."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Overrides for some machines; ``*`` matches all, ``share`` takes only a part of them."""

    overrides: Mapping[str, Any]
    worker_pool_id: str = "*"
    launch_config_id: str = "*"
    image_id: str = "*"
    instance_type: str = "*"
    share: float = 1.0
    """Which part of the matching machines; the same machine always falls on the same side."""

    def matches(self, instance: InstanceMetadata, assignment: Assignment) -> bool:
        """Whether this rule speaks of a machine, its share aside."""
        pairs = (
            (self.worker_pool_id, assignment.worker_pool_id),
            (self.launch_config_id, assignment.launch_config_id),
            (self.image_id, instance.image_id),
            (self.instance_type, instance.instance_type),
        )
        return all(wanted in ("*", got) for wanted, got in pairs)


@dataclass(frozen=True, slots=True)
class Rules:
    """The rule table: the first rule that takes a machine decides, else the default holds."""

    default: Behaviour = field(default_factory=Behaviour)
    rules: Sequence[Rule] = ()
    seed: int = 0

    @classmethod
    def from_document(cls, document: Mapping[str, Any], *, seed: int = 0) -> Rules:
        """Read ``{"default": {…}, "rules": [{"image_id": …, "overrides": {…}}]}``.

        Raises ``TypeError`` for an unknown field.
        """
        return cls(
            default=changed(Behaviour(), document.get("default", {})),
            rules=tuple(Rule(**rule) for rule in document.get("rules", ())),
            seed=seed,
        )

    def behaviour_of(self, instance: InstanceMetadata, assignment: Assignment) -> Behaviour:
        """What this machine is to do."""
        lot = self.rng_of(instance).random()
        for rule in self.rules:
            if rule.matches(instance, assignment) and lot < rule.share:
                return changed(self.default, rule.overrides)
        return self.default

    def rng_of(self, instance: InstanceMetadata) -> Random:
        """Chance for one machine, the same whenever it is asked for."""
        return Random(f"{self.seed}:{instance.instance_id}")


def changed(behaviour: Behaviour, overrides: Mapping[str, Any]) -> Behaviour:
    """A behaviour with some fields replaced; lists (from JSON) stand for tuples."""
    fields: dict[str, Any] = {
        k: tuple(v) if isinstance(v, list) else v for k, v in overrides.items()
    }
    return replace(behaviour, **fields)
