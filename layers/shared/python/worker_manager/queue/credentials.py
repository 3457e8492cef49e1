"""Credentials with which a worker acts for one run of one task, and nothing else.

Worker credentials are made alike, in ``taskcluster.credentials``; the issuer is the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker_manager.taskcluster.credentials import BACKDATED, WorkerCredentials

if TYPE_CHECKING:
    from datetime import datetime

    from worker_manager.queue.tasks import Task
    from worker_manager.taskcluster.credentials import Issuer

_VERBS = ("reclaim-task", "resolve-task", "create-artifact")

ISSUER_SCOPES = ("auth:create-client:task-client/*", *(f"queue:{verb}:*" for verb in _VERBS))
"""What the issuing client must hold, besides every scope that tasks may carry."""


def task_credentials(issuer: Issuer, task: Task, now: datetime) -> WorkerCredentials:
    """Temporary credentials for the task's running run, as good as its claim.

    Named ``task-client/<task>/<run>/on/<group>/<worker>/until/<epoch seconds>``; the scopes are
    to reclaim, to resolve and to create artifacts for that run, then the task's own.  Raises
    ``ValueError`` for a run that was never claimed.
    """
    # Costs up to 90 ms when first imported, and only claims need it.
    from taskcluster import (  # type: ignore[import-untyped]  # noqa: PLC0415
        createTemporaryCredentials,
    )

    run = task.last
    if run.taken_until is None:
        raise ValueError(f"run {run.run_id} of task {task.task_id} was not claimed")
    run_name = f"{task.task_id}/{run.run_id}"
    until = int(run.taken_until.timestamp())
    made = createTemporaryCredentials(
        issuer.client_id,
        issuer.access_token,
        now - BACKDATED,
        run.taken_until,
        [f"queue:{verb}:{run_name}" for verb in _VERBS] + list(task.definition["scopes"]),
        name=f"task-client/{run_name}/on/{run.worker_group}/{run.worker_id}/until/{until}",
    )
    return WorkerCredentials(
        clientId=made["clientId"],
        accessToken=made["accessToken"].decode("ascii"),
        certificate=made["certificate"],
    )
