"""Static workers, once a minute: their late events, and whether to register anew.

No loop looks after them: nobody lists their machines, and no demand lets them go.  One whose
launch config is not its pool's is told to terminate, which to a machine that stays where it is
means: restart, and register again.  That gives it the launch config of now and takes the answer
back (``api.registration``).  A quarantined one is told like any other: it stays where it is, and in
quarantine, so that the queue need not be asked.  Where to read next: ``core.surplus``,
``telling_to_go``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker_manager.core.surplus import decide_static
from worker_manager.reconcile.telling_to_go import write_answers
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from worker_manager.core.model import Pool, Worker
    from worker_manager.reconcile.expire import Keeper

PARALLEL = 8


def look_after_racks(keeper: Keeper, *, old: datetime) -> None:
    """Look after every pool that has static workers; one pool's trouble never stops the others.

    Events written after ``old`` are left to their writer.
    """
    pools = {
        member.pool_id
        for provider_id in keeper.static
        for member in keeper.stores.places.of_provider(provider_id)[0]
    }
    for pool_id in sorted(pools):
        try:
            _look_after(pool_id, old, keeper)
        except Exception:
            logger.exception("static workers could not be looked after", pool=pool_id)


def _look_after(pool_id: str, old: datetime, keeper: Keeper) -> None:
    """One pool.  Its definition is read each time, which is little: it has one launch config."""
    live = keeper.stores.workers.live(pool_id)
    workers = [worker for worker in live if worker.provider_id in keeper.static]
    keeper.outbox.send_workers([w for w in workers if w.unsent and w.modified < old])
    pool = keeper.stores.pools.get(pool_id) if workers else None
    if pool is not None and not _is_planned(pool, keeper):
        _tell(pool, workers, keeper)


def _is_planned(pool: Pool, keeper: Keeper) -> bool:
    """Whether the pool has moved to a cloud, whose provisioning decides about all its workers."""
    return pool.provider_id in keeper.providers and pool.provider_id not in keeper.static


def _tell(pool: Pool, workers: Sequence[Worker], keeper: Keeper) -> None:
    """Write on each row whether the worker should terminate, where that changes."""
    active = {head.launch_config_id for head in pool.heads}
    changes = decide_static(workers, active, now=keeper.clock())
    write_answers(pool.pool_id, changes, keeper.stores.workers, parallel=PARALLEL)
