"""Errors of pools: told by workers, read by the pools' owners."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING

from worker_manager.api import paging
from worker_manager.api.conversions import pool_error
from worker_manager.api.providers import provider_of_pool
from worker_manager.api.refusals import input_error
from worker_manager.api.routing import PAGING, Call, Route
from worker_manager.api.schemas import (
    ReportWorkerErrorRequest,
    WorkerPoolError,
    WorkerPoolErrorList,
)
from worker_manager.api.worker_pools import existing_pool
from worker_manager.core.ids import IDENTIFIER, is_identifier
from worker_manager.core.model import PoolError, WorkerKey
from worker_manager.core.moments import from_wire, to_wire, whole_milliseconds
from worker_manager.core.scopes import AllOf
from worker_manager.metrics import REPORTED, meter
from worker_manager.store.pool_errors import sort_key

if TYPE_CHECKING:
    from worker_manager.api.deps import ApiDeps

LARGEST_EXTRA = 200_000
"""Bytes of ``extra`` as JSON; a DynamoDB item ends at 400 KB."""

MOST_READ = 5000
"""Errors looked at for one page, however few of them a filter lets through."""


REPEAT = timedelta(minutes=1)
"""How long the same report counts as a repeat; a client's last attempt comes well before."""

REPEATS_LOOKED_AT = 100


def report(call: Call, deps: ApiDeps) -> WorkerPoolError:
    """Record what a worker reports; its launch config is known if the worker is."""
    body: ReportWorkerErrorRequest = call.body
    if len(json.dumps(body.extra)) > LARGEST_EXTRA:
        raise input_error(f"extra: is longer than {LARGEST_EXTRA} bytes")
    pool = existing_pool(deps, call.pool_id)
    provider_of_pool(deps, pool.provider_id)
    worker = deps.stores.workers.get(WorkerKey(pool.pool_id, body.worker_group, body.worker_id))
    error = PoolError(
        error_id=deps.new_slugid(),
        pool_id=pool.pool_id,
        reported=whole_milliseconds(deps.clock()),
        kind=body.kind,
        title=body.title,
        description=body.description,
        extra={**body.extra, "workerGroup": body.worker_group, "workerId": body.worker_id},
        launch_config_id=worker.launch_config_id if worker else None,
    )
    if (repeated := _reported_before(error, deps)) is not None:
        return pool_error(repeated)
    meter.failed(pool.provider_id, REPORTED)
    deps.outbox.report(error, pool.provider_id, mails=pool.email_on_error)
    return pool_error(error)


def _reported_before(error: PoolError, deps: ApiDeps) -> PoolError | None:
    """The same report a moment ago: clients repeat what was answered with a 5xx."""
    recent = deps.errors.since(error.pool_id, error.reported - REPEAT, limit=REPEATS_LOOKED_AT)
    for known in recent:
        if replace(error, error_id=known.error_id, reported=known.reported) == known:
            return known
    return None


def list_of_pool(call: Call, deps: ApiDeps) -> WorkerPoolErrorList:
    """A page of errors, newest first; a pool that is unknown has none."""
    size = paging.page_size(call.query)
    before = paging.position(call.query, _is_sort_key)
    oldest = deps.clock() - deps.timing.errors_kept
    page: list[WorkerPoolError] = []
    last, taken = None, 0
    found = deps.errors.newest_first(call.pool_id, before=before)
    for error in islice(found, MOST_READ):
        if error.reported < oldest:
            return WorkerPoolErrorList(worker_pool_errors=page)
        if _is_wanted(error, call):
            item = pool_error(error)
            taken += paging.size_of(item)
            if len(page) == size or (page and taken > deps.page_bytes):
                break
            page.append(item)
        last = sort_key(error)
    else:
        if next(found, None) is None:
            last = None
    return WorkerPoolErrorList(worker_pool_errors=page, **paging.with_token(last))


def _is_wanted(error: PoolError, call: Call) -> bool:
    wanted = call.query
    return wanted.get("errorId") in (None, error.error_id) and wanted.get("launchConfigId") in (
        None,
        error.launch_config_id,
    )


def _is_sort_key(text: str) -> bool:
    moment, _, error_id = text.partition("#")
    try:
        return to_wire(from_wire(moment)) == moment and is_identifier(error_id)
    except ValueError:
        return False


ROUTES: tuple[Route[ApiDeps], ...] = (
    Route(
        name="reportWorkerError",
        method="POST",
        path="/worker-pool-errors/<workerPoolId>",
        handler=report,
        scopes=AllOf(
            (
                "assume:worker-pool:<workerPoolId>",
                "assume:worker-id:<workerGroup>/<workerId>",
            )
        ),
        body=ReportWorkerErrorRequest,
        response=WorkerPoolError,
    ),
    Route(
        name="listWorkerPoolErrors",
        method="GET",
        path="/worker-pool-errors/<workerPoolId>",
        handler=list_of_pool,
        scopes="worker-manager:list-worker-pool-errors:<workerPoolId>",
        query={
            **PAGING,
            "launchConfigId": IDENTIFIER,
            "errorId": r"^[a-zA-Z0-9_-]{1,100}$",
        },
        response=WorkerPoolErrorList,
    ),
)
