"""Writing on workers' rows whether they should terminate, which is what they hear when they ask.

Where to read next: ``core.surplus`` (who should); ``provision`` and ``racks`` decide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker_manager.reconcile.side_by_side import side_by_side
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from worker_manager.core.model import Surplus, Worker
    from worker_manager.store.workers import WorkerStore


def write_answers(
    pool_id: str,
    changes: Sequence[tuple[Worker, Surplus]],
    workers: WorkerStore,
    *,
    parallel: int,
    may_write: Callable[[], bool] = lambda: True,
) -> None:
    """Write the answers that change on their rows, up to ``parallel`` side by side.

    What ``may_write`` no longer allows, or what somebody changed since it was read, is left to
    the next time, which finds the same.
    """

    def write(change: tuple[Worker, Surplus]) -> bool:
        worker, answer = change
        return may_write() and workers.change(worker, surplus=answer) is not None

    written = side_by_side(write, changes, parallel=parallel)
    if changes:
        logger.info(
            "surplus changed",
            pool=pool_id,
            told=sum(answer.terminate for _, answer in changes),
            changed=sum(written),
            left=len(changes) - sum(written),
        )
