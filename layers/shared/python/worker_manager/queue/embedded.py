"""The embedded queue's calls: one method each, plain JSON in and out, as Taskcluster names them.

A method parses, asks ``ledger`` (tasks) and ``sightings`` (workers), and writes the answer.
Whoever routes HTTP here checks scopes first (``requests.scopes_to_create`` says what
``createTask`` needs).  Errors: ``InputInvalidError``, ``NotFoundError``, ``ConflictError``,
``DuplicateError``; ``QueueUnavailableError`` when races were lost too often.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from worker_manager.core.moments import to_wire
from worker_manager.queue import records, requests, tasks
from worker_manager.queue.credentials import task_credentials
from worker_manager.queue.ledger import Ledger
from worker_manager.queue.lists import Lists
from worker_manager.queue.sightings import Sightings
from worker_manager.store.queue_rows import Listed

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from worker_manager.core.model import Json
    from worker_manager.queue.tasks import Run, Task
    from worker_manager.store.queue_table import QueueTable
    from worker_manager.taskcluster.credentials import Issuer

CLAIM_TIMEOUT = timedelta(seconds=1200)
"""How long a claim holds unless renewed."""
ACTIVITY_INTERVAL = timedelta(seconds=60)
"""How exactly a worker's last activity is known."""


class EmbeddedQueue:
    """A task queue over one table; safe to use from threads and functions side by side."""

    def __init__(
        self,
        table: QueueTable,
        clock: Callable[[], datetime],
        issuer: Issuer,
        *,
        claim_timeout: timedelta = CLAIM_TIMEOUT,
        activity_interval: timedelta = ACTIVITY_INTERVAL,
    ) -> None:
        self._tasks = Ledger(table, clock, claim_timeout, self._resolved)
        self._lists = Lists(self._tasks)
        self._workers = Sightings(table, activity_interval)
        self._issuer = issuer
        self._started = self._tasks.now()

    def ping(self) -> dict[str, Any]:
        """``ping``: alive, and for how many seconds."""
        uptime = self._tasks.now() - self._started
        return {"alive": True, "uptime": uptime.total_seconds()}

    def create_task(self, task_id: str, body: Json) -> dict[str, Any]:
        """``createTask``: the same body again gives the same answer, another is a duplicate."""
        requests.require_slugid(task_id)
        definition = requests.parse_definition(task_id, body)
        if not self._tasks.exists(task_id):
            requests.check_deadline(definition["deadline"], self._tasks.now())
        return {"status": records.status_of(self._tasks.create(task_id, definition))}

    def task(self, task_id: str) -> dict[str, Any]:
        """``task``: the definition, complete with its defaults."""
        return dict(self._tasks.read(task_id).definition)

    def status(self, task_id: str) -> dict[str, Any]:
        """``status``: where the task and its runs are."""
        return {"status": records.status_of(self._tasks.read(task_id))}

    def cancel_task(self, task_id: str) -> dict[str, Any]:
        """``cancelTask``: no more of a task; one that is resolved already stays as it is.

        ``ConflictError`` once its deadline is past.
        """
        return {"status": records.status_of(self._tasks.cancel(task_id))}

    def task_queue_counts(self, task_queue_id: str) -> dict[str, Any]:
        """``taskQueueCounts``: tasks that wait, and tasks being worked on."""
        queue_id = requests.require_queue_id(task_queue_id)
        counts = self._lists.counts(queue_id)
        provisioner_id, _, worker_type = queue_id.partition("/")
        return {
            "provisionerId": provisioner_id,
            "workerType": worker_type,
            "taskQueueId": queue_id,
            "pendingTasks": counts.pending,
            "claimedTasks": counts.claimed,
        }

    def pending_tasks(self, task_queue_id: str) -> dict[str, Any]:
        """``pendingTasks``: tasks that wait, as ``taskQueueCounts`` tells them."""
        counts = self.task_queue_counts(task_queue_id)
        del counts["claimedTasks"]
        return counts

    def list_pending_tasks(
        self, task_queue_id: str, *, limit: int = 1000, continuation_token: str | None = None
    ) -> dict[str, Any]:
        """``listPendingTasks``: a page of the tasks that wait.

        Pages may be short before the end.  They come as they are given out: by priority, then by
        age, where the reference has them by age alone.
        """
        after = continuation_token or ""
        waiting, token = self._page(task_queue_id, Listed.PENDING, limit=limit, after=after)
        answer: dict[str, Any] = {"tasks": [records.waiting_of(task) for task in waiting]}
        return answer | {"continuationToken": token} if token else answer

    def list_claimed_tasks(
        self, task_queue_id: str, *, limit: int = 1000, continuation_token: str | None = None
    ) -> dict[str, Any]:
        """``listClaimedTasks``: a page of the tasks being worked on, and by whom.

        Pages may be short before the end.  The claim that runs out first comes first, where the
        reference begins with the one made first.
        """
        after = continuation_token or ""
        claimed, token = self._page(task_queue_id, Listed.CLAIMED, limit=limit, after=after)
        answer: dict[str, Any] = {"tasks": [records.claim_of(task) for task in claimed]}
        return answer | {"continuationToken": token} if token else answer

    def claim_work(self, task_queue_id: str, body: Json) -> dict[str, Any]:
        """``claimWork``: up to ``tasks`` tasks, best first; answers at once, also with none.

        A quarantined worker gets none, but counts as seen.
        """
        queue_id = requests.require_queue_id(task_queue_id)
        asked = requests.parse(requests.ClaimWork, body)
        name = (queue_id, asked.worker_group, asked.worker_id)
        now = self._tasks.now()
        if self._workers.note_call(*name, now=now).is_quarantined(now):
            return {"tasks": []}
        claimed = self._tasks.claim(*name, wanted=asked.tasks)
        if claimed:
            taken = [{"taskId": task.task_id, "runId": task.last.run_id} for task in claimed]
            self._workers.note_tasks(*name, taken=taken, now=now)
        return {
            "tasks": [
                self._claim_answer(task) | {"task": dict(task.definition)} for task in claimed
            ]
        }

    def claim_task(self, task_id: str, run_id: int, body: Json) -> dict[str, Any]:
        """``claimTask``: just this run.  A quarantined worker gets nothing, but counts as seen.

        ``ConflictError`` if the run is over or another worker's; asking again changes nothing.
        """
        asked = requests.parse(requests.ClaimTask, body)
        queue_id = self._tasks.read(task_id).queue_id
        name = (queue_id, asked.worker_group, asked.worker_id)
        now = self._tasks.now()
        if self._workers.note_call(*name, now=now).is_quarantined(now):
            return {}
        task = self._tasks.claim_one(task_id, run_id, asked.worker_group, asked.worker_id)
        taken = [{"taskId": task_id, "runId": run_id}]
        self._workers.note_tasks(*name, taken=taken, now=now)
        return self._claim_answer(task) | {"task": dict(task.definition)}

    def worker_gone(
        self, queue_id: str, group: str, worker_id: str, *, gone: datetime | None = None
    ) -> int:
        """End what a worker that does not exist any more still claims; how many runs that were.

        ``gone`` is since when (now, if nothing is said): what a worker of the same name claimed
        later goes on.
        """
        since = gone or self._tasks.now()
        return len(self._tasks.resolve_claims_of(queue_id, group, worker_id, gone=since))

    def reclaim_task(self, task_id: str, run_id: int) -> dict[str, Any]:
        """``reclaimTask``: renew a claim, with new credentials.  Quarantine does not matter."""
        task = self._tasks.reclaim(task_id, run_id)
        name = (task.queue_id, str(task.last.worker_group), str(task.last.worker_id))
        self._workers.note_call(*name, now=self._tasks.now())
        return self._claim_answer(task)

    def report_completed(self, task_id: str, run_id: int) -> dict[str, Any]:
        """``reportCompleted``: the run did what it should."""
        task = self._tasks.resolve(task_id, run_id, tasks.COMPLETED)
        return {"status": records.status_of(task)}

    def report_failed(self, task_id: str, run_id: int) -> dict[str, Any]:
        """``reportFailed``: the run ended, but not well."""
        task = self._tasks.resolve(task_id, run_id, tasks.FAILED)
        return {"status": records.status_of(task)}

    def report_exception(self, task_id: str, run_id: int, body: Json) -> dict[str, Any]:
        """``reportException``: the run could not be done; some reasons bring a new run."""
        task = self._tasks.resolve(task_id, run_id, requests.parse_exception(body))
        return {"status": records.status_of(task)}

    def list_workers(
        self,
        provisioner_id: str,
        worker_type: str,
        *,
        quarantined: bool | None = None,
        limit: int = 1000,
        continuation_token: str | None = None,
    ) -> dict[str, Any]:
        """``listWorkers``: a page of remembered workers; pages may be short before the end."""
        queue_id = requests.queue_id_of(provisioner_id, worker_type)
        requests.require_limit(limit)
        return self._workers.page(
            queue_id,
            quarantined=quarantined,
            limit=limit,
            after=continuation_token or "",
            now=self._tasks.now(),
        )

    def get_worker(
        self, provisioner_id: str, worker_type: str, group: str, worker_id: str
    ) -> dict[str, Any]:
        """``getWorker``: one worker that is still remembered."""
        queue_id = requests.queue_id_of(provisioner_id, worker_type)
        return self._workers.details(queue_id, group, worker_id, now=self._tasks.now())

    def quarantine_worker(
        self,
        provisioner_id: str,
        worker_type: str,
        group: str,
        worker_id: str,
        body: Json,
        *,
        client_id: str,
    ) -> dict[str, Any]:
        """``quarantineWorker``: no tasks for a worker until then; the past lifts it.

        ``client_id`` is who asks, for the worker's history.
        """
        queue_id = requests.queue_id_of(provisioner_id, worker_type)
        asked = requests.parse(requests.QuarantineWorker, body)
        return self._workers.quarantine(
            queue_id,
            group,
            worker_id,
            until=asked.quarantine_until,
            info=asked.quarantine_info or "[unspecified]",
            client_id=client_id,
            now=self._tasks.now(),
        )

    def _page(
        self, task_queue_id: str, listed: Listed, *, limit: int, after: str
    ) -> tuple[list[Task], str]:
        queue_id = requests.require_queue_id(task_queue_id)
        requests.require_limit(limit)
        return self._lists.page(queue_id, listed, limit=limit, after=after)

    def _resolved(self, task: Task, run: Run) -> None:
        """A run that a worker had is over, and the table says so."""

    def _claim_answer(self, task: Task) -> dict[str, Any]:
        run = task.last
        return {
            "status": records.status_of(task),
            "runId": run.run_id,
            "workerGroup": run.worker_group,
            "workerId": run.worker_id,
            "takenUntil": to_wire(run.taken_until) if run.taken_until else None,
            "credentials": task_credentials(self._issuer, task, self._tasks.now()),
        }
