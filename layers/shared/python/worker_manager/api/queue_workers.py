"""Workers as the queue and we know them together: ``listWorkers`` and ``getWorker``.

A list is the merge of two that are ordered alike, our rows and the queue's, so that a page costs
the same wherever it begins; of a queue whose order may be another the whole list is read for the
first page, and kept for a while for those after it.
Where to read next: ``workers`` (our rows alone).
"""

from __future__ import annotations

from datetime import timedelta
from heapq import merge
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from worker_manager.api import paging
from worker_manager.api.conversions import STATE
from worker_manager.api.refusals import not_found
from worker_manager.api.routing import PAGING, Call, Route
from worker_manager.api.view_schemas import (
    ListedWorker,
    ListWorkersResponse,
    QuarantineChange,
    TaskRun,
    WorkerResponse,
)
from worker_manager.api.workers import MOST_READ, find_worker, is_forgotten
from worker_manager.core.ids import IDENTIFIER, is_identifier
from worker_manager.core.model import WorkerKey
from worker_manager.core.moments import from_wire

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from worker_manager.api.deps import ApiDeps
    from worker_manager.core.activity import Activity, SeenWorker
    from worker_manager.core.model import Json, Worker

STANDALONE = "standalone"
"""The state of a worker that only the queue knows."""

KEPT = timedelta(seconds=30)
"""How long the list of a queue that orders it by itself serves the pages after the first."""

NO_PROVIDER = "none"
"""Its provider."""

Name = tuple[str, str]
"""A worker's group and id."""


class Known(NamedTuple):
    """What each side knows of one worker: our row, and its line in the queue's list."""

    name: Name
    row: Worker | None
    seen: SeenWorker | None


class Place(NamedTuple):
    """Where a page ends: the last worker's name, and the queue's page that the next one is in."""

    name: Name
    token: str | None

    @classmethod
    def of(cls, text: str | None) -> Place:
        """Back from a token of ours; without one, where lists begin."""
        group, worker_id, token = (text or "##").split("#", 2)
        return cls((group, worker_id), token or None)

    def __str__(self) -> str:
        """For a token of ours."""
        return "#".join((*self.name, self.token or ""))


def list_all(call: Call, deps: ApiDeps) -> ListWorkersResponse:
    """A page of a pool's workers, by group and id: those that the queue heard of, and ours."""
    pool_id = _pool_id(call)
    size = paging.page_size(call.query)
    place = Place.of(paging.position(call.query, _is_place))
    now = deps.clock()
    page: list[ListedWorker] = []
    is_last = True
    for number, (known, token) in enumerate(_merged(deps, pool_id, place)):
        if len(page) == size or number == MOST_READ:
            is_last, place = False, Place(place.name, token)
            break
        place = Place(known.name, token)
        if _is_wanted(known, call, now):
            page.append(_listed(known, pool_id))
    return ListWorkersResponse(workers=page, **paging.with_token(None if is_last else str(place)))


def get(call: Call, deps: ApiDeps) -> WorkerResponse:
    """One worker that the queue heard or was told of, with what we know of it."""
    pool_id = _pool_id(call)
    key = WorkerKey(pool_id, call.params["workerGroup"], call.params["workerId"])
    history = deps.queue.worker(key.pool_id, key.group, key.worker_id)
    if history is None:
        raise not_found("Worker not found: the queue has not heard of it")
    facts = _facts(key.group, key.worker_id, history.activity)
    if history.first_claim is not None:
        facts["first_claim"] = history.first_claim
    return WorkerResponse(
        provisioner_id=call.params["provisionerId"],
        worker_type=call.params["workerType"],
        recent_tasks=[_run(task) for task in history.recent_tasks],
        expires=history.expires,
        quarantine_details=[_change(change) for change in history.quarantine_changes],
        **facts,
        **_ours(find_worker(deps, key), pool_id),
    )


def _merged(deps: ApiDeps, pool_id: str, place: Place) -> Iterator[tuple[Known, str | None]]:
    """Every worker beyond a place once, with the token of the queue's page that was used last."""
    after = "#".join(place.name) if any(place.name) else None
    rows = (
        ((row.key.group, row.key.worker_id), row, None, None)
        for row in deps.stores.workers.beyond(pool_id, after=after, at_once=paging.LARGEST_PAGE)
    )
    seen = ((worker.name, None, worker, token) for worker, token in _seen(deps, pool_id, place))
    used = place.token
    for name, same in groupby(merge(rows, seen, key=itemgetter(0)), key=itemgetter(0)):
        row, line = None, None
        for _, one, other, token in same:
            row, line, used = one or row, other or line, token or used
        is_there = row is not None and not is_forgotten(row, deps)
        yield Known(name, row if is_there else None, line), used


def _seen(deps: ApiDeps, pool_id: str, place: Place) -> Iterator[tuple[SeenWorker, str | None]]:
    """The queue's workers beyond a place, in order, each with the token of its page."""
    if not deps.queue.is_ordered:
        everyone = _everyone(deps, pool_id, is_first_page=not any(place.name))
        yield from ((worker, None) for worker in everyone if worker.name > place.name)
        return
    for worker, token in _pages(deps, pool_id, place.token):
        if worker.name > place.name:
            yield worker, token


def _everyone(deps: ApiDeps, pool_id: str, *, is_first_page: bool) -> Sequence[SeenWorker]:
    """The queue's whole list, in order, anew for a first page."""
    now = deps.clock()
    known = None if is_first_page else deps.queue_lists.get(pool_id, now)
    if known is not None:
        return known
    everyone = sorted(
        (worker for worker, _ in _pages(deps, pool_id, None)), key=lambda worker: worker.name
    )
    deps.queue_lists.put(pool_id, everyone, until=now + KEPT, now=now)
    return everyone


def _pages(
    deps: ApiDeps, pool_id: str, token: str | None
) -> Iterator[tuple[SeenWorker, str | None]]:
    while True:
        workers, following = deps.queue.worker_page(pool_id, token)
        for worker in workers:
            yield worker, token
        if following is None:
            return
        token = following


def _is_wanted(known: Known, call: Call, now: datetime) -> bool:
    row, seen = known.row, known.seen
    if row is None and seen is None:
        return False
    until = seen.activity.quarantine_until if seen else None
    is_quarantined = "true" if until is not None and until > now else "false"
    facts = {
        "workerState": row.state.value if row else STANDALONE,
        "launchConfigId": row.launch_config_id if row else None,
        "quarantined": is_quarantined,
    }
    return all(call.query.get(name) in (None, value) for name, value in facts.items())


def _listed(known: Known, pool_id: str) -> ListedWorker:
    group, worker_id = known.name
    facts = _facts(group, worker_id, known.seen.activity if known.seen else None)
    if known.seen and known.seen.latest_task:
        facts["latest_task"] = _run(known.seen.latest_task)
    return ListedWorker(**facts, **_ours(known.row, pool_id))


def _facts(group: str, worker_id: str, activity: Activity | None) -> dict[str, Any]:
    """What the queue knows; nothing where it does not know the worker."""
    moments = {
        "first_claim": activity and activity.first_claim,
        "last_date_active": activity and activity.last_active,
        "quarantine_until": activity and activity.quarantine_until,
    }
    told = {name: moment for name, moment in moments.items() if moment is not None}
    return {"worker_group": group, "worker_id": worker_id, **told}


def _ours(row: Worker | None, pool_id: str) -> dict[str, Any]:
    """What we know; a worker that is not ours stands alone."""
    if row is None:
        return {
            "worker_pool_id": pool_id,
            "state": STANDALONE,
            "capacity": 0,
            "provider_id": NO_PROVIDER,
        }
    optional: dict[str, Any] = {}
    if row.launch_config_id is not None:
        optional["launch_config_id"] = row.launch_config_id
    return {
        "worker_pool_id": pool_id,
        "state": row.state,
        "capacity": row.capacity,
        "provider_id": row.provider_id,
        **optional,
    }


def _run(task: Json) -> TaskRun:
    return TaskRun(task_id=task["taskId"], run_id=task["runId"])


def _change(change: Json) -> QuarantineChange:
    return QuarantineChange(
        client_id=change["clientId"],
        updated_at=from_wire(change["updatedAt"]),
        quarantine_until=from_wire(change["quarantineUntil"]),
        quarantine_info=change["quarantineInfo"],
    )


def _pool_id(call: Call) -> str:
    return f"{call.params['provisionerId']}/{call.params['workerType']}"


def _is_place(text: str) -> bool:
    parts = text.split("#", 2)
    return len(parts) == 3 and is_identifier(parts[0]) and is_identifier(parts[1])


_WORKERS = "/provisioners/<provisionerId>/worker-types/<workerType>/workers"
_POOL = "<provisionerId>/<workerType>"

ROUTES: tuple[Route[ApiDeps], ...] = (
    Route(
        name="listWorkers",
        method="GET",
        path=_WORKERS,
        handler=list_all,
        scopes=f"worker-manager:list-workers:{_POOL}",
        query={
            **PAGING,
            "launchConfigId": IDENTIFIER,
            "quarantined": r"^(true|false)$",
            "workerState": STATE,
        },
        response=ListWorkersResponse,
        stability="experimental",
    ),
    Route(
        name="getWorker",
        method="GET",
        path=f"{_WORKERS}/<workerGroup>/<workerId>",
        handler=get,
        scopes=f"worker-manager:get-worker:{_POOL}/<workerGroup>/<workerId>",
        response=WorkerResponse,
        stability="experimental",
    ),
)
