"""Ends of life, once an hour: static workers, archived launch configs, places, deleted pools.

DynamoDB's own TTL takes rows that only have to vanish; here is what needs a look first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from worker_manager.core.errors import ConflictError
from worker_manager.core.lifecycle import expiry
from worker_manager.core.model import (
    NULL_PROVIDER,
    Location,
    Pool,
    State,
    Worker,
    WorkerKey,
)
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from worker_manager.core.timing import Timing
    from worker_manager.outbox import Outbox
    from worker_manager.reconcile.mailing import Post
    from worker_manager.registry.declarations import Declarations
    from worker_manager.store.places import Membership
    from worker_manager.store.stores import Stores


@dataclass(frozen=True, slots=True)
class Keeper:
    """What the scheduled functions that belong to no provider work with.

    ``static`` are the ids of providers without a cloud, ``providers`` all of them.  ``post`` is for
    e-mail, where the stage sends any; ``declarations`` are the registry's, for who looks after it.
    """

    stores: Stores
    outbox: Outbox
    clock: Callable[[], datetime]
    timing: Timing
    providers: Sequence[str]
    static: frozenset[str]
    post: Post | None = None
    declarations: Declarations | None = None


def expire(keeper: Keeper) -> dict[str, Any]:
    """End what has had its time, pool by pool; one pool's trouble never stops the others."""
    now = keeper.clock()
    members = {
        (provider_id, member.pool_id): member
        for provider_id in keeper.providers
        for member in keeper.stores.places.of_provider(provider_id)[0]
    }
    pools = failed = 0
    for pool_id in keeper.stores.pools.ids():
        try:
            _expire_pool(pool_id, members, now, keeper)
            pools += 1
        except ConflictError:
            logger.info("a pool changed while it was cleared", pool=pool_id)
        except Exception:
            failed += 1
            logger.exception("a pool could not be cleared", pool=pool_id)
    forgotten = keeper.declarations.purge(now=now) if keeper.declarations else 0
    logger.info("expired", pools=pools, failed=failed, forgotten=forgotten)
    return {"pools": pools, "failed": failed, "forgotten": forgotten}


def _expire_pool(
    pool_id: str,
    members: Mapping[tuple[str, str], Membership],
    now: datetime,
    keeper: Keeper,
) -> None:
    pool = keeper.stores.pools.get(pool_id)
    if pool is None:
        return
    if keeper.declarations and pool.provider_id in keeper.static:
        keeper.declarations.note_hardware(pool_id, now=now)
    rows = list(keeper.stores.workers.live(pool_id))
    live = [worker for worker in rows if worker.state is not State.STOPPED]
    ended = _end_static(live, now, keeper)
    live = [worker for worker in live if worker.key not in ended]
    _end_launch_configs(pool, live, now, keeper)
    for provider_id in (pool.provider_id, *pool.previous_provider_ids):
        member = members.get((provider_id, pool_id))
        if member is not None:
            used = {worker.location for worker in live}
            used |= {head.location for head in pool.heads if not member.previous}
            _leave_places(provider_id, member, used, now, keeper)
    pool = _leave_static(pool, rows, keeper)
    if pool.provider_id == NULL_PROVIDER and not pool.previous_provider_ids and not rows:
        keeper.stores.pools.remove(pool)
        logger.info("removed a deleted pool", pool=pool_id)


def _leave_static(pool: Pool, rows: Sequence[Worker], keeper: Keeper) -> Pool:
    """Leave static providers before the current one, once they have neither workers nor events.

    Providers with a cloud are left by their scans, which see the machines too (``moves``).
    """
    busy = {worker.provider_id for worker in rows}
    for provider_id in pool.previous_provider_ids:
        if provider_id in keeper.static and provider_id not in busy:
            control = keeper.stores.pools.control(pool.pool_id)
            pool = keeper.stores.pools.drop_previous(pool, control, provider_id)
            logger.info("left a pool", pool=pool.pool_id, provider=provider_id)
    return pool


def _end_static(live: Sequence[Worker], now: datetime, keeper: Keeper) -> set[WorkerKey]:
    """Static workers end when they expire; nobody scans them."""
    ended = []
    for worker in live:
        if worker.provider_id not in keeper.static or not worker.expires or worker.expires > now:
            continue
        written = keeper.stores.workers.change(worker, **expiry(worker, at=now))
        if written is not None:
            ended.append(written)
    keeper.outbox.send_workers(ended)
    return {worker.key for worker in ended}


def _end_launch_configs(pool: Pool, live: Sequence[Worker], now: datetime, keeper: Keeper) -> None:
    """Bodies of archived launch configs go once no live worker refers to them.

    One in use that was given an end is kept after all: it was archived and came back, or its pool
    was being changed while we looked.
    """
    used = {worker.launch_config_id for worker in live}
    used |= {head.launch_config_id for head in pool.heads}
    end = now + keeper.timing.launch_config_kept
    for name, ends in keeper.stores.pools.body_ends(pool.pool_id).items():
        if name in used and ends:
            keeper.stores.pools.keep_body(pool.pool_id, name)
        elif name not in used and not ends:
            keeper.stores.pools.expire_body(pool.pool_id, name, end)


def _leave_places(
    provider_id: str, member: Membership, used: set[Location], now: datetime, keeper: Keeper
) -> None:
    """Places without launch config and workers are forgotten after a month."""
    empty_since = {place: member.empty_since.get(place, now) for place in member.places - used}
    gone = {p for p, since in empty_since.items() if now - since > keeper.timing.location_kept}
    keeper.stores.places.note_empty(
        provider_id,
        member,
        empty_since={p: since for p, since in empty_since.items() if p not in gone},
        gone=gone,
    )
