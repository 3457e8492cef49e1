"""What the recommender needs, out of what the registry knows of a pool's workers.

Pure.  Where to read next: ``recommender``; ``api.mix``, which reads what is gathered here.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from worker_manager.mix.entities import Machine
from worker_manager.registry.figures import SILENCE, holds_task, outcomes_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from worker_manager.mix.entities import Wishes
    from worker_manager.registry.entities import RegistryWorker

CLASS = "machineClass"
"""In what is declared of a worker as ``extra``: which class of machines it is of."""
ENDED = frozenset({"completed", "failed"})
"""How runs end that tell how long tasks take."""


def machine_of(worker: RegistryWorker, wishes: Wishes, now: datetime) -> Machine | None:
    """A worker as a machine; ``None`` for one that was never seen, or is gone.

    One that says nothing of its class is of the first that its pool takes.
    """
    if worker.gone is not None or worker.last_seen is None:
        return None
    said = worker.extra.get(CLASS)
    outcomes = outcomes_of([worker], now)
    bad = outcomes.failed + outcomes.exceptions
    return Machine(
        key=worker.key,
        machine_class=said if isinstance(said, str) else wishes.classes[0],
        is_busy=holds_task(worker),
        last_claim=worker.last_claim,
        bad_share=bad / max(1, bad + outcomes.completed),
        unusable=_unusable(worker, worker.last_seen, now),
    )


def _unusable(worker: RegistryWorker, last_seen: datetime, now: datetime) -> str:
    if worker.is_quarantined(now):
        return "quarantined"
    return "silent" if last_seen + SILENCE < now else ""


def service_of(workers: Iterable[RegistryWorker]) -> timedelta | None:
    """How long their latest tasks took, on average; ``None`` if none has ended."""
    took = [
        claim.resolved - claim.claimed
        for worker in workers
        for claim in worker.claims
        if claim.state in ENDED and claim.resolved is not None
    ]
    return sum(took, timedelta()) / len(took) if took else None


def slots_of(workers: Iterable[RegistryWorker]) -> float:
    """Tasks that one of them runs at once, on average; one where nothing is declared."""
    declared = [worker.capacity or 1 for worker in workers]
    return sum(declared) / len(declared) if declared else 1.0
