"""A task and its runs: which states there are, and how one follows another.

Everything is a value: a function takes a task and returns the next one.  ``settle`` is what time
alone does to a task, so that reading a task tells the truth without writing it.  States, reasons
and retries are Taskcluster's.  Read next: ``records``, how a task is written down.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from worker_manager.core.errors import ConflictError, NotFoundError
from worker_manager.core.moments import from_wire

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime, timedelta

    from worker_manager.core.model import Json

PRIORITIES = ("highest", "very-high", "high", "medium", "low", "very-low", "lowest")
"""From what is claimed first to what is claimed last."""


class RunState(StrEnum):
    """Where a run is; a task is where its last run is."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    EXCEPTION = "exception"


OPEN = frozenset({RunState.PENDING, RunState.RUNNING})


@dataclass(frozen=True, slots=True)
class Resolution:
    """How a run ends.  ``retry`` is why a new run is made, if one is."""

    state: RunState
    reason: str
    retry: str | None = None


COMPLETED = Resolution(RunState.COMPLETED, "completed")
FAILED = Resolution(RunState.FAILED, "failed")
CLAIM_EXPIRED = Resolution(RunState.EXCEPTION, "claim-expired", retry="retry")
WORKER_SHUTDOWN = Resolution(RunState.EXCEPTION, "worker-shutdown", retry="retry")
CANCELED = Resolution(RunState.EXCEPTION, "canceled")
DEADLINE_EXCEEDED = Resolution(RunState.EXCEPTION, "deadline-exceeded")
EXCEPTIONS: Mapping[str, Resolution] = {
    "worker-shutdown": WORKER_SHUTDOWN,
    "intermittent-task": Resolution(RunState.EXCEPTION, "intermittent-task", retry="task-retry"),
    **{
        reason: Resolution(RunState.EXCEPTION, reason)
        for reason in ("malformed-payload", "resource-unavailable", "internal-error", "superseded")
    },
}
"""What a worker may report, by the reason it gives."""


@dataclass(frozen=True, slots=True)
class Run:
    """One attempt at a task."""

    run_id: int
    reason_created: str
    scheduled: datetime
    state: RunState = RunState.PENDING
    worker_group: str | None = None
    worker_id: str | None = None
    taken_until: datetime | None = None
    started: datetime | None = None
    resolved: datetime | None = None
    reason_resolved: str | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """A task: its definition as on the wire, and what became of it."""

    task_id: str
    definition: Json
    retries_left: int
    runs: tuple[Run, ...]
    version: int = 0

    @property
    def last(self) -> Run:
        """The run that counts."""
        return self.runs[-1]

    @property
    def queue_id(self) -> str:
        """``<provisioner id>/<worker type>``: also the pool that works on it."""
        return str(self.definition["taskQueueId"])

    @property
    def deadline(self) -> datetime:
        """When the task is given up, if it is not resolved by then."""
        return from_wire(self.definition["deadline"])

    @property
    def expires(self) -> datetime:
        """When the task is forgotten."""
        return from_wire(self.definition["expires"])


def schedule(task_id: str, definition: Json, now: datetime) -> Task:
    """A new task with its first run, pending."""
    return Task(
        task_id=task_id,
        definition=definition,
        retries_left=int(definition["retries"]),
        runs=(Run(run_id=0, reason_created="scheduled", scheduled=now),),
    )


def settle(task: Task, now: datetime) -> Task:
    """What time did to a task: claims not renewed are over, deadlines end everything.

    Moments are those of the limits, not of the look, so every reader sees the same.
    """
    over = task.last.taken_until if task.last.state is RunState.RUNNING else None
    if over is not None and over <= now and over < task.deadline:
        task = _finish(task, CLAIM_EXPIRED, over)
    if task.last.state in OPEN and task.deadline <= now:
        task = _finish(task, DEADLINE_EXCEEDED, task.deadline)
    return task


def claim(task: Task, group: str, worker_id: str, *, now: datetime, timeout: timedelta) -> Task:
    """Give the pending run to a worker until ``now + timeout``, at most until the deadline.

    Raises ``ConflictError`` if the run is not pending.
    """
    if task.last.state is not RunState.PENDING:
        raise ConflictError(f"task {task.task_id} is {task.last.state}, not pending")
    return _with_last(
        task,
        state=RunState.RUNNING,
        worker_group=group,
        worker_id=worker_id,
        started=now,
        taken_until=min(now + timeout, task.deadline),
    )


def claim_run(
    task: Task, run_id: int, group: str, worker_id: str, *, now: datetime, timeout: timedelta
) -> Task:
    """Give just this run to a worker.  A worker that has it already changes nothing by asking.

    ``ConflictError`` if the run is over or somebody else's; ``NotFoundError`` if there is none.
    """
    run = run_of(task, run_id)
    if run is not task.last:
        raise ConflictError(f"run {run_id} of task {task.task_id} is over")
    if is_held(task, group, worker_id):
        return task
    return claim(task, group, worker_id, now=now, timeout=timeout)


def is_held(task: Task, group: str, worker_id: str) -> bool:
    """Whether this worker works on the task."""
    run = task.last
    holder = (run.worker_group, run.worker_id)
    return run.state is RunState.RUNNING and holder == (group, worker_id)


def reclaim(task: Task, run_id: int, *, now: datetime, timeout: timedelta) -> Task:
    """Renew a claim.  ``ConflictError`` if the run is over: the worker should drop it."""
    run = run_of(task, run_id)
    if run is not task.last or run.state is not RunState.RUNNING:
        raise ConflictError(f"run {run_id} of task {task.task_id} is not running")
    return _with_last(task, taken_until=min(now + timeout, task.deadline))


def resolve(task: Task, run_id: int, resolution: Resolution, *, now: datetime) -> Task:
    """End a run, with a new one where the reason allows and retries are left.

    Telling the same again changes nothing.  ``ConflictError`` if it ended another way, or was
    never claimed.
    """
    run = run_of(task, run_id)
    if (run.state, run.reason_resolved) == (resolution.state, resolution.reason):
        return task
    if run is not task.last or run.state is not RunState.RUNNING:
        raise ConflictError(f"run {run_id} of task {task.task_id} is not running")
    return _finish(task, resolution, now)


def cancel(task: Task, now: datetime) -> Task:
    """End a task that waits or is worked on; what is resolved stays as it is.

    ``ConflictError`` once its deadline is past, as with Taskcluster.
    """
    if task.deadline <= now:
        raise ConflictError(f"task {task.task_id} is past its deadline")
    return _finish(task, CANCELED, now) if task.last.state in OPEN else task


def abandon(task: Task, group: str, worker_id: str, *, gone: datetime, now: datetime) -> Task:
    """End the run of a worker that was ``gone`` by then, with a new one if retries are left.

    ``ConflictError`` if it does not work on the task, or began later under the same name.
    """
    started = task.last.started
    if not is_held(task, group, worker_id) or started is None or started > gone:
        raise ConflictError(f"task {task.task_id} is not held by {group}/{worker_id}")
    return _finish(task, WORKER_SHUTDOWN, now)


def run_of(task: Task, run_id: int) -> Run:
    """The run with this number; ``NotFoundError`` if there is none."""
    if not 0 <= run_id < len(task.runs):
        raise NotFoundError(f"task {task.task_id} has no run {run_id}")
    return task.runs[run_id]


def _finish(task: Task, resolution: Resolution, at: datetime) -> Task:
    ended = _with_last(task, state=resolution.state, reason_resolved=resolution.reason, resolved=at)
    if resolution.retry is None or not task.retries_left:
        return ended
    again = Run(run_id=len(ended.runs), reason_created=resolution.retry, scheduled=at)
    return replace(ended, runs=(*ended.runs, again), retries_left=task.retries_left - 1)


def _with_last(task: Task, **changes: Any) -> Task:
    return replace(task, runs=(*task.runs[:-1], replace(task.last, **changes)))
