"""Values for tests, each with keyword overrides for what the test is about."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from worker_manager.core.model import (
    LaunchConfigHead,
    Location,
    MachineStatus,
    Pool,
    Sighting,
    State,
    Worker,
    WorkerKey,
)
from worker_manager.core.plans import Order, Plan

if TYPE_CHECKING:
    from collections.abc import Sequence

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
POOL_ID = "proj-x/pool-1"
REGION = Location("us-east-1")


def a_head(launch_config_id: str = "lc-a", **overrides: Any) -> LaunchConfigHead:
    """A launch config's head; ``manager`` keys can be given as ``manager={...}``."""
    values: dict[str, Any] = {
        "location": REGION,
        "manager": {},
        "capacity_per_instance": 1,
        "modified": NOW,
    }
    return LaunchConfigHead(launch_config_id=launch_config_id, **(values | overrides))


def a_pool(
    pool_id: str = POOL_ID, heads: Sequence[LaunchConfigHead] | None = None, **overrides: Any
) -> Pool:
    """A pool of provider ``aws`` with a maximum of 10 and one launch config."""
    values: dict[str, Any] = {
        "provider_id": "aws",
        "description": "",
        "owner": "owner@example.com",
        "email_on_error": False,
        "config": {"minCapacity": 0, "maxCapacity": 10},
        "created": NOW,
        "modified": NOW,
        "version": 1,
    }
    chosen = tuple(heads) if heads is not None else (a_head(),)
    return Pool(pool_id=pool_id, heads=chosen, **(values | overrides))


def a_worker(worker_id: str = "i-1", *, pool_id: str = POOL_ID, **overrides: Any) -> Worker:
    """A running worker of ``lc-a``, an hour old."""
    born = NOW - timedelta(hours=1)
    values: dict[str, Any] = {
        "provider_id": "aws",
        "location": REGION,
        "state": State.RUNNING,
        "capacity": 1,
        "created": born,
        "modified": born,
        "version": 1,
        "launch_config_id": "lc-a",
    }
    group = overrides.pop("group", str(REGION))
    return Worker(key=WorkerKey(pool_id, group, worker_id), **(values | overrides))


def a_sighting(worker_id: str = "i-1", *, pool_id: str = POOL_ID, **overrides: Any) -> Sighting:
    """A running machine."""
    values: dict[str, Any] = {
        "location": REGION,
        "status": MachineStatus.RUNNING,
        "launch_config_id": "lc-a",
        "order_id": "o-1",
        "launched": NOW - timedelta(hours=1),
    }
    group = overrides.pop("group", str(REGION))
    return Sighting(key=WorkerKey(pool_id, group, worker_id), **(values | overrides))


def an_order(order_id: str = "o-1", **overrides: Any) -> Order:
    """A noted order of one machine."""
    values: dict[str, Any] = {
        "launch_config_id": "lc-a",
        "location": REGION,
        "count": 1,
        "capacity_per_instance": 1,
    }
    return Order(order_id=order_id, **(values | overrides))


def a_plan(tick: str = "t-1", *, pool_id: str = POOL_ID, **overrides: Any) -> Plan:
    """An open plan of provider ``aws`` with one order."""
    values: dict[str, Any] = {
        "provider_id": "aws",
        "now": NOW,
        "orders": (an_order(),),
        "facts": {},
        "reasons": (),
    }
    return Plan(pool_id=pool_id, tick=tick, **(values | overrides))
