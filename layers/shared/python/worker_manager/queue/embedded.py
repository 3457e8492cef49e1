"""The embedded queue's calls: one method each, plain JSON in and out, as Taskcluster names them.

A method parses, asks ``ledger``, and writes the answer; what is known of workers, and who gets no
tasks, is in ``worker_manager.registry``.
Whoever routes HTTP here checks scopes first (``requests.scopes_to_create`` says what
``createTask`` needs).  Errors: ``InputInvalidError``, ``NotFoundError``, ``ConflictError``,
``DuplicateError``; ``QueueUnavailableError`` when races were lost too often.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from worker_manager.core.model import WorkerKey
from worker_manager.core.moments import to_wire
from worker_manager.queue import records, requests, tasks
from worker_manager.queue.claimer import Claimer
from worker_manager.queue.credentials import task_credentials
from worker_manager.queue.ledger import Ledger
from worker_manager.queue.lists import Lists
from worker_manager.registry.observations import Kind, Observation
from worker_manager.store.queue_rows import Listed

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from worker_manager.core.model import Json
    from worker_manager.queue.tasks import Run, Task
    from worker_manager.registry.registry import Registry
    from worker_manager.store.queue_table import QueueTable
    from worker_manager.store.transactions import Writes
    from worker_manager.taskcluster.credentials import Issuer

CLAIM_TIMEOUT = timedelta(seconds=1200)
"""How long a claim holds unless renewed."""
LOOK_AGAIN = timedelta(seconds=0.5)
"""How often a call that is held looks for work."""


@dataclass(frozen=True, slots=True)
class Claims:
    """The answer to a worker; ``barred_until`` is until when it gets none, if it gets none."""

    body: dict[str, Any]
    barred_until: datetime | None = None


class EmbeddedQueue:
    """A task queue over one table; safe to use from threads and functions side by side."""

    def __init__(
        self,
        table: QueueTable,
        registry: Registry,
        clock: Callable[[], datetime],
        issuer: Issuer,
        *,
        claim_timeout: timedelta = CLAIM_TIMEOUT,
        hold: timedelta = timedelta(),
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        """``hold`` is for how long a call for work waits for some; ``wait`` is given seconds."""
        self._tasks = Ledger(table, clock, claim_timeout, self._ended)
        self._lists = Lists(self._tasks)
        self._registry = registry
        self._issuer = issuer
        self._hold = hold
        self._wait = wait
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
        """``taskQueueCounts``: tasks that wait, and tasks being worked on.

        ``closedUntil`` is there while none of the waiting ones is given out, so that nobody starts
        workers for them, and with it who closed the queue, when and why.
        """
        queue_id = requests.require_queue_id(task_queue_id)
        counts = self._lists.counts(queue_id)
        known = self._registry.worker_type(queue_id)
        downtime = known.downtime_at(self._tasks.now()) if known is not None else None
        closed = records.downtime_of(downtime) if downtime is not None else {}
        provisioner_id, _, worker_type = queue_id.partition("/")
        return closed | {
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

    def claim_work(self, task_queue_id: str, body: Json) -> Claims:
        """``claimWork``: up to ``tasks`` tasks, best first; with none, after a while.

        A quarantined worker gets none, but counts as seen.
        """
        queue_id = requests.require_queue_id(task_queue_id)
        asked = requests.parse(requests.ClaimWork, body)
        held = timedelta()
        while True:
            claimer = self._claimer(queue_id, asked)
            claimed = [] if claimer.is_barred else self._tasks.claim(claimer, wanted=asked.tasks)
            if claimed or held >= self._hold:
                answers = [self._claim_answer(task) for task in claimed]
                return Claims({"tasks": answers}, None if claimed else claimer.barred_until)
            self._wait(min(LOOK_AGAIN, self._hold - held).total_seconds())
            held += LOOK_AGAIN

    def claim_task(self, task_id: str, run_id: int, body: Json) -> Claims:
        """``claimTask``: just this run.  A quarantined worker gets nothing, but counts as seen.

        ``ConflictError`` if the run is over or another worker's; asking again changes nothing.
        """
        asked = requests.parse(requests.ClaimTask, body)
        claimer = self._claimer(self._tasks.read(task_id).queue_id, asked)
        claimer.check_type()
        task = self._tasks.claim_one(task_id, run_id, claimer)
        if task is None:
            return Claims({}, claimer.barred_until)
        return Claims(self._claim_answer(task))

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
        key, now = _holder(task, task.last), self._tasks.now()
        self._registry.sighted(key, self._registry.worker(key), now=now, calls=False)
        answer = self._claim_answer(task)
        del answer["task"]
        return answer

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

    def _page(
        self, task_queue_id: str, listed: Listed, *, limit: int, after: str
    ) -> tuple[list[Task], str]:
        queue_id = requests.require_queue_id(task_queue_id)
        requests.require_limit(limit)
        return self._lists.page(queue_id, listed, limit=limit, after=after)

    def _claimer(self, queue_id: str, asked: requests.ClaimTask) -> Claimer:
        now = self._tasks.now()
        return Claimer(self._registry, queue_id, asked.worker_group, asked.worker_id, now=now)

    def _ended(self, task: Task, run: Run) -> Writes | None:
        """What the registry writes in one with the end of a run that a worker had."""
        return self._registry.end_writes(
            Observation(
                _holder(task, run),
                Kind.RESOLVE,
                run.resolved or self._tasks.now(),
                task_id=task.task_id,
                run_id=run.run_id,
                state=str(run.state),
                reason=run.reason_resolved,
            )
        )

    def _claim_answer(self, task: Task) -> dict[str, Any]:
        run = task.last
        return {
            "status": records.status_of(task),
            "runId": run.run_id,
            "workerGroup": run.worker_group,
            "workerId": run.worker_id,
            "takenUntil": to_wire(run.taken_until) if run.taken_until else None,
            "task": dict(task.definition),
            "credentials": task_credentials(self._issuer, task, self._tasks.now()),
        }


def _holder(task: Task, run: Run) -> WorkerKey:
    """Who has, or had, a run."""
    return WorkerKey(task.queue_id, str(run.worker_group), str(run.worker_id))
