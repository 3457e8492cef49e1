"""What a Taskcluster queue saw of its workers, for the registry, and quarantines written through.

Where to read next: ``queue`` (what planning asks), ``worker_manager.registry.backends.remote``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import requests

from worker_manager.core.moments import from_wire, to_wire
from worker_manager.taskcluster.queue import (
    is_unknown,
    nothing_but_facts,
    to_seen,
    worker_type_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from worker_manager.core.activity import SeenWorker
    from worker_manager.taskcluster.queue_http import QueueHttp

_ENDS = frozenset({"completed", "failed", "exception"})


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
    """``completed``, ``failed`` or ``exception``."""
    reason: str | None
    at: datetime
    began: datetime | None = None
    """When it was claimed; ``None`` for one that never was."""


class Forgotten:
    """The queue knows nothing of a run, and so will never tell how it ended."""


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

    def run_end(self, task_id: str, run_id: int) -> RunEnd | Forgotten | None:
        """``status``: how a run ended; ``None`` while it runs."""
        with nothing_but_facts("status", task_id):
            try:
                status = self._http.get("status", {"taskId": task_id}, {})["status"]
            except requests.HTTPError as error:
                if is_unknown(error.response):
                    return Forgotten()
                raise
            runs = {int(run["runId"]): run for run in status["runs"]}
            if run_id not in runs:
                return Forgotten()
            return _to_end(runs[run_id])

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


def _to_end(run: Mapping[str, Any]) -> RunEnd | None:
    if "resolved" not in run:
        return None
    if run["state"] not in _ENDS:
        raise ValueError(f"a run cannot end as {run['state']!r}")
    return RunEnd(
        state=run["state"],
        reason=run.get("reasonResolved"),
        at=from_wire(run["resolved"]),
        began=from_wire(run["started"]) if run.get("started") else None,
    )
