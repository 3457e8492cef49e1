"""How a task is written down: on the wire, in the table, and in its queue's lists.

All three follow from the task alone.  Read next: ``ledger``, which moves tasks along.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from worker_manager.core.model import Json, canonical_json
from worker_manager.core.moments import from_wire, to_wire
from worker_manager.queue.tasks import PRIORITIES, Run, RunState, Task
from worker_manager.store.queue_rows import Line, Listed, StoredTask

if TYPE_CHECKING:
    from datetime import datetime

    from worker_manager.core.activity import Downtime


def line_of(task: Task) -> Line | None:
    """The line of the task's last run in its queue's lists; ``None`` once it is resolved."""
    run, deadline = task.last, task.deadline
    name = f"{task.task_id}#{run.run_id:03d}"
    if run.state is RunState.PENDING:
        rank = PRIORITIES.index(task.definition["priority"])
        order = f"{rank}#{to_wire(run.scheduled)}#{name}"
        return Line(task.queue_id, Listed.PENDING, order, task.task_id, deadline, deadline)
    if run.state is RunState.RUNNING and run.taken_until is not None:
        order = f"{to_wire(run.taken_until)}#{name}"
        return Line(
            queue_id=task.queue_id,
            listed=Listed.CLAIMED,
            order=order,
            task_id=task.task_id,
            until=run.taken_until,
            deadline=deadline,
            holder=holder_of(str(run.worker_group), str(run.worker_id)),
        )
    return None


def downtime_of(downtime: Downtime) -> dict[str, Any]:
    """Why a queue gives out nothing, among its counts."""
    told = {
        "closedUntil": to_wire(downtime.until),
        "closedAt": to_wire(downtime.since) if downtime.since else None,
        "closedBy": downtime.by,
        "closedInfo": downtime.info,
    }
    return {name: value for name, value in told.items() if value}


def holder_of(group: str, worker_id: str) -> str:
    """A worker within its queue, as the line of a claim names it."""
    return f"{group}#{worker_id}"


def status_of(task: Task) -> dict[str, Any]:
    """Taskcluster's task status structure."""
    definition = task.definition
    return {
        "taskId": task.task_id,
        **{
            name: definition[name]
            for name in (
                "provisionerId",
                "workerType",
                "taskQueueId",
                "schedulerId",
                "projectId",
                "taskGroupId",
                "deadline",
                "expires",
            )
        },
        "retriesLeft": task.retries_left,
        "state": str(task.last.state),
        "runs": [_run_to_wire(run) for run in task.runs],
    }


def waiting_of(task: Task) -> dict[str, Any]:
    """One item of Taskcluster's list of pending tasks."""
    return {
        "taskId": task.task_id,
        "runId": task.last.run_id,
        "inserted": to_wire(task.last.scheduled),
        "task": dict(task.definition),
    }


def claim_of(task: Task) -> dict[str, Any]:
    """One item of Taskcluster's list of claimed tasks."""
    run = task.last
    return {
        "taskId": task.task_id,
        "runId": run.run_id,
        "workerGroup": run.worker_group,
        "workerId": run.worker_id,
        "claimed": to_wire(run.started or run.scheduled),
        "task": dict(task.definition),
    }


def to_stored(task: Task) -> StoredTask:
    """The task as the table keeps it."""
    status = {"retriesLeft": task.retries_left, "runs": [_run_to_wire(run) for run in task.runs]}
    return StoredTask(
        task_id=task.task_id,
        definition=canonical_json(task.definition),
        status=canonical_json(status),
        expires=task.expires,
        version=task.version,
    )


def from_stored(stored: StoredTask) -> Task:
    """Back from the table."""
    status = json.loads(stored.status)
    return Task(
        task_id=stored.task_id,
        definition=json.loads(stored.definition),
        retries_left=status["retriesLeft"],
        runs=tuple(_run_from_wire(run) for run in status["runs"]),
        version=stored.version,
    )


def _run_to_wire(run: Run) -> dict[str, Any]:
    wire: dict[str, Any] = {
        "runId": run.run_id,
        "state": str(run.state),
        "reasonCreated": run.reason_created,
        "scheduled": to_wire(run.scheduled),
    }
    texts = {
        "reasonResolved": run.reason_resolved,
        "workerGroup": run.worker_group,
        "workerId": run.worker_id,
    }
    moments = {
        "takenUntil": run.taken_until,
        "started": run.started,
        "resolved": run.resolved,
    }
    wire |= {name: text for name, text in texts.items() if text is not None}
    return wire | {name: to_wire(at) for name, at in moments.items() if at is not None}


def _run_from_wire(wire: Json) -> Run:
    def moment(name: str) -> datetime | None:
        return from_wire(wire[name]) if name in wire else None

    return Run(
        run_id=wire["runId"],
        reason_created=wire["reasonCreated"],
        scheduled=from_wire(wire["scheduled"]),
        state=RunState(wire["state"]),
        worker_group=wire.get("workerGroup"),
        worker_id=wire.get("workerId"),
        taken_until=moment("takenUntil"),
        started=moment("started"),
        resolved=moment("resolved"),
        reason_resolved=wire.get("reasonResolved"),
    )
