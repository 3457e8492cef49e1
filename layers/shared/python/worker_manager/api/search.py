"""Finding workers across all task queues, whoever provides them.

Where to read next: ``everyone`` (the order they come in, and what a page may cost),
``worker_details`` (all about one of them).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker_manager.api import paging
from worker_manager.api.conversions import STATE
from worker_manager.api.everyone import take
from worker_manager.api.found import Place, Wanted
from worker_manager.api.machines import verdicts_on
from worker_manager.api.refusals import input_error
from worker_manager.api.registry_answers import told
from worker_manager.api.registry_schemas import RunName
from worker_manager.api.routing import PAGING, Call, Route
from worker_manager.api.search_schemas import (
    SearchedWorker,
    SearchWorkersResponse,
    WorkerFigures,
)
from worker_manager.api.worker_figures import worker_figures
from worker_manager.core.ids import IDENTIFIER, POOL_ID

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from worker_manager.api.deps import RegistryDeps
    from worker_manager.api.found import Found
    from worker_manager.api.machine_schemas import VerdictPart

SEARCH_SCOPE = "worker-registry:search"
"""Of whoever looks for workers; of which queues they may be, ``queue:list-workers`` says."""


def search_workers(call: Call, deps: RegistryDeps) -> SearchWorkersResponse:
    """A page of workers of all task queues, by task queue, group and id.

    Only queues are gone through whose workers the caller may list (``queue:list-workers:<task
    queue id>``).  ``q`` is what a worker's id begins with, in large or small letters.  A worker is
    *gone* if its machine has ended, *unknown* if no queue has ever heard of it, *failing* if half
    of its last week's runs failed or ended in an exception that is its fault (of five at least),
    *silent* if it was not heard of for two hours, else *ok*; the first of these that fits.
    """
    wanted = wanted_of(call.query)
    after = Place.parse(paging.position(call.query, Place.is_one))
    size = paging.page_size(call.query)
    found, place = take(call, deps, wanted, after=after, size=size)
    now = deps.clock()
    closed = deps.downtimes.in_force(now=now)
    verdicts = verdicts_on(deps.registry, [one.key for one in found])
    items = (
        _searched(one, now, closed.get(one.key.pool_id), verdicts.get(one.key)) for one in found
    )
    page = list(paging.cut(items, paging.size_of, most_bytes=deps.page_bytes))
    if len(page) < len(found):
        place = Place.of(found[len(page) - 1].key)
    token = None if place is None else str(place)
    return SearchWorkersResponse(workers=page, **paging.with_token(token))


def wanted_of(query: Mapping[str, str]) -> Wanted:
    """Whom a query asks for; a 400 if nobody can be meant."""
    queue_id, provisioner_id = query.get("taskQueueId"), query.get("provisionerId")
    if queue_id is not None and provisioner_id is not None:
        raise input_error("taskQueueId and provisionerId cannot be given together")
    held = query.get("quarantined")
    return Wanted(
        task_queue_id=queue_id,
        provisioner_id=provisioner_id,
        worker_group=query.get("workerGroup"),
        worker_id=query.get("q", ""),
        state=query.get("state"),
        quarantined=None if held is None else held == "true",
        health=query.get("health"),
        cloud_provider_id=query.get("providerId"),
        launch_config_id=query.get("launchConfigId"),
    )


def _searched(
    found: Found, now: datetime, closed_until: datetime | None, verdict: VerdictPart | None
) -> SearchedWorker:
    seen, row = found.seen, found.row
    latest = seen.claims[-1] if seen and seen.claims else None
    capacity = row.capacity if row else seen.capacity if seen else None
    return SearchedWorker(
        task_queue_id=found.key.pool_id,
        worker_group=found.key.group,
        worker_id=found.key.worker_id,
        state=found.state,
        provider_id=found.provider_id,
        capacity=capacity or 0,
        figures=WorkerFigures(**worker_figures(found, now)),
        **told(
            verdict=verdict and verdict.verdict,
            closed_until=closed_until,
            launch_config_id=row and row.launch_config_id,
            first_claim=seen and seen.first_claim,
            last_date_active=seen and seen.last_active,
            latest_task=latest and RunName(task_id=latest.task_id, run_id=latest.run_id),
            quarantine_until=seen and seen.quarantine_until if found.is_quarantined(now) else None,
        ),
    )


SEARCH_ROUTES: tuple[Route[RegistryDeps], ...] = (
    Route(
        name="searchWorkers",
        service="worker-registry",
        method="GET",
        path="/workers",
        handler=search_workers,
        scopes=SEARCH_SCOPE,
        query={
            **PAGING,
            "q": IDENTIFIER,
            "workerGroup": IDENTIFIER,
            "taskQueueId": POOL_ID,
            "provisionerId": IDENTIFIER,
            "state": STATE,
            "quarantined": r"^(true|false)$",
            "health": r"^(ok|failing|silent|unknown|gone)$",
            "providerId": IDENTIFIER,
            "launchConfigId": IDENTIFIER,
        },
        response=SearchWorkersResponse,
        stability="experimental",
    ),
)
