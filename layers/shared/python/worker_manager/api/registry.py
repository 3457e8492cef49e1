"""The registry over HTTP: who was seen where, what people say of it, and who gets no tasks.

Everything is under ``/api/worker-registry/v1``; what Taskcluster's queue has as well is under
``/api/queue/v1`` too where the queue is ours, by the same handlers and scopes.
Where to read next: ``registry_views``, ``declarations``, ``quarantines``, ``observations``;
``search`` and ``worker_details``, where it is joined with what we know of workers ourselves.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from worker_manager.api import (
    action_runs,
    actions,
    agents,
    bulk,
    bulk_runs,
    declarations,
    deletions,
    machines,
    mix,
    observations,
    ping,
    quarantines,
    references,
    registry_views,
    search,
    worker_details,
    worker_stats,
)
from worker_manager.api import registry_schemas as schemas
from worker_manager.api.routing import PAGING, Route
from worker_manager.core.scopes import AllOf

if TYPE_CHECKING:
    from worker_manager.api.deps import RegistryDeps

NAME = "worker-registry"
BOOLEAN = r"^(true|false)$"

_P = "<provisionerId>"
_TQ = "<taskQueueId>"
_TYPE = f"{_P}/<workerType>"
_WORKER = f"{_TYPE}/<workerGroup>/<workerId>"
_PROVISIONERS = f"/provisioners/{_P}"
_TYPES = f"{_PROVISIONERS}/worker-types/<workerType>"
_WORKERS = f"{_TYPES}/workers/<workerGroup>/<workerId>"


def routes_of(service: str) -> tuple[Route[Any], ...]:
    """What Taskcluster's queue has as well; inactive entities are listed only by our own name."""
    paging = dict(PAGING)
    if service == NAME:
        paging["includeInactive"] = BOOLEAN
    return (*_reading(service, paging), *_declaring(service))


def _reading(service: str, paging: dict[str, str]) -> tuple[Route[Any], ...]:
    views = registry_views

    def read(name: str, path: str, scopes: str, handler: Any, response: Any) -> Route[Any]:
        return Route(
            name=name,
            service=service,
            method="GET",
            path=path,
            handler=handler,
            scopes=scopes,
            query=paging if name.startswith("list") else {},
            response=response,
        )

    listed_workers = read(
        "listWorkers",
        f"{_TYPES}/workers",
        f"queue:list-workers:{_TYPE}",
        views.list_workers,
        schemas.ListQueueWorkersResponse,
    )
    return (
        read(
            "listProvisioners",
            "/provisioners",
            "queue:list-provisioners",
            views.list_provisioners,
            schemas.ListProvisionersResponse,
        ),
        read(
            "getProvisioner",
            _PROVISIONERS,
            f"queue:get-provisioner:{_P}",
            views.get_provisioner,
            schemas.ProvisionerResponse,
        ),
        read(
            "listWorkerTypes",
            f"{_PROVISIONERS}/worker-types",
            f"queue:list-worker-types:{_P}",
            views.list_worker_types,
            schemas.ListWorkerTypesResponse,
        ),
        read(
            "getWorkerType",
            _TYPES,
            f"queue:get-worker-type:{_TYPE}",
            views.get_worker_type,
            schemas.WorkerTypeResponse,
        ),
        read(
            "listTaskQueues",
            "/task-queues",
            "queue:list-task-queues",
            views.list_task_queues,
            schemas.ListTaskQueuesResponse,
        ),
        read(
            "getTaskQueue",
            f"/task-queues/{_TQ}",
            f"queue:get-task-queue:{_TQ}",
            views.get_task_queue,
            schemas.TaskQueueResponse,
        ),
        replace(listed_workers, query={**paging, "quarantined": BOOLEAN}),
        read(
            "getWorker",
            _WORKERS,
            f"queue:get-worker:{_WORKER}",
            views.get_worker,
            schemas.QueueWorkerResponse,
        ),
    )


def _declaring(service: str) -> tuple[Route[Any], ...]:
    def declare(name: str, path: str, prefix: str, **more: Any) -> Route[Any]:
        return Route(
            name=name,
            service=service,
            method="PUT",
            path=path,
            scopes=AllOf((f"{prefix}<property>",)),
            scopes_of=declarations.property_scopes(prefix),
            stability="experimental",
            **more,
        )

    def metadata(name: str, method: str, scopes: str, **more: Any) -> Route[Any]:
        return Route(
            name=name,
            service=service,
            method=method,
            path=f"{_TYPES}/metadata",
            scopes=scopes,
            stability="experimental",
            **more,
        )

    changing = f"queue:declare-worker-type:{_TYPE}#metadata"
    return (
        Route(
            name="quarantineWorker",
            service=service,
            method="PUT",
            path=_WORKERS,
            handler=quarantines.quarantine_worker,
            scopes=f"queue:quarantine-worker:{_WORKER}",
            body=schemas.QuarantineWorkerRequest,
            response=schemas.QueueWorkerResponse,
            stability="experimental",
        ),
        declare(
            "declareProvisioner",
            _PROVISIONERS,
            f"queue:declare-provisioner:{_P}#",
            handler=declarations.declare_provisioner,
            body=schemas.ProvisionerRequest,
            response=schemas.ProvisionerResponse,
        ),
        declare(
            "declareWorkerType",
            _TYPES,
            f"queue:declare-worker-type:{_TYPE}#",
            handler=declarations.declare_worker_type,
            body=schemas.WorkerTypeRequest,
            response=schemas.WorkerTypeResponse,
        ),
        declare(
            "declareWorker",
            f"{_TYPES}/<workerGroup>/<workerId>",
            f"queue:declare-worker:{_WORKER}#",
            handler=declarations.declare_worker,
            body=schemas.WorkerRequest,
            response=schemas.QueueWorkerResponse,
        ),
        metadata(
            "workerTypeMetadata",
            "GET",
            f"queue:get-worker-type:{_TYPE}",
            handler=declarations.metadata,
            response=schemas.MetadataResponse,
        ),
        metadata(
            "putWorkerTypeMetadata",
            "PUT",
            changing,
            handler=declarations.put_metadata,
            body=schemas.MetadataRequest,
            response=schemas.MetadataResponse,
        ),
        metadata(
            "deleteWorkerTypeMetadata", "DELETE", changing, handler=declarations.delete_metadata
        ),
    )


def _ours(name: str, method: str, path: str, scopes: Any, **more: Any) -> Route[Any]:
    return Route(
        name=name,
        service=NAME,
        method=method,
        path=path,
        scopes=scopes,
        stability="experimental",
        **more,
    )


OWN: tuple[Route[RegistryDeps], ...] = (
    _ours(
        "listWorkerGroups",
        "GET",
        f"/task-queues/{_TQ}/groups",
        f"queue:list-workers:{_TQ}",
        handler=registry_views.list_groups,
        query=PAGING,
        response=schemas.WorkerGroupsResponse,
    ),
    _ours(
        "closeTaskQueue",
        "PUT",
        f"/task-queues/{_TQ}/quarantine",
        f"queue:quarantine-worker:{_TQ}/*",
        handler=quarantines.close_task_queue,
        body=schemas.QuarantineWorkerRequest,
        response=schemas.TaskQueueResponse,
    ),
    _ours(
        "listQuarantines",
        "GET",
        f"{_WORKERS}/quarantines",
        f"queue:get-worker:{_WORKER}",
        handler=quarantines.list_quarantines,
        response=schemas.QuarantinesResponse,
    ),
    _ours(
        "observe",
        "POST",
        "/observations",
        AllOf((f"worker-registry:observe:{_TQ}",)),
        scopes_of=observations.scopes_to_observe,
        handler=observations.observe,
        body=schemas.ObservationsRequest,
        response=schemas.ObservationsResponse,
    ),
    _ours(
        "deleteProvisioner",
        "DELETE",
        _PROVISIONERS,
        f"worker-registry:delete:{_P}",
        handler=deletions.delete_provisioner,
    ),
    _ours(
        "deleteWorkerType",
        "DELETE",
        _TYPES,
        f"worker-registry:delete:{_TYPE}",
        handler=deletions.delete_worker_type,
    ),
    _ours(
        "deleteWorker",
        "DELETE",
        _WORKERS,
        f"worker-registry:delete:{_WORKER}",
        handler=deletions.delete_worker,
    ),
)
"""What only the registry has."""

ROUTES: tuple[Route[RegistryDeps], ...] = (
    *ping.routes_of(NAME),
    *(worker_stats.with_stats(route) for route in routes_of(NAME)),
    *worker_stats.STATS_ROUTES,
    *search.SEARCH_ROUTES,
    *worker_details.DETAILS_ROUTES,
    *bulk.BULK_ROUTES,
    *action_runs.RUN_ROUTES,
    *bulk_runs.BULK_RUN_ROUTES,
    *agents.AGENT_ROUTES,
    *actions.ACTION_ROUTES,
    *machines.MACHINE_ROUTES,
    *mix.MIX_ROUTES,
    *OWN,
    *references.routes_of(NAME),
)
