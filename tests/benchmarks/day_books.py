"""What the simulated day remembers of outcomes, as the stores keep it, in memory.

Where to read next: ``day_pool`` (who writes and reads), ``worker_manager.store.health`` and
``worker_manager.store.offerings`` (the real ones).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from worker_manager.core.breaker import Breaker, probe, recover, trip
from worker_manager.core.health import WINDOW, Health, add_up, bucket_of, failure_kind

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime


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
    """Breakers that pools share, as ``store.offerings`` keeps them."""

    def __init__(self) -> None:
        self._breakers: dict[str, Breaker] = {}

    def known(self, machines: Mapping[str, int], now: datetime) -> dict[str, Breaker]:
        """Those that failed within the hour; a quota is due where there are fewer machines by now.

        ``machines`` are by location, as the last list showed them.
        """
        found = {}
        for key, breaker in self._breakers.items():
            if breaker.is_closed and now - breaker.since > WINDOW:
                continue
            found[key] = breaker
            if breaker.is_closed or breaker.kind != "quota-exceeded":
                continue
            there = machines.get(key.partition("/")[0], 0)
            if breaker.machines is None:
                self._breakers[key] = replace(breaker, machines=there)
            elif there < breaker.machines:
                found[key] = replace(breaker, next_try=now)
        return found

    def claim(self, key: str, seen: Breaker, now: datetime) -> bool:
        """Whether this pool is the one that probes."""
        stored = self._breakers[key]
        if (stored.state, stored.since) != (seen.state, seen.since):
            return False
        self._breakers[key] = probe(seen, now)
        return True

    def failed(self, key: str, kind: str, now: datetime) -> None:
        """A call was refused."""
        self._breakers[key] = trip(self._breakers.get(key), kind, kind, now)

    def worked(self, key: str, now: datetime) -> None:
        """A probe got its machine."""
        before = self._breakers.get(key)
        if before is not None and not before.is_closed:
            self._breakers[key] = recover(before, now)
