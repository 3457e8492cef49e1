"""Rolling windows of outcomes: counters that are only added to, in buckets that expire."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker_manager.core.breaker import shortened
from worker_manager.core.health import (
    FAILURE_KINDS,
    WINDOW,
    Health,
    add_up,
    bucket_of,
    failure_kind,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from worker_manager.store.tables import HealthItem, Tables


TIMED = ("launched", "registered", "claimed")
"""Outcomes of which it is also told when they came last."""


class HealthStore:
    """Table ``health``."""

    def __init__(self, tables: Tables) -> None:
        """Over bound tables."""
        self._model = tables.health

    def window(
        self, pool_id: str, now: datetime, *, since: Mapping[str, datetime] | None = None
    ) -> dict[str, Health]:
        """Sums of the last hour by launch config: one range query for the whole pool.

        ``since`` is from when on the outcomes of a launch config count, where those before were
        forgiven.
        """
        first = f"{bucket_of(now - WINDOW):011d}"
        items = self._model.query(pool_id, self._model.sk > first)
        parts = ((item.sk.partition("#"), _to_health(item)) for item in items)
        return add_up(((int(begin), name, health) for (begin, _, name), health in parts), since)

    def add(
        self,
        pool_id: str,
        launch_config_id: str,
        now: datetime,
        *,
        failed: str | None = None,
        failures: int = 1,
        reason: str = "",
        is_made: bool = True,
        **counts: int,
    ) -> None:
        """Add to the counters of one launch config (``launched=3``), or one kind of failure.

        ``reason`` is the failure's, in words.  ``is_made`` is false where what was launched is
        only accepted yet: that proves nothing until ``made`` tells of it.
        """
        model = self._model
        actions = [getattr(model, name).add(n) for name, n in counts.items() if n]
        timed = (n for n in counts if counts[n] and n in TIMED and (is_made or n != "launched"))
        actions += [getattr(model, f"{name}_at").set(now) for name in timed]
        if failed is not None and failures:
            actions += [
                getattr(model, counter(failed)).add(failures),
                model.failed_at.set(now),
                model.failed_kind.set(failure_kind(failed)),
                model.failed_reason.set(shortened(reason) or failed),
            ]
        if not actions:
            return
        actions.append(model.ttl.set(int((now + 2 * WINDOW).timestamp())))
        item = model(pool_id, f"{bucket_of(now):011d}#{launch_config_id}")
        item.update(actions, add_version_condition=False)

    def made(self, pool_id: str, launch_config_id: str, now: datetime) -> None:
        """A machine that was only accepted when it was counted exists now."""
        model = self._model
        item = model(pool_id, f"{bucket_of(now):011d}#{launch_config_id}")
        kept = int((now + 2 * WINDOW).timestamp())
        item.update([model.launched_at.set(now), model.ttl.set(kept)], add_version_condition=False)


def counter(kind: str) -> str:
    """Attribute that counts failures of ``kind``."""
    return "failed_" + failure_kind(kind).replace("-", "_")


def _to_health(item: HealthItem) -> Health:
    return Health(
        requested=int(item.requested or 0),
        launched=int(item.launched or 0),
        registered=int(item.registered or 0),
        claimed=int(item.claimed or 0),
        failed={
            kind: int(count)
            for kind in FAILURE_KINDS
            if (count := getattr(item, counter(kind))) is not None
        },
        launched_at=item.launched_at,
        registered_at=item.registered_at,
        claimed_at=item.claimed_at,
        failed_at=item.failed_at,
        failed_kind=item.failed_kind or "",
        failed_reason=item.failed_reason or "",
    )
