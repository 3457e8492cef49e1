"""What the simulated day remembers of outcomes, as the stores keep it, in memory.

Where to read next: ``day_pool`` (who writes and reads), ``worker_manager.store.health`` and
``worker_manager.store.offerings`` (the real ones).
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from worker_manager.core.breaker import Breaker, BreakerState, probe, recover, trip
from worker_manager.core.health import WINDOW, Health, add_up, bucket_of, failure_kind
from worker_manager.core.model import Location
from worker_manager.core.sightings import Baseline
from worker_manager.observing import freed
from worker_manager.reconcile.healing import count_machines

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime

PROVIDER = "aws"


class HealthBook:
    """The rolling windows of one pool, as ``store.health`` keeps them."""

    def __init__(self) -> None:
        self._buckets: dict[tuple[int, str], Health] = {}

    def window(
        self, _pool_id: str, now: datetime, *, since: Mapping[str, datetime]
    ) -> dict[str, Health]:
        """Sums of the last hour by launch config."""
        first = bucket_of(now - WINDOW)
        for key in [key for key in self._buckets if key[0] < first]:
            del self._buckets[key]
        return add_up(((begin, name, part) for (begin, name), part in self._buckets.items()), since)

    def add(
        self,
        name: str,
        now: datetime,
        *,
        failed: str | None = None,
        failures: int = 1,
        **counts: int,
    ) -> None:
        """Add to the counters of one launch config, or one kind of failure."""
        key = bucket_of(now), name
        before = self._buckets.get(key, Health())
        changes: dict[str, Any] = {
            outcome: getattr(before, outcome) + number for outcome, number in counts.items()
        }
        changes |= {
            f"{outcome}_at": now
            for outcome, number in counts.items()
            if number and outcome != "requested"
        }
        if failed is not None and failures:
            kind = failure_kind(failed)
            sums = {**before.failed, kind: before.failed.get(kind, 0) + failures}
            changes |= {
                "failed": sums,
                "failed_at": now,
                "failed_kind": kind,
                "failed_reason": failed,
            }
        self._buckets[key] = replace(before, **changes)


class OfferingBook:
    """Breakers that pools share, with what ``store.offerings`` answers."""

    def __init__(self) -> None:
        self.breakers: dict[str, Breaker] = {}

    def brought_along(self, machines: Mapping[str, int], now: datetime) -> dict[str, Breaker]:
        """What a tick's messages bring along: those that failed within the hour, as freed.

        ``machines`` are by location, as the last list showed them, at ``now``.
        """
        lately = {
            key: breaker
            for key, breaker in self.breakers.items()
            if not breaker.is_closed or now - breaker.since <= WINDOW
        }
        places = {
            Location(key.partition("/")[0]): SimpleNamespace(
                complete=now, baseline=Baseline(machines.get(key.partition("/")[0], 0))
            )
            for key in lately
        }
        survey: Any = SimpleNamespace(offerings=lately, places=places)
        count_machines(survey, self.deps())
        return freed(survey, now)

    def known(
        self, _provider_id: str, offerings: Collection[str], *, now: datetime
    ) -> dict[str, Breaker]:
        """Those of ``offerings`` that failed."""
        return {key: self.breakers[key] for key in offerings if key in self.breakers}

    def deps(self) -> Any:
        """What ``reconcile.healing`` needs of everything."""
        return SimpleNamespace(provider_id=PROVIDER, stores=SimpleNamespace(offerings=self))

    def claim(self, _provider_id: str, key: str, seen: Breaker, at: datetime) -> bool:
        """Whether this pool is the one that probes."""
        if self.breakers[key].since != seen.since:
            return False
        self.breakers[key] = probe(seen, at)
        return True

    def counted(self, _provider_id: str, key: str, _seen: Breaker, after: Breaker) -> None:
        """What a tick found out about an open one."""
        self.breakers[key] = after

    def failed(self, key: str, kind: str, at: datetime) -> None:
        """A call was refused."""
        self.breakers[key] = trip(self.breakers.get(key), kind, kind, at)

    def worked(self, key: str, at: datetime) -> None:
        """A probe got its machine."""
        before = self.breakers.get(key)
        if before is not None and before.state is BreakerState.HALF_OPEN:
            self.breakers[key] = recover(before, at)
