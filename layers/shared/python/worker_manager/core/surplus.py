"""Whom to let go.

Decided in provision, where demand is known, and written on a row only when it changes.  Workers of
archived launch configs go first, whatever the demand.  Of the others, idle ones go before ones
that work, and of those the ones alive for the least time: the warm caches stay (S10).  Nobody is
killed for this; workers ask, finish what they do, and leave.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker_manager.core.model import State, Surplus, Worker, WorkerKey

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from datetime import datetime

NEEDED = "needed"
OVER_CAPACITY = "over capacity"
ARCHIVED = "launch config archived"


def asked(workers: Iterable[Worker], now: datetime) -> list[Worker]:
    """The workers that may be let go at all: running and not quarantined."""
    return [
        worker
        for worker in workers
        if worker.state is State.RUNNING and not worker.is_quarantined(now)
    ]


def excess(workers: Iterable[Worker], active: Collection[str], target: int) -> int:
    """Capacity beyond ``target`` among workers of active launch configs."""
    return sum(worker.capacity for worker in workers if _is_current(worker, active)) - target


def decide(
    workers: Iterable[Worker],
    active: Collection[str],
    *,
    target: int,
    busy: Collection[WorkerKey],
    now: datetime,
) -> list[tuple[Worker, Surplus]]:
    """The workers whose standing answer changes, with the new one.

    ``active`` are ids of launch configs that are not archived; ``busy`` the workers with tasks.
    """
    changes = []
    current = []
    for worker in asked(workers, now):
        if _is_current(worker, active):
            current.append(worker)
        else:
            changes.append((worker, Surplus(True, ARCHIVED, now)))
    beyond = excess(current, active, target)
    for worker in sorted(current, key=lambda w: (w.key in busy, -_alive_since(w), w.key)):
        goes = worker.capacity <= beyond
        if goes:
            beyond -= worker.capacity
        changes.append((worker, Surplus(goes, OVER_CAPACITY if goes else NEEDED, now)))
    return [(worker, surplus) for worker, surplus in changes if _differs(worker, surplus)]


def _is_current(worker: Worker, active: Collection[str]) -> bool:
    return worker.launch_config_id is None or worker.launch_config_id in active


def _alive_since(worker: Worker) -> float:
    return (worker.registered or worker.created).timestamp()


def _differs(worker: Worker, surplus: Surplus) -> bool:
    """A worker that was never told anything needs no row to say that it is needed."""
    before = worker.surplus
    if before is None:
        return surplus.terminate
    return (before.terminate, before.reason) != (surplus.terminate, surplus.reason)
