"""Whom to let go.

Decided in provision, where demand is known, and written on a row only when it changes.  Workers of
archived launch configs go first, whatever the demand.  Of the others, idle ones go before ones
that work, and of those the ones alive for the least time: the warm caches stay (S10).  Nobody is
killed for this; workers ask, finish what they do, and leave.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker_manager.core.model import State, Surplus, Worker, WorkerKey

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from datetime import datetime

NEEDED = "needed"
OVER_CAPACITY = "over capacity"
ARCHIVED = "launch config archived"
SPOT_INTERRUPTION = "spot interruption"
"""The cloud has said that it takes the machine back, within minutes; that stands."""


def is_interrupted(worker: Worker) -> bool:
    """Whether the cloud has said that it takes this worker's machine back."""
    return worker.surplus is not None and worker.surplus.reason == SPOT_INTERRUPTION


@dataclass(frozen=True, slots=True)
class Candidates:
    """Those who may be let go, and by how much they are too many.

    ``archived`` are workers of archived launch configs, ``current`` the others; ``excess`` is the
    capacity of ``current`` beyond the target.
    """

    current: tuple[Worker, ...]
    archived: tuple[Worker, ...]
    excess: int


def weigh(
    workers: Iterable[Worker], active: Collection[str], *, target: int, now: datetime
) -> Candidates:
    """Sort out who may be let go at all: workers that run and are not quarantined.

    One whose machine the cloud takes back is gone already, as far as its pool is concerned.
    ``active`` are ids of launch configs that are not archived; a worker without one is not either.
    """
    current: list[Worker] = []
    archived: list[Worker] = []
    for worker in workers:
        if worker.state is not State.RUNNING or worker.is_quarantined(now):
            continue
        if is_interrupted(worker):
            continue
        (current if _is_current(worker, active) else archived).append(worker)
    capacity = sum(worker.capacity for worker in current)
    return Candidates(tuple(current), tuple(archived), capacity - target)


def decide(
    candidates: Candidates, *, busy: Collection[WorkerKey], now: datetime
) -> list[tuple[Worker, Surplus]]:
    """The workers whose standing answer changes, with the new one.

    ``busy`` are the workers with tasks.
    """
    changes = [(worker, Surplus(True, ARCHIVED, now)) for worker in candidates.archived]
    beyond = candidates.excess
    for worker in sorted(
        candidates.current, key=lambda w: (w.key in busy, -_alive_since(w), w.key)
    ):
        goes = worker.capacity <= beyond
        if goes:
            beyond -= worker.capacity
        changes.append((worker, Surplus(goes, OVER_CAPACITY if goes else NEEDED, now)))
    return [(worker, surplus) for worker, surplus in changes if _differs(worker, surplus)]


def decide_static(
    workers: Iterable[Worker], active: Collection[str], *, now: datetime
) -> list[tuple[Worker, Surplus]]:
    """As ``decide`` for static workers, whom no demand lets go, only another launch config.

    To them it means: restart, and register anew.  One that registered without any has an old one
    too, once its pool has one (``active``).
    """
    changes = []
    for worker in workers:
        if worker.state is not State.RUNNING or worker.is_quarantined(now):
            continue
        goes = not has_current_config(worker, active)
        changes.append((worker, Surplus(goes, ARCHIVED if goes else NEEDED, now)))
    return [(worker, surplus) for worker, surplus in changes if _differs(worker, surplus)]


def has_current_config(worker: Worker, active: Collection[str]) -> bool:
    """Whether a static worker has the launch config of its pool, or neither has any."""
    return worker.launch_config_id in active if active else worker.launch_config_id is None


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
