"""Events that their writer did not get to publish and that no scan reaches: sent again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from worker_manager.reconcile.expire import Keeper


def publish(keeper: Keeper) -> dict[str, Any]:
    """Publish what waits in the outbox, and what static workers have unsent.

    What is younger than a list's lag may still be with its writer and is left to it.
    """
    old = keeper.clock() - keeper.timing.list_lag
    waiting = [item for item in keeper.stores.places.unpublished() if item.created < old]
    sent = sum(keeper.outbox.send(item.key, item.events) for item in waiting)
    for provider_id in sorted(keeper.static):
        for member in keeper.stores.places.of_provider(provider_id)[0]:
            rows = keeper.stores.workers.live(member.pool_id)
            keeper.outbox.send_workers(
                row
                for row in rows
                if row.unsent and row.modified < old and row.provider_id in keeper.static
            )
    if waiting:
        logger.info("published late", waiting=len(waiting), sent=sent)
    return {"waiting": len(waiting), "sent": sent}
