"""Pools that moved to another provider, or were deleted: when is the old one done with them?

A provider stays a pool's *previous* one until its own complete lists show no machine of the pool
and it has no live row and no open plan there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker_manager.core.errors import ConflictError
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Iterable

    from worker_manager.core.model import Sighting
    from worker_manager.reconcile.deps import Deps
    from worker_manager.store.places import Membership


def leave_pools(members: Iterable[Membership], sightings: Iterable[Sighting], deps: Deps) -> None:
    """Leave every pool of which nothing is left; all locations must have been listed."""
    seen = {sighting.key.pool_id for sighting in sightings}
    for member in members:
        if member.previous and member.pool_id not in seen and _is_done(member.pool_id, deps):
            _leave(member.pool_id, deps)


def _is_done(pool_id: str, deps: Deps) -> bool:
    _, control = deps.stores.pools.get_with_control(pool_id)
    if deps.provider_id in control.open_plans.values():
        return False
    rows = deps.stores.workers.live(pool_id)
    return not any(worker.provider_id == deps.provider_id for worker in rows)


def _leave(pool_id: str, deps: Deps) -> None:
    pool = deps.stores.pools.get(pool_id)
    if pool is None or deps.provider_id not in pool.previous_provider_ids:
        return
    try:
        deps.stores.pools.drop_previous(pool, deps.provider_id)
    except ConflictError:
        return
    logger.info("left a pool", pool=pool_id, provider=deps.provider_id)
