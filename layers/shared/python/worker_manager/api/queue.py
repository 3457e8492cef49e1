"""The embedded queue over HTTP: Taskcluster's routes under ``/api/queue/v1``.

Deployed only where no other queue is; what the calls do is in ``worker_manager.queue``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from worker_manager.api import paging, references, registry
from worker_manager.api.routing import PAGING, Call, Route, WithHeaders
from worker_manager.core.moments import to_wire
from worker_manager.core.scopes import AllOf, AnyOf, Expression
from worker_manager.queue import requests

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from worker_manager.api.deps import QueueDeps
    from worker_manager.queue.embedded import Claims

_QUEUE = "<taskQueueId>"
_TYPE = "/provisioners/<provisionerId>/worker-types/<workerType>/workers"
_TYPE_SCOPE = "<provisionerId>/<workerType>"
_WORKER_SCOPE = f"{_TYPE_SCOPE}/<workerGroup>/<workerId>"
_RUN = "/task/<taskId>/runs/<runId>"


def _page(call: Call) -> dict[str, Any]:
    return {
        "limit": paging.page_size(call.query),
        "continuation_token": call.query.get("continuationToken"),
    }


def _run(call: Call) -> tuple[str, int]:
    return call.params["taskId"], int(call.params["runId"])


def _claimed(claims: Claims) -> Any:
    """A worker that gets nothing learns why from a header: an error it would only repeat."""
    if claims.barred_until is None:
        return claims.body
    return WithHeaders(claims.body, {"X-Worker-Quarantined": to_wire(claims.barred_until)})


def scopes_to_create(params: Mapping[str, str], payload: Any) -> Expression:
    """What creating just this task requires."""
    return requests.scopes_to_create(requests.parse_definition(params["taskId"], payload))


def known_later(_params: Mapping[str, str], _payload: Any) -> Expression:
    """What a call requires before its task is known: nothing yet, its handler asks for more."""
    return AllOf(())


def ping(_call: Call, deps: QueueDeps) -> Any:
    """Answer without asking anybody."""
    return deps.queue.ping()


def nothing(_call: Call, _deps: QueueDeps) -> Any:
    """Answer that requests are answered."""
    return {}


def create_task(call: Call, deps: QueueDeps) -> Any:
    """Enter a task."""
    return deps.queue.create_task(call.params["taskId"], call.payload)


def task(call: Call, deps: QueueDeps) -> Any:
    """A task's definition."""
    return deps.queue.task(call.params["taskId"])


def status(call: Call, deps: QueueDeps) -> Any:
    """Where a task is."""
    return deps.queue.status(call.params["taskId"])


def cancel_task(call: Call, deps: QueueDeps) -> Any:
    """End a task that waits or is worked on; one that is resolved already stays as it is."""
    task_id = call.params["taskId"]
    call.require(requests.scopes_to_cancel(task_id, deps.queue.task(task_id)))
    return deps.queue.cancel_task(task_id)


def pending_tasks(call: Call, deps: QueueDeps) -> Any:
    """How many tasks wait for a pool; `taskQueueCounts` tells more."""
    return deps.queue.pending_tasks(call.params["taskQueueId"])


def list_pending_tasks(call: Call, deps: QueueDeps) -> Any:
    """What waits, in the order in which it is given out."""
    return deps.queue.list_pending_tasks(call.params["taskQueueId"], **_page(call))


def counts(call: Call, deps: QueueDeps) -> Any:
    """How many tasks wait for a pool, and how many it works on."""
    return deps.queue.task_queue_counts(call.params["taskQueueId"])


def list_claimed_tasks(call: Call, deps: QueueDeps) -> Any:
    """Who works on what."""
    return deps.queue.list_claimed_tasks(call.params["taskQueueId"], **_page(call))


def claim_work(call: Call, deps: QueueDeps) -> Any:
    """Give a worker tasks."""
    return _claimed(deps.queue.claim_work(call.params["taskQueueId"], call.payload))


def claim_task(call: Call, deps: QueueDeps) -> Any:
    """Give a worker just this run; nothing, if the worker is in quarantine."""
    task_id, run_id = _run(call)
    asked = call.body
    call.require(
        requests.scopes_to_claim(deps.queue.task(task_id), asked.worker_group, asked.worker_id)
    )
    return _claimed(deps.queue.claim_task(task_id, run_id, call.payload))


def reclaim_task(call: Call, deps: QueueDeps) -> Any:
    """Renew a claim."""
    return deps.queue.reclaim_task(*_run(call))


def report_completed(call: Call, deps: QueueDeps) -> Any:
    """A run did what it should."""
    return deps.queue.report_completed(*_run(call))


def report_failed(call: Call, deps: QueueDeps) -> Any:
    """A run ended, but not well."""
    return deps.queue.report_failed(*_run(call))


def report_exception(call: Call, deps: QueueDeps) -> Any:
    """A run could not be done."""
    return deps.queue.report_exception(*_run(call), call.payload)


def _route(
    name: str,
    method: str,
    path: str,
    handler: Callable[[Call, QueueDeps], Any],
    **more: Any,
) -> Route[QueueDeps]:
    return Route(name=name, method=method, path=path, handler=handler, service="queue", **more)


ROUTES: tuple[Route[QueueDeps], ...] = (
    _route("ping", "GET", "/ping", ping),
    _route("lbheartbeat", "GET", "/__lbheartbeat__", nothing),
    _route("heartbeat", "GET", "/__heartbeat__", nothing),
    _route(
        "task",
        "GET",
        "/task/<taskId>",
        task,
        scopes="queue:get-task:<taskId>",
    ),
    _route(
        "status",
        "GET",
        "/task/<taskId>/status",
        status,
        scopes="queue:status:<taskId>",
    ),
    _route(
        "createTask",
        "PUT",
        "/task/<taskId>",
        create_task,
        scopes=AllOf(
            (
                "queue:create-task:project:<projectId>",
                "queue:scheduler-id:<schedulerId>",
                "queue:create-task:<priority>/<provisionerId>/<workerType>",
            )
        ),
        scopes_of=scopes_to_create,
        body=requests.CreateTask,
    ),
    _route(
        "cancelTask",
        "POST",
        "/task/<taskId>/cancel",
        cancel_task,
        scopes=AnyOf(
            (
                "queue:cancel-task:<schedulerId>/<taskGroupId>/<taskId>",
                "queue:cancel-task-in-project:<projectId>",
            )
        ),
        scopes_of=known_later,
    ),
    _route(
        "claimWork",
        "POST",
        f"/claim-work/{_QUEUE}",
        claim_work,
        scopes=AllOf((f"queue:claim-work:{_QUEUE}", "queue:worker-id:<workerGroup>/<workerId>")),
        body=requests.ClaimWork,
    ),
    _route(
        "claimTask",
        "POST",
        f"{_RUN}/claim",
        claim_task,
        scopes=AllOf(
            (
                "queue:claim-task:<provisionerId>/<workerType>",
                "queue:worker-id:<workerGroup>/<workerId>",
            )
        ),
        scopes_of=known_later,
        body=requests.ClaimTask,
        stability="deprecated",
    ),
    _route(
        "reclaimTask",
        "POST",
        f"{_RUN}/reclaim",
        reclaim_task,
        scopes="queue:reclaim-task:<taskId>/<runId>",
    ),
    _route(
        "reportCompleted",
        "POST",
        f"{_RUN}/completed",
        report_completed,
        scopes="queue:resolve-task:<taskId>/<runId>",
    ),
    _route(
        "reportFailed",
        "POST",
        f"{_RUN}/failed",
        report_failed,
        scopes="queue:resolve-task:<taskId>/<runId>",
    ),
    _route(
        "reportException",
        "POST",
        f"{_RUN}/exception",
        report_exception,
        scopes="queue:resolve-task:<taskId>/<runId>",
        body=requests.ReportException,
    ),
    _route(
        "taskQueueCounts",
        "GET",
        f"/task-queues/{_QUEUE}/counts",
        counts,
        scopes=AllOf((f"queue:pending-count:{_QUEUE}", f"queue:claimed-count:{_QUEUE}")),
    ),
    _route(
        "pendingTasks",
        "GET",
        f"/pending/{_QUEUE}",
        pending_tasks,
        scopes=f"queue:pending-count:{_QUEUE}",
        stability="deprecated",
    ),
    _route(
        "listPendingTasks",
        "GET",
        f"/task-queues/{_QUEUE}/pending",
        list_pending_tasks,
        scopes=f"queue:pending-list:{_QUEUE}",
        query=PAGING,
        stability="experimental",
    ),
    _route(
        "listClaimedTasks",
        "GET",
        f"/task-queues/{_QUEUE}/claimed",
        list_claimed_tasks,
        scopes=f"queue:claimed-list:{_QUEUE}",
        query=PAGING,
    ),
    *registry.routes_of("queue"),
    *references.routes_of("queue"),
)
