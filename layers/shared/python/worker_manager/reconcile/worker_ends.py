"""What becomes of a worker's claims when its machine ends, told by our own events.

Without it tasks of a machine that is known to be gone would wait until their claims run out, after
up to twenty minutes.  Events come twice, late, and in any order: all that is done with them is
harmless when it is done again.
Where to read next: ``worker_manager.queue.embedded``, ``worker_manager.registry.registry``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker_manager.core.events import WORKER_STOPPED
from worker_manager.core.lifecycle import OURSELVES
from worker_manager.core.model import WorkerKey
from worker_manager.core.moments import from_wire
from worker_manager.metrics import meter
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from worker_manager.core.model import Json
    from worker_manager.queue.embedded import EmbeddedQueue
    from worker_manager.registry.quarantines import Quarantines
    from worker_manager.registry.registry import Registry


@dataclass(frozen=True, slots=True)
class WorkerEnd:
    """A worker that ended, or was told to, at that time; ``is_final`` once its machine has."""

    key: WorkerKey
    at: datetime
    provider_id: str
    is_final: bool


@dataclass(frozen=True, slots=True)
class EndDeps:
    """What is told of it: the registry, and the queue where it is ours.

    ``static`` are the ids of providers whose machines come back.
    """

    registry: Registry
    quarantines: Quarantines
    queue: EmbeddedQueue | None
    static: frozenset[str]


def read_end(event: Json) -> WorkerEnd:
    """A worker's end from EventBridge's event; ``KeyError`` or ``ValueError`` for anything else."""
    detail = event["detail"]
    key = WorkerKey(detail["workerPoolId"], detail["workerGroup"], detail["workerId"])
    return WorkerEnd(
        key,
        from_wire(detail["timestamp"]),
        provider_id=detail["providerId"],
        is_final=event["detail-type"] == WORKER_STOPPED,
    )


def end_workers(ends: Mapping[str, WorkerEnd], deps: EndDeps) -> list[str]:
    """Resolve what these workers claim; the names of those for whom that failed.

    What a worker of the same name claimed after its end (one in a rack comes back) goes on.
    """
    failed = []
    for name, end in ends.items():
        try:
            _end(end, deps)
        except Exception:
            meter.crashed()
            logger.exception(
                "the end of a worker failed, it comes again",
                pool=end.key.pool_id,
                worker=end.key.worker_id,
            )
            failed.append(name)
    return failed


def _end(end: WorkerEnd, deps: EndDeps) -> None:
    key, resolved = end.key, 0
    if deps.queue is not None:
        resolved = deps.queue.worker_gone(key.pool_id, key.group, key.worker_id, gone=end.at)
    if end.is_final and end.provider_id not in deps.static:
        _leave(end, deps)
    if resolved:
        logger.info(
            "resolved claims of an ended worker",
            pool=key.pool_id,
            worker=key.worker_id,
            claims=resolved,
        )


def _leave(end: WorkerEnd, deps: EndDeps) -> None:
    """A machine of a cloud never comes back: its quarantine, which has no end, would never go.

    Where tasks are elsewhere the queue there has the last word on quarantines.
    """
    deps.registry.gone(end.key, at=end.at)
    worker = deps.registry.worker(end.key)
    if deps.queue is None or worker is None or not worker.gone or not worker.is_quarantined(end.at):
        return
    deps.quarantines.change(
        end.key, end.at, info="its machine is gone", client_id=OURSELVES, now=end.at
    )
