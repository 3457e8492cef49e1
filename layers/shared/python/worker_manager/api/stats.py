"""How many workers pools have, by state and launch config, counted from their rows."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from worker_manager.api.conversions import counts
from worker_manager.api.pool_pages import page_of_pools
from worker_manager.api.routing import PAGING, Call, Route
from worker_manager.api.view_schemas import (
    LaunchConfigStats,
    PoolStats,
    WorkerPoolsStatsList,
    WorkerPoolStats,
)
from worker_manager.api.worker_pools import existing_pool

if TYPE_CHECKING:
    from worker_manager.api.deps import ApiDeps
    from worker_manager.core.model import State

UNKNOWN = "unknown"
"""Stands for the launch config of workers that have none; also of a pool without workers."""


def of_pool(call: Call, deps: ApiDeps) -> WorkerPoolStats:
    """One pool's workers by launch config, those stopped lately included."""
    pool = existing_pool(deps, call.pool_id)
    states: defaultdict[str, list[tuple[State, int]]] = defaultdict(list)
    for launch_config_id, state, capacity in deps.stores.workers.standings(
        pool.pool_id, deps.clock()
    ):
        states[launch_config_id or UNKNOWN].append((state, capacity))
    return WorkerPoolStats(
        launch_config_stats=[
            LaunchConfigStats(
                worker_pool_id=pool.pool_id,
                launch_config_id=launch_config_id,
                **counts(states[launch_config_id]),
            )
            for launch_config_id in sorted(states) or [UNKNOWN]
        ]
    )


def list_all(call: Call, deps: ApiDeps) -> WorkerPoolsStatsList:
    """A page of pools by id, each with the counts of its workers."""
    pools, token = page_of_pools(call, deps, _counted)
    return WorkerPoolsStatsList(worker_pools_stats=pools, **token)


def _counted(deps: ApiDeps, pool_id: str) -> PoolStats:
    return PoolStats(
        worker_pool_id=pool_id, **counts(deps.stores.workers.states(pool_id, deps.clock()))
    )


ROUTES: tuple[Route[ApiDeps], ...] = (
    Route(
        name="workerPoolStats",
        method="GET",
        path="/worker-pool/<workerPoolId>/stats",
        handler=of_pool,
        scopes="worker-manager:get-worker-pool:<workerPoolId>",
        response=WorkerPoolStats,
        stability="experimental",
    ),
    Route(
        name="listWorkerPoolsStats",
        method="GET",
        path="/worker-pools/stats",
        handler=list_all,
        scopes="worker-manager:list-worker-pools",
        query=PAGING,
        response=WorkerPoolsStatsList,
        stability="experimental",
    ),
)
