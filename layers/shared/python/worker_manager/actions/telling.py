"""What others are told of runs: that one was asked for, and how it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from worker_manager.core.events import ACTION_REQUESTED, ACTION_RESOLVED, action_event
from worker_manager.core.moments import to_wire

if TYPE_CHECKING:
    from worker_manager.actions.entities import Run

LONGEST = 1000
"""Characters of a reason or message that an event repeats."""


def requested_event(run: Run) -> dict[str, Any]:
    """Tell that somebody wants something done."""
    return action_event(ACTION_REQUESTED, run.run_id, _detail(run) | {"timestamp": _at(run)})


def resolved_event(run: Run) -> dict[str, Any]:
    """Tell how that ended."""
    return action_event(
        ACTION_RESOLVED,
        run.run_id,
        _detail(run)
        | {"timestamp": _at(run), "state": str(run.state), "message": run.message[:LONGEST]},
    )


def _at(run: Run) -> str:
    return to_wire(run.ended or run.requested)


def _detail(run: Run) -> dict[str, Any]:
    target = run.target
    return {
        "runId": run.run_id,
        "action": run.action.name,
        "provisionerId": target.provisioner_id,
        "workerPoolId": target.queue_id,
        "workerGroup": target.worker_group,
        "workerId": target.worker_id,
        "requestedBy": run.requested_by,
        "reason": run.reason[:LONGEST],
    }
