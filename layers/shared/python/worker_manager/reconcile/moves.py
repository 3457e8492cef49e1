"""Pools that moved to another provider, or were deleted: when is the old one done with them?

A provider stays a pool's *previous* one until its own complete lists show no machine of the pool
and it has no live row and no open plan there.  Only the pool's own places matter, and a place that
was never listed cannot: one that does not exist would keep every pool for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker_manager.core.errors import ConflictError
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from worker_manager.core.model import Location, Sighting
    from worker_manager.reconcile.deps import Deps
    from worker_manager.store.places import Membership, Place


def absent(
    members: Iterable[Membership], location: Location, sightings: Iterable[Sighting]
) -> frozenset[str]:
    """The pools that moved away and may have machines in a location, of which a list shows none."""
    seen = {sighting.key.pool_id for sighting in sightings}
    return frozenset(
        member.pool_id
        for member in members
        if member.previous and location in member.places and member.pool_id not in seen
    )


def leave_pools(
    members: Iterable[Membership], places: Mapping[Location, Place], deps: Deps
) -> None:
    """Leave every pool of which nothing is left in any place that was ever listed."""
    for member in members:
        known = [places[name] for name in member.places if name in places]
        if member.previous and all(
            place.complete is None or member.pool_id in place.absent for place in known
        ):
            _leave_if_done(member.pool_id, deps)


def _leave_if_done(pool_id: str, deps: Deps) -> None:
    """The control item is read before the rows: a plan noted in between fails the write."""
    pool, control = deps.stores.pools.get_with_control(pool_id)
    if pool is None or deps.provider_id not in pool.previous_provider_ids:
        return
    if deps.provider_id in control.open_plans.values():
        return
    rows = deps.stores.workers.live(pool_id)
    if any(worker.provider_id == deps.provider_id for worker in rows):
        return
    try:
        deps.stores.pools.drop_previous(pool, control, deps.provider_id)
    except ConflictError:
        return
    logger.info("left a pool", pool=pool_id, provider=deps.provider_id)
