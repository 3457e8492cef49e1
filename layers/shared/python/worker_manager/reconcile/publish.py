"""Events that their writer did not get to publish and that no scan reaches: sent again.

Where to read next: ``racks`` (those of static workers).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from worker_manager.reconcile.racks import look_after_racks
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from worker_manager.reconcile.expire import Keeper
    from worker_manager.store.places import Unpublished


def publish(keeper: Keeper) -> dict[str, Any]:
    """Publish what waits in the outbox, and look after static workers.

    What is younger than a list's lag may still be with its writer and is left to it.  What fails
    waits for the next time, and never stops the others.
    """
    old = keeper.clock() - keeper.timing.list_lag
    waiting = [item for item in keeper.stores.places.unpublished() if item.created < old]
    sent = sum(_send(item, keeper) for item in waiting)
    look_after_racks(keeper, old=old)
    if waiting:
        logger.info("published late", waiting=len(waiting), sent=sent)
    return {"waiting": len(waiting), "sent": sent}


def _send(item: Unpublished, keeper: Keeper) -> bool:
    try:
        return keeper.outbox.send(item.key, item.events)
    except Exception:
        logger.exception("events could not be published", key=item.key)
        return False
