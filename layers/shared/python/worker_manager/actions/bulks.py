"""Many runs that were asked for as one: what that is about, and how it is stopped.

A bulk has a row, which says what it is about and whether it was stopped, and a line for each of
its runs.  Once it was stopped no further run of it is made, and none that waits is taken up.
Read next: ``ledger``, whose runs they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker_manager.actions.records import KEPT
from worker_manager.core.errors import ConflictError, DuplicateError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from worker_manager.actions.ledger import Runs

AT_ONCE = 100
"""Runs that are read with one request."""


def begin(runs: Runs, bulk_id: str, about: str, *, now: datetime) -> None:
    """Note what a bulk is about, as a text.

    ``DuplicateError`` if it is about something else, ``ConflictError`` if it was stopped.
    """
    noted, is_stopped = runs.table.begin_bulk(bulk_id, about, kept=now + KEPT)
    if noted != about:
        raise DuplicateError(f"bulk {bulk_id} is about something else")
    if is_stopped:
        raise ConflictError(f"bulk {bulk_id} was stopped")


def about(runs: Runs, bulk_id: str) -> str:
    """What a bulk is about.  ``NotFoundError`` if there is none."""
    noted = runs.table.bulk(bulk_id)
    if noted is None:
        raise NotFoundError(f"bulk {bulk_id} is not known")
    return noted[0]


def stop(
    runs: Runs, bulk_id: str, *, by: str, now: datetime, is_late: Callable[[], bool]
) -> tuple[int, bool]:
    """Let there be no further runs of a bulk, and cancel those that are open, while there is time.

    How many were cancelled, and whether that was all of them: if not, the same again goes on.
    ``NotFoundError`` if there is no such bulk.
    """
    about(runs, bulk_id)
    runs.table.stop_bulk(bulk_id)
    run_ids = runs.table.runs_of_bulk(bulk_id)
    cancelled = 0
    for first in range(0, len(run_ids), AT_ONCE):
        for run in runs.get_many(run_ids[first : first + AT_ONCE]):
            if run.state.is_final:
                continue
            if cancelled and is_late():
                return cancelled, False
            cancelled += _cancel(runs, run.run_id, by=by, now=now)
    return cancelled, True


def _cancel(runs: Runs, run_id: str, *, by: str, now: datetime) -> bool:
    """Cancel a run; false if it has ended meanwhile."""
    try:
        runs.cancel(run_id, by=by, reason="its bulk was stopped", now=now)
    except (ConflictError, NotFoundError):
        return False
    return True
