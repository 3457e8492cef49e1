"""What every simulated cloud has: a clock, chance, a lock, settings, faults, buckets, counts.

Time comes from an injected clock and chance from an injected ``Random``, so that tests may let
hours pass at once.  The public attributes are the cloud's control side; ``control`` offers the same
over HTTP.  Read next: ``server``, which carries calls over HTTP.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from threading import RLock
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from infra.local.clouds.buckets import Buckets
from infra.local.clouds.capacity import Capacity
from infra.local.clouds.faults import Fault, Faults

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from _typeshed import DataclassInstance

S = TypeVar("S", bound="DataclassInstance")
F = TypeVar("F", bound=Fault)


class SimulatedCloud(Generic[S, F]):
    """One account of a cloud, with settings of type ``S`` and faults of type ``F``."""

    def __init__(
        self, settings: S, *, clock: Callable[[], float], rng: Random, fault: type[F]
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.rng = rng
        self.lock = RLock()
        """Held around every action; what the cloud has may be read while it is held."""
        self.capacity = Capacity()
        self.buckets = Buckets()
        self.faults = Faults(fault, rng)
        self.latency_seconds: dict[str, float] = {}
        """By action; ``*`` is every other one."""
        self.calls: Counter[tuple[str, str]] = Counter()
        """By action and place."""
        self.refusals: Counter[tuple[str, str]] = Counter()
        """By error code and place."""

    def change_settings(self, **changes: Any) -> None:
        """Replace some settings.  Raises ``TypeError`` for an unknown one."""
        with self.lock:
            self.settings = replace(self.settings, **changes)

    def reset(self) -> None:
        """Drop everything that was made, set up or counted; settings and keys stay."""
        with self.lock:
            self.capacity.clear()
            self.buckets = Buckets()
            self.faults.clear()
            self.latency_seconds.clear()
            self.reset_counts()

    def reset_counts(self) -> None:
        """Count calls from zero."""
        with self.lock:
            self.calls.clear()
            self.refusals.clear()

    def calls_of(self, action: str) -> int:
        """How often an action was called, in all places together."""
        with self.lock:
            return sum(n for (name, _), n in self.calls.items() if name == action)

    def latency_of(self, action: str) -> float:
        """Seconds that a call of this action takes."""
        return self.latency_seconds.get(action, self.latency_seconds.get("*", 0.0))
