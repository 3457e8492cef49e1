"""Worker pools: their definitions, as operators and tools see them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from worker_manager.api import definitions
from worker_manager.api.configs import to_parts, validate_config
from worker_manager.api.conversions import pool_full
from worker_manager.api.pool_pages import page_of_pools
from worker_manager.api.providers import provider_of_pool, status_if_any
from worker_manager.api.refusals import input_error, not_found
from worker_manager.api.routing import PAGING, Call, Route
from worker_manager.api.schemas import (
    CreateWorkerPoolRequest,
    UpdateWorkerPoolRequest,
    WorkerPoolFull,
    WorkerPoolList,
)
from worker_manager.core.definition import assemble
from worker_manager.core.model import NULL_PROVIDER
from worker_manager.core.moments import whole_milliseconds
from worker_manager.core.scopes import AllOf

if TYPE_CHECKING:
    from datetime import datetime

    from worker_manager.api.deps import ApiDeps
    from worker_manager.core.definition import Parts
    from worker_manager.core.model import Pool

_MANAGE = "worker-manager:manage-worker-pool:<workerPoolId>"
_DEFINE = AllOf((_MANAGE, "worker-manager:provider:<providerId>"))
_GET = "worker-manager:get-worker-pool:<workerPoolId>"


def create(call: Call, deps: ApiDeps) -> WorkerPoolFull:
    """Create a pool; the same definition again gives the same answer."""
    body: CreateWorkerPoolRequest = call.body
    now = whole_milliseconds(deps.clock())
    parts = _parts(call, deps, now)
    asked = definitions.new_pool(call.pool_id, body, parts, now)
    pool = definitions.create(call, deps, asked, parts.bodies)
    return _full(deps, pool)


def update(call: Call, deps: ApiDeps) -> WorkerPoolFull:
    """Replace a pool's definition as a whole."""
    body: UpdateWorkerPoolRequest = call.body
    now = whole_milliseconds(deps.clock())
    parts = _parts(call, deps, now)
    if body.worker_pool_id not in (None, call.pool_id):
        raise input_error(f"workerPoolId: {body.worker_pool_id!r} is not the pool of the URL")
    pool = definitions.change(
        call,
        deps,
        "updated",
        lambda before: definitions.replaced(before, body, parts, now),
        bodies=parts.bodies,
    )
    return _full(deps, pool)


def delete(call: Call, deps: ApiDeps) -> WorkerPoolFull:
    """Give a pool to the null provider; it is removed once nothing of it is left anywhere."""
    now = whole_milliseconds(deps.clock())

    def decide(before: Pool) -> Pool | None:
        if before.provider_id == NULL_PROVIDER and not before.heads:
            return None
        return definitions.deleted(before, now)

    pool = definitions.change(call, deps, "deleted", decide, bodies={})
    return _full(deps, pool)


def get(call: Call, deps: ApiDeps) -> WorkerPoolFull:
    """One pool, with the counts of its workers and how its provider fares."""
    return _full(deps, existing_pool(deps, call.pool_id))


def list_all(call: Call, deps: ApiDeps) -> WorkerPoolList:
    """A page of pools by id, without counts."""
    pools, token = page_of_pools(call, deps, _listed)
    return WorkerPoolList(worker_pools=pools, **token)


def existing_pool(deps: ApiDeps, pool_id: str) -> Pool:
    """A pool's definition; a 404 if there is no such pool."""
    pool = deps.stores.pools.get(pool_id)
    if pool is None:
        raise not_found(f"Worker pool {pool_id!r} does not exist")
    return pool


def _parts(call: Call, deps: ApiDeps, now: datetime) -> Parts:
    body: CreateWorkerPoolRequest = call.body
    provider = provider_of_pool(deps, body.provider_id)
    config = validate_config(
        body.config,
        provider.provider_type,
        shortest_inactivity=deps.timing.shortest_inactivity,
    )
    return to_parts(call.pool_id, config, provider=provider, root_url=deps.root_url, now=now)


def _full(deps: ApiDeps, pool: Pool) -> WorkerPoolFull:
    return pool_full(
        pool,
        _config(deps, pool),
        states=deps.stores.workers.states(pool.pool_id, deps.clock()),
        provider_status=status_if_any(pool.provider_id, deps),
    )


def _config(deps: ApiDeps, pool: Pool) -> dict[str, Any]:
    names = [head.launch_config_id for head in pool.heads]
    bodies = deps.stores.pools.bodies(pool.pool_id, names, now=deps.clock())
    return assemble(pool.config, pool.heads, {name: bodies[name].body for name in names})


def _listed(deps: ApiDeps, pool_id: str) -> WorkerPoolFull | None:
    pool = deps.stores.pools.get(pool_id)
    return None if pool is None else pool_full(pool, _config(deps, pool))


ROUTES: tuple[Route[ApiDeps], ...] = (
    Route(
        name="createWorkerPool",
        method="PUT",
        path="/worker-pool/<workerPoolId>",
        handler=create,
        scopes=_DEFINE,
        body=CreateWorkerPoolRequest,
        response=WorkerPoolFull,
    ),
    Route(
        name="updateWorkerPool",
        method="POST",
        path="/worker-pool/<workerPoolId>",
        handler=update,
        scopes=_DEFINE,
        body=UpdateWorkerPoolRequest,
        response=WorkerPoolFull,
        stability="experimental",
    ),
    Route(
        name="deleteWorkerPool",
        method="DELETE",
        path="/worker-pool/<workerPoolId>",
        handler=delete,
        scopes=_MANAGE,
        response=WorkerPoolFull,
    ),
    Route(
        name="workerPool",
        method="GET",
        path="/worker-pool/<workerPoolId>",
        handler=get,
        scopes=_GET,
        response=WorkerPoolFull,
    ),
    Route(
        name="listWorkerPools",
        method="GET",
        path="/worker-pools",
        handler=list_all,
        scopes="worker-manager:list-worker-pools",
        query=PAGING,
        response=WorkerPoolList,
    ),
)
