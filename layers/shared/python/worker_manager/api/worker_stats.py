"""Task queues and workers in numbers.

Where to read next: ``worker_manager.registry.figures``, where they are worked out.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

from worker_manager.api import paging
from worker_manager.api.everyone import known
from worker_manager.api.refusals import not_found
from worker_manager.api.registry_answers import downtime_told, told
from worker_manager.api.registry_views import list_task_queues, worker_key
from worker_manager.api.routing import Call, Route
from worker_manager.api.search_schemas import (
    TaskQueueStats,
    TaskQueueStatsResponse,
    TaskQueuesWithStatsResponse,
    TaskQueueWithStats,
    WorkerNumbers,
    WorkerStatsResponse,
)
from worker_manager.api.worker_figures import rate_figures, worker_figures
from worker_manager.core.errors import QueueUnavailableError
from worker_manager.registry import figures
from worker_manager.registry.windows import is_worker_listed
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from worker_manager.api.deps import RegistryDeps
    from worker_manager.api.registry_schemas import ListTaskQueuesResponse, TaskQueueResponse
    from worker_manager.core.activity import QueueCounts
    from worker_manager.registry.entities import WorkerType

MOST_WITH_STATS = 100
"""Task queues of one page, where each is counted."""
PARALLEL = 8
"""Task queues counted side by side."""
PATIENCE = timedelta(seconds=15)
"""After which a page ends, though it could be longer: the gateway waits for 29 s."""
SILENT = "The task queue does not answer."


def get_task_queue_stats(call: Call, deps: RegistryDeps) -> TaskQueueStatsResponse:
    """A task queue in numbers: its workers by what they do, its tasks, and how many fail."""
    name = call.params["taskQueueId"]
    known_type = deps.registry.worker_type(name)
    if known_type is None and deps.stores.pools.get(name) is None:
        raise not_found(f"Task queue {name!r} is not known")
    return TaskQueueStatsResponse(task_queue_id=name, **_stats(deps, name, known_type))


def list_with_stats(
    call: Call, deps: RegistryDeps
) -> ListTaskQueuesResponse | TaskQueuesWithStatsResponse:
    """A page of the worker types of all provisioners; with ``stats=true`` each in numbers.

    Then a page has a hundred of them at most, and may be shorter before the end; numbers are told
    of queues whose workers the caller may list.
    """
    if call.query.get("stats") != "true":
        return list_task_queues(call, deps)
    size = min(paging.page_size(call.query), MOST_WITH_STATS)
    page = list_task_queues(replace(call, query={**call.query, "limit": str(size)}), deps)
    counted = list(_in_time(call, deps, page.task_queues))
    token: dict[str, Any] = {}
    if len(counted) < len(page.task_queues):
        token = paging.with_token(counted[-1].task_queue_id)
    elif page.continuation_token is not None:
        token = {"continuation_token": page.continuation_token}
    return TaskQueuesWithStatsResponse(task_queues=counted, **token)


def get_worker_stats(call: Call, deps: RegistryDeps) -> WorkerStatsResponse:
    """A worker in numbers: since when it is up, when it last took a task, how many fail."""
    key = worker_key(call)
    return WorkerStatsResponse(
        task_queue_id=key.pool_id,
        worker_group=key.group,
        worker_id=key.worker_id,
        **worker_figures(known(deps, key), deps.clock()),
    )


def _in_time(
    call: Call, deps: RegistryDeps, types: Sequence[TaskQueueResponse]
) -> Iterator[TaskQueueWithStats]:
    """Each with its numbers, as far as time allows."""
    ends = deps.clock() + PATIENCE
    waiting = iter(types)
    with ThreadPoolExecutor(PARALLEL) as threads:
        while some := list(islice(waiting, PARALLEL)):
            yield from threads.map(lambda one: _counted(call, deps, one), some)
            if deps.clock() >= ends:
                return


def _counted(call: Call, deps: RegistryDeps, one: TaskQueueResponse) -> TaskQueueWithStats:
    name = one.task_queue_id
    facts = {field: getattr(one, field) for field in one.model_fields_set}
    if call.satisfies(f"queue:list-workers:{name}"):
        facts["stats"] = TaskQueueStats(**_stats(deps, name, deps.registry.worker_type(name)))
    return TaskQueueWithStats(**facts)


def _stats(deps: RegistryDeps, name: str, known_type: WorkerType | None) -> dict[str, Any]:
    """Fields of ``TaskQueueStats``."""
    now = deps.clock()
    is_hardware = known_type is not None and known_type.is_hardware
    # Asked first: what it finds to have run out is known of the workers then.
    tasks = _tasks(deps, name)
    workers = list(deps.registry.all_workers(name))
    listed = (
        worker
        for worker in workers
        if is_worker_listed(worker, now, deps.registry.windows, is_hardware=is_hardware)
    )
    counts = figures.count(listed, now)
    numbers = WorkerNumbers(
        total=counts.total,
        idle=counts.idle,
        quarantined=counts.quarantined,
        claimed=counts.claimed,
    )
    return {
        "workers": numbers,
        **rate_figures(figures.outcomes_of(workers, now)),
        **told(
            pending_tasks=None if tasks is None else tasks.pending,
            claimed_tasks=None if tasks is None else tasks.claimed,
            unavailable=SILENT if tasks is None else None,
            last_date_active=known_type and known_type.last_seen,
        ),
        **downtime_told(known_type.downtime_at(now) if known_type else None),
    }


def _tasks(deps: RegistryDeps, name: str) -> QueueCounts | None:
    try:
        return deps.queue.counts(name)
    except QueueUnavailableError as error:
        logger.warning("the queue does not count its tasks", pool=name, error=str(error))
        return None


def with_stats(route: Route[Any]) -> Route[Any]:
    """The registry's own list of task queues, which can count; any other route as it is."""
    if route.name != "listTaskQueues":
        return route
    return replace(
        route,
        handler=list_with_stats,
        query={**route.query, "stats": r"^(true|false)$"},
        response=TaskQueuesWithStatsResponse,
    )


_WORKER = "<provisionerId>/<workerType>/<workerGroup>/<workerId>"

STATS_ROUTES: tuple[Route[RegistryDeps], ...] = (
    Route(
        name="taskQueueStats",
        service="worker-registry",
        method="GET",
        path="/task-queues/<taskQueueId>/stats",
        handler=get_task_queue_stats,
        scopes="queue:list-workers:<taskQueueId>",
        response=TaskQueueStatsResponse,
        stability="experimental",
    ),
    Route(
        name="workerStats",
        service="worker-registry",
        method="GET",
        path="/provisioners/<provisionerId>/worker-types/<workerType>/workers"
        "/<workerGroup>/<workerId>/stats",
        handler=get_worker_stats,
        scopes=f"queue:get-worker:{_WORKER}",
        response=WorkerStatsResponse,
        stability="experimental",
    ),
)
