"""Workers one by one and in lists, and whether they should go.

A live cloud worker's row is not written when nothing changed: when it was last checked is its
location's last complete list, and when it expires follows from that.  Where to read next:
``static_workers`` (set up by hand), ``registration`` (what machines themselves call).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from worker_manager.api import audit, paging
from worker_manager.api.conversions import STATE, currency, worker_full
from worker_manager.api.definitions import ATTEMPTS, after_commit
from worker_manager.api.providers import existing_provider
from worker_manager.api.refusals import not_found, unavailable
from worker_manager.api.routing import PAGING, Call, Route
from worker_manager.api.schemas import ShouldTerminateAnswer, WorkerFull, WorkerList
from worker_manager.api.worker_pools import existing_pool
from worker_manager.core.ids import IDENTIFIER, is_identifier
from worker_manager.core.lifecycle import removal, told_to_go
from worker_manager.core.messages import Terminate
from worker_manager.core.model import State, WorkerKey
from worker_manager.core.moments import whole_milliseconds
from worker_manager.identity.static import previous_until
from worker_manager.queues import Message
from worker_manager.store.worker_items import sort_key

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from worker_manager.api.deps import ApiDeps
    from worker_manager.core.model import Location, Pool, Worker

REMOVED = "workerManager.removeWorker API call"
"""Why a worker stopped that somebody removed, or that removed itself untold."""

MOST_READ = 5000
"""Rows looked at for one page, however few of them a filter lets through."""

_AT_ONCE = 1000
"""Rows read with one request."""

NEVER_DECIDED = "none"
"""The reason while nothing was decided of a worker."""


def key_of(call: Call) -> WorkerKey:
    """The worker that the path names."""
    return WorkerKey(call.pool_id, call.params["workerGroup"], call.params["workerId"])


def find_worker(deps: ApiDeps, key: WorkerKey) -> Worker | None:
    """A worker's row; one that stopped long ago counts as gone, whatever still lies around."""
    worker = deps.stores.workers.get(key)
    if worker is None or is_forgotten(worker, deps):
        return None
    return worker


def existing_worker(deps: ApiDeps, key: WorkerKey) -> Worker:
    """A worker's row; a 404 if there is none."""
    worker = find_worker(deps, key)
    if worker is None:
        raise not_found("Worker not found")
    return worker


def is_forgotten(worker: Worker, deps: ApiDeps) -> bool:
    """Whether a worker stopped so long ago that its row counts as gone."""
    return deps.stores.workers.is_forgotten(worker, deps.clock())


@dataclass(slots=True)
class Display:
    """Workers as the API shows them; asks each location once, however many workers are there."""

    deps: ApiDeps
    _complete: dict[tuple[str, Location], datetime | None] = field(default_factory=dict)
    _pools: dict[str, Pool | None] = field(default_factory=dict)

    def show(self, worker: Worker) -> WorkerFull:
        """One worker."""
        checked = self._last_checked(worker)
        expires = worker.expires or checked + self.deps.timing.worker_kept
        also = self._of_static(worker)
        return worker_full(worker, expires=expires, last_checked=checked, **also)

    def _of_static(self, worker: Worker) -> dict[str, Any]:
        provider = self.deps.providers.get(worker.provider_id)
        if provider is None or provider.provider_type != "static":
            return {}
        pool_id = worker.key.pool_id
        if pool_id not in self._pools:
            self._pools[pool_id] = self.deps.stores.pools.get(pool_id)
        until = previous_until(worker.identity, self.deps.clock())
        return currency(worker, self._pools[pool_id]) | {"previous_secret_valid_until": until}

    def _last_checked(self, worker: Worker) -> datetime:
        if worker.state is State.STOPPED or not worker.location:
            return worker.modified
        place = (worker.provider_id, worker.location)
        if place not in self._complete:
            self._complete[place] = self.deps.stores.places.place(*place).complete
        complete = self._complete[place]
        if complete is None or complete < worker.created:
            return worker.modified
        return complete


def get(call: Call, deps: ApiDeps) -> WorkerFull:
    """One worker."""
    return Display(deps).show(existing_worker(deps, key_of(call)))


def list_of_pool(call: Call, deps: ApiDeps) -> WorkerList:
    """A page of a pool's workers, by group and id, of one state or launch config if so asked."""
    existing_pool(deps, call.pool_id)
    return _page(call, deps, group=None)


def list_of_group(call: Call, deps: ApiDeps) -> WorkerList:
    """A page of the workers of one group."""
    return _page(call, deps, group=call.params["workerGroup"])


def should_terminate(call: Call, deps: ApiDeps) -> ShouldTerminateAnswer:
    """The standing decision; every worker asks for it all the time, so it is one row's read.

    To a static worker, whose machine stays, it means: restart, and register anew.
    """
    worker = existing_worker(deps, key_of(call))
    if worker.state in (State.STOPPING, State.STOPPED):
        return ShouldTerminateAnswer(terminate=True, reason=worker.stop_reason or worker.state)
    if worker.surplus is None:
        return ShouldTerminateAnswer(terminate=False, reason=NEVER_DECIDED)
    return ShouldTerminateAnswer(terminate=worker.surplus.terminate, reason=worker.surplus.reason)


def remove(call: Call, deps: ApiDeps) -> dict[str, Any]:
    """Have a worker taken away: its row says so, and its provider is asked at once (B08).

    Asking again is harmless, and does what the first time may have left undone.
    """
    for _ in range(ATTEMPTS):
        worker = existing_worker(deps, key_of(call))
        provider = existing_provider(deps, worker.provider_id)
        if worker.state is State.STOPPED:
            return {}
        if worker.state is State.STOPPING:
            return _terminate(deps, worker)
        is_static = provider.provider_type == "static"
        removed = _stop(call, deps, worker, has_machine=not is_static)
        if removed is None:
            continue
        with after_commit("publishing the removal of a worker"):
            deps.outbox.send_workers([removed])
        return {} if is_static else _terminate(deps, removed)
    raise unavailable()


def _stop(call: Call, deps: ApiDeps, worker: Worker, *, has_machine: bool) -> Worker | None:
    now = whole_milliseconds(deps.clock())
    told = told_to_go(worker) if audit.is_worker_itself(call, worker) else None
    reason, by = told or (REMOVED, call.client_id)
    changes = removal(worker, has_machine=has_machine, at=now, reason=reason, by=by)
    return audit.change_worker(call, deps, "removed", worker, **changes)


def _terminate(deps: ApiDeps, worker: Worker) -> dict[str, Any]:
    sender = deps.senders[worker.provider_id]["advance"]
    sender.send([Message(Terminate(worker.key).to_json())])
    return {}


def _page(call: Call, deps: ApiDeps, *, group: str | None) -> WorkerList:
    size = paging.page_size(call.query)
    after = paging.position(call.query, _position_in(group))
    display = Display(deps)
    page: list[WorkerFull] = []
    last, is_last = after, True
    rows = deps.stores.workers.beyond(
        call.pool_id, group=group, after=after, at_once=_at_once(call, size)
    )
    for number, worker in enumerate(rows):
        if len(page) == size or number == MOST_READ:
            is_last = False
            break
        last = sort_key(worker.key)
        if _is_wanted(worker, call) and not is_forgotten(worker, deps):
            page.append(display.show(worker))
    return WorkerList(workers=page, **paging.with_token(None if is_last else last))


def _at_once(call: Call, size: int) -> int:
    """Rows to read with one request: one more than shown, or many where few are wanted."""
    is_filtered = not call.query.keys().isdisjoint(("state", "launchConfigId"))
    return _AT_ONCE if is_filtered else size + 1


def _is_wanted(worker: Worker, call: Call) -> bool:
    wanted = call.query
    return wanted.get("state") in (None, worker.state) and wanted.get("launchConfigId") in (
        None,
        worker.launch_config_id,
    )


def _position_in(group: str | None) -> Callable[[str], bool]:
    def is_one(text: str) -> bool:
        found, _, worker_id = text.partition("#")
        return is_identifier(found) and is_identifier(worker_id) and group in (None, found)

    return is_one


_WORKER = "<workerPoolId>/<workerGroup>/<workerId>"
_LIST_GROUP = "worker-manager:list-workers:<workerPoolId>/<workerGroup>"
_GET = f"worker-manager:get-worker:{_WORKER}"


def _group_route(name: str, path: str) -> Route[ApiDeps]:
    return Route(
        name=name,
        method="GET",
        path=path,
        handler=list_of_group,
        scopes=_LIST_GROUP,
        query=PAGING,
        response=WorkerList,
        is_published=not name.endswith("WithColon"),
    )


def _worker_route(name: str, path: str) -> Route[ApiDeps]:
    return Route(
        name=name,
        method="GET",
        path=path,
        handler=get,
        scopes=_GET,
        response=WorkerFull,
        is_published=not name.endswith("WithColon"),
    )


ROUTES: tuple[Route[ApiDeps], ...] = (
    _group_route(
        "listWorkersForWorkerGroupWithColon",
        "/workers/<workerPoolId>:/<workerGroup>",
    ),
    _worker_route("workerWithColon", "/workers/<workerPoolId>:/<workerGroup>/<workerId>"),
    _group_route("listWorkersForWorkerGroup", "/workers/<workerPoolId>/<workerGroup>"),
    _worker_route("worker", "/workers/<workerPoolId>/<workerGroup>/<workerId>"),
    Route(
        name="removeWorker",
        method="DELETE",
        path="/workers/<workerPoolId>/<workerGroup>/<workerId>",
        handler=remove,
        scopes=f"worker-manager:remove-worker:{_WORKER}",
    ),
    Route(
        name="shouldWorkerTerminate",
        method="GET",
        path="/workers/<workerPoolId>/<workerGroup>/<workerId>/should-terminate",
        handler=should_terminate,
        scopes=f"worker-manager:should-worker-terminate:{_WORKER}",
        response=ShouldTerminateAnswer,
        stability="experimental",
    ),
    Route(
        name="listWorkersForWorkerPool",
        method="GET",
        path="/workers/<workerPoolId>",
        handler=list_of_pool,
        scopes="worker-manager:list-workers:<workerPoolId>",
        query={
            **PAGING,
            "launchConfigId": IDENTIFIER,
            "state": STATE,
        },
        response=WorkerList,
    ),
)
