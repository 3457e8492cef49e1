"""Events that their writer did not get to publish and that no scan reaches: sent again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from datetime import datetime

    from worker_manager.reconcile.expire import Keeper
    from worker_manager.store.places import Unpublished


def publish(keeper: Keeper) -> dict[str, Any]:
    """Publish what waits in the outbox, and what static workers have unsent.

    What is younger than a list's lag may still be with its writer and is left to it.  What fails
    waits for the next time, and never stops the others.
    """
    old = keeper.clock() - keeper.timing.list_lag
    waiting = [item for item in keeper.stores.places.unpublished() if item.created < old]
    sent = sum(_send(item, keeper) for item in waiting)
    for provider_id in sorted(keeper.static):
        for member in keeper.stores.places.of_provider(provider_id)[0]:
            _send_rows(member.pool_id, old, keeper)
    if waiting:
        logger.info("published late", waiting=len(waiting), sent=sent)
    return {"waiting": len(waiting), "sent": sent}


def _send(item: Unpublished, keeper: Keeper) -> bool:
    try:
        return keeper.outbox.send(item.key, item.events)
    except Exception:
        logger.exception("events could not be published", key=item.key)
        return False


def _send_rows(pool_id: str, old: datetime, keeper: Keeper) -> None:
    """What one pool's static workers have unsent."""
    try:
        keeper.outbox.send_workers(
            row
            for row in keeper.stores.workers.live(pool_id)
            if row.unsent and row.modified < old and row.provider_id in keeper.static
        )
    except Exception:
        logger.exception("events of workers could not be published", pool=pool_id)
