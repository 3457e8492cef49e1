"""What a Taskcluster queue saw of its workers, for the registry, and quarantines written through.

Where to read next: ``queue`` (what planning asks), ``worker_manager.registry.backends.remote``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import requests

from worker_manager.core.moments import from_wire, to_wire
from worker_manager.taskcluster.queue import (
    is_unknown,
    nothing_but_facts,
    to_seen,
    worker_type_of,
)

if TYPE_CHECKING:
    from datetime import datetime

    from worker_manager.core.activity import SeenWorker
    from worker_manager.taskcluster.queue_http import QueueHttp


@dataclass(frozen=True, slots=True)
class SeenClaim:
    """A run that a worker holds."""

    group: str
    worker_id: str
    task_id: str
    run_id: int
    claimed: datetime


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a run ended."""

    state: str
    reason: str | None
    at: datetime


class ObservedQueue:
    """A queue that is looked at as a whole.  All raise ``QueueUnavailableError``."""

    def __init__(self, http: QueueHttp) -> None:
        self._http = http

    def task_queues(self) -> list[str]:
        """``listTaskQueues``, to its end: ids."""
        with nothing_but_facts("task queues", "all provisioners"):
            found = self._http.pages("listTaskQueues", {}, "taskQueues")
            return [str(item["taskQueueId"]) for item in found]

    def workers(self, queue_id: str) -> list[SeenWorker]:
        """``listWorkers``, to its end."""
        with nothing_but_facts("workers", queue_id):
            found = self._http.pages("listWorkers", worker_type_of(queue_id), "workers")
            return [to_seen(item) for item in found]

    def claims(self, queue_id: str) -> list[SeenClaim]:
        """``listClaimedTasks``, to its end."""
        with nothing_but_facts("claimed tasks", queue_id):
            found = self._http.pages("listClaimedTasks", {"taskQueueId": queue_id}, "tasks")
            return [
                SeenClaim(
                    group=item["workerGroup"],
                    worker_id=item["workerId"],
                    task_id=item["taskId"],
                    run_id=int(item["runId"]),
                    claimed=from_wire(item["claimed"]),
                )
                for item in found
            ]

    def run_end(self, task_id: str, run_id: int) -> RunEnd | None:
        """``status``: how a run ended; ``None`` while it runs, or if the task is forgotten."""
        with nothing_but_facts("status", task_id):
            try:
                status = self._http.get("status", {"taskId": task_id}, {})["status"]
            except requests.HTTPError as error:
                if is_unknown(error.response):
                    return None
                raise
            runs = {int(run["runId"]): run for run in status["runs"]}
            run = runs.get(run_id, {})
            if "resolved" not in run:
                return None
            return RunEnd(run["state"], run.get("reasonResolved"), from_wire(run["resolved"]))

    def quarantine(
        self, queue_id: str, group: str, worker_id: str, until: datetime, *, info: str
    ) -> bool:
        """``quarantineWorker``; false if the queue has never seen this worker."""
        params = worker_type_of(queue_id) | {"workerGroup": group, "workerId": worker_id}
        body = {"quarantineUntil": to_wire(until), "quarantineInfo": info}
        with nothing_but_facts("quarantine", f"{queue_id}/{group}/{worker_id}"):
            try:
                self._http.put("quarantineWorker", params, body)
            except requests.HTTPError as error:
                if is_unknown(error.response):
                    return False
                raise
            return True
