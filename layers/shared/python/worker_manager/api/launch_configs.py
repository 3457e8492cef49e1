"""The launch configs of a pool one by one, archived ones on request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from worker_manager.api import paging
from worker_manager.api.routing import PAGING, Call, Route
from worker_manager.api.schemas import LaunchConfigFull, WorkerPoolLaunchConfigList
from worker_manager.api.worker_pools import existing_pool
from worker_manager.core.ids import is_identifier

if TYPE_CHECKING:
    from worker_manager.api.deps import ApiDeps
    from worker_manager.core.model import LaunchConfig, LaunchConfigHead, Pool


def list_of_pool(call: Call, deps: ApiDeps) -> WorkerPoolLaunchConfigList:
    """A page of launch configs by id.

    Of an archived one only its body is left: what was in its ``workerManager`` is not.
    """
    size = paging.page_size(call.query)
    after = paging.position(call.query, is_identifier) or ""
    pool = existing_pool(deps, call.pool_id)
    active = {head.launch_config_id: head for head in pool.heads}
    if call.query.get("includeArchived") == "true":
        bodies = deps.pools.bodies(pool.pool_id, now=deps.clock())
        ids = sorted(name for name in bodies.keys() | active.keys() if name > after)
    else:
        ids = sorted(name for name in active if name > after)
        bodies = deps.pools.bodies(pool.pool_id, ids[:size], now=deps.clock())
    items = (_full(pool, bodies[name], active.get(name)) for name in ids[:size])
    page = list(paging.cut(items, paging.size_of))
    is_last = len(page) == len(ids)
    return WorkerPoolLaunchConfigList(
        worker_pool_launch_configs=page,
        **paging.with_token(None if is_last else page[-1].launch_config_id),
    )


def _full(pool: Pool, config: LaunchConfig, head: LaunchConfigHead | None) -> LaunchConfigFull:
    manager: dict[str, Any] = {}
    if head is not None and head.manager:
        manager["workerManager"] = dict(head.manager)
    return LaunchConfigFull(
        launch_config_id=config.launch_config_id,
        worker_pool_id=pool.pool_id,
        is_archived=head is None,
        configuration={**config.body, **manager},
        created=config.created,
        last_modified=head.modified if head is not None else config.created,
    )


ROUTES: tuple[Route[ApiDeps], ...] = (
    Route(
        name="listWorkerPoolLaunchConfigs",
        method="GET",
        path="/worker-pool/<workerPoolId>/launch-configs",
        handler=list_of_pool,
        scopes="worker-manager:get-worker-pool:<workerPoolId>",
        query={**PAGING, "includeArchived": r"^(true|false)$"},
        response=WorkerPoolLaunchConfigList,
        stability="experimental",
    ),
)
