"""Credentials with which a worker acts for one run of one task, and nothing else.

Worker credentials are made alike, in ``taskcluster.credentials``; the issuer is the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker_manager.taskcluster.credentials import RUN_SCOPES, issue

if TYPE_CHECKING:
    from datetime import datetime

    from worker_manager.queue.tasks import Task
    from worker_manager.taskcluster.credentials import Credentials, Issuer


def task_credentials(issuer: Issuer, task: Task, now: datetime) -> Credentials:
    """Temporary credentials for the task's running run, as good as its claim.

    Named ``task-client/<task>/<run>/on/<group>/<worker>/until/<epoch seconds>``; the scopes are
    to reclaim, to resolve and to create artifacts for that run, then the task's own.  Raises
    ``ValueError`` for a run that was never claimed.
    """
    run = task.last
    if run.taken_until is None:
        raise ValueError(f"run {run.run_id} of task {task.task_id} was not claimed")
    run_name = f"{task.task_id}/{run.run_id}"
    until = int(run.taken_until.timestamp())
    return issue(
        f"task-client/{run_name}/on/{run.worker_group}/{run.worker_id}/until/{until}",
        [*(scope.format(run=run_name) for scope in RUN_SCOPES), *task.definition["scopes"]],
        issuer=issuer,
        now=now,
        expires=run.taken_until,
    )
