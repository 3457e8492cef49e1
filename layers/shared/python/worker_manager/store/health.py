"""Rolling windows of outcomes: counters that are only added to, in buckets that expire."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker_manager.core.health import (
    FAILURE_KINDS,
    WINDOW,
    Health,
    add_up,
    bucket_of,
    failure_kind,
)

if TYPE_CHECKING:
    from datetime import datetime

    from worker_manager.store.tables import HealthItem, Tables


class HealthStore:
    """Table ``health``."""

    def __init__(self, tables: Tables) -> None:
        """Over bound tables."""
        self._model = tables.health

    def window(self, pool_id: str, now: datetime) -> dict[str, Health]:
        """Sums of the last hour by launch config: one range query for the whole pool."""
        first = f"{bucket_of(now - WINDOW):011d}"
        items = self._model.query(pool_id, self._model.sk > first)
        return add_up((item.sk.partition("#")[2], _to_health(item)) for item in items)

    def add(
        self,
        pool_id: str,
        launch_config_id: str,
        now: datetime,
        *,
        failed: str | None = None,
        failures: int = 1,
        **counts: int,
    ) -> None:
        """Add to the counters of one launch config (``requested=3``), or one kind of failure."""
        actions = [getattr(self._model, name).add(n) for name, n in counts.items() if n]
        if failed is not None and failures:
            actions.append(getattr(self._model, counter(failed)).add(failures))
        if not actions:
            return
        actions.append(self._model.ttl.set(int((now + 2 * WINDOW).timestamp())))
        item = self._model(pool_id, f"{bucket_of(now):011d}#{launch_config_id}")
        item.update(actions, add_version_condition=False)


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
    )
