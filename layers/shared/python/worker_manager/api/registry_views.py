"""Reading the registry: provisioners, worker types, worker groups and workers, by page or by name.

Lists show what its window shows (``registry.windows``); by name also what is past that, or was
only declared, is told, and so it is in lists with ``includeInactive``.  Where to read next:
``declarations`` and ``quarantines``, which change it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from worker_manager.api import paging
from worker_manager.api.actions import worker_type_actions
from worker_manager.api.refusals import not_found
from worker_manager.api.registry_answers import (
    provisioner,
    task_queue,
    worker_answer,
    worker_item,
    worker_type,
)
from worker_manager.api.registry_schemas import (
    ListProvisionersResponse,
    ListQueueWorkersResponse,
    ListTaskQueuesResponse,
    ListWorkerTypesResponse,
    ProvisionerResponse,
    QueueWorkerResponse,
    TaskQueueResponse,
    WorkerGroupResponse,
    WorkerGroupsResponse,
    WorkerItem,
    WorkerTypeResponse,
)
from worker_manager.core.ids import is_identifier, is_pool_id
from worker_manager.core.model import WorkerKey
from worker_manager.registry import windows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pydantic import BaseModel

    from worker_manager.api.deps import RegistryAccess
    from worker_manager.api.routing import Call
    from worker_manager.registry.entities import (
        RegistryWorker,
        WorkerType,
    )

_ModelT = TypeVar("_ModelT", bound="BaseModel")

MOST_READ = 5000
"""Rows that one call reads for its page; a page may then be short, and still not be the last."""
AT_ONCE = 1000
"""Rows that are read at once where it is not known how many are shown."""


def list_provisioners(call: Call, deps: RegistryAccess) -> ListProvisionersResponse:
    """A page of provisioners: those of which something was seen lately.

    For how long that counts depends on what was declared; ``includeInactive`` lists all that are
    known.
    """
    now, rules = deps.clock(), deps.registry.windows
    after = paging.position(call.query, is_identifier) or ""
    sticky = {one.provisioner_id for one in deps.registry.worker_types() if one.has_metadata}

    def found() -> Iterator[tuple[str, ProvisionerResponse | None]]:
        for one in deps.registry.provisioners(after=after, limit=MOST_READ + 1):
            sticks = one.provisioner_id in sticky
            is_listed = windows.is_provisioner_listed(one, now, rules, has_metadata=sticks)
            shown = is_listed or _with_inactive(call)
            yield one.provisioner_id, provisioner(one, deps, sticks=sticks) if shown else None

    items, token = page(call, deps, found())
    return ListProvisionersResponse(provisioners=items, **paging.with_token(token))


def get_provisioner(call: Call, deps: RegistryAccess) -> ProvisionerResponse:
    """One provisioner, whether or not it was seen lately."""
    name = call.params["provisionerId"]
    found = deps.registry.provisioner(name)
    if found is None:
        raise not_found(f"Provisioner {name!r} is not known")
    return provisioner(found, deps)


def list_worker_types(call: Call, deps: RegistryAccess) -> ListWorkerTypesResponse:
    """A page of one provisioner's worker types; none if the provisioner is not known."""
    found = _types(call, deps, call.params["provisionerId"], worker_type)
    items, token = page(call, deps, found)
    return ListWorkerTypesResponse(worker_types=items, **paging.with_token(token))


def list_task_queues(call: Call, deps: RegistryAccess) -> ListTaskQueuesResponse:
    """A page of the worker types of all provisioners."""
    items, token = page(call, deps, _types(call, deps, None, task_queue))
    return ListTaskQueuesResponse(task_queues=items, **paging.with_token(token))


def get_worker_type(call: Call, deps: RegistryAccess) -> WorkerTypeResponse:
    """One worker type, whether or not it was seen lately."""
    found = known_type(queue_id(call), deps)
    return worker_type(found, deps, actions=worker_type_actions(found, deps))


def get_task_queue(call: Call, deps: RegistryAccess) -> TaskQueueResponse:
    """One worker type, whether or not it was seen lately."""
    return task_queue(known_type(call.params["taskQueueId"], deps), deps)


def list_groups(call: Call, deps: RegistryAccess) -> WorkerGroupsResponse:
    """A page of the worker groups of which a worker was seen in the last 30 days."""
    since, name = deps.clock() - deps.registry.windows.kept, call.params["taskQueueId"]
    after = paging.position(call.query, is_identifier) or ""

    def found() -> Iterator[tuple[str, WorkerGroupResponse | None]]:
        for group in deps.registry.groups(name, after=after, limit=MOST_READ + 1):
            shown = WorkerGroupResponse(
                worker_group=group.group,
                first_date_active=group.first_seen,
                last_date_active=group.last_seen,
            )
            yield group.group, shown if group.last_seen > since else None

    items, token = page(call, deps, found())
    return WorkerGroupsResponse(worker_groups=items, **paging.with_token(token))


def list_workers(call: Call, deps: RegistryAccess) -> ListQueueWorkersResponse:
    """A page of one type's workers, by group and id: those seen lately, and all in quarantine."""
    now, rules, name = deps.clock(), deps.registry.windows, queue_id(call)
    known = deps.registry.worker_type(name)
    is_hardware = known is not None and known.is_hardware
    wanted = call.query.get("quarantined")

    def found() -> Iterator[tuple[str, WorkerItem | None]]:
        for worker in _workers(call, deps, name):
            key = worker.key
            is_shown = _with_inactive(call) or windows.is_worker_listed(
                worker, now, rules, is_hardware=is_hardware
            )
            is_held = "true" if worker.is_quarantined(now) else "false"
            is_wanted = is_shown and wanted in (None, is_held)
            yield f"{key.group}#{key.worker_id}", worker_item(worker, now) if is_wanted else None

    items, token = page(call, deps, found())
    return ListQueueWorkersResponse(workers=items, **paging.with_token(token))


def get_worker(call: Call, deps: RegistryAccess) -> QueueWorkerResponse:
    """One worker, whether or not it was seen lately."""
    key = worker_key(call)
    found = deps.registry.worker(key)
    if found is None:
        raise not_found(f"Worker {key.group}/{key.worker_id} of {key.pool_id} is not known")
    return worker_answer(found, deps)


def queue_id(call: Call) -> str:
    """The task queue that a path names in two parts; its second half may be looser than an id."""
    return f"{call.params['provisionerId']}/{call.params['workerType']}"


def worker_key(call: Call) -> WorkerKey:
    """The worker that a path names."""
    return WorkerKey(queue_id(call), call.params["workerGroup"], call.params["workerId"])


def known_type(name: str, deps: RegistryAccess) -> WorkerType:
    """One worker type, or a 404."""
    found = deps.registry.worker_type(name)
    if found is None:
        raise not_found(f"Worker type {name!r} is not known")
    return found


def page(
    call: Call, deps: RegistryAccess, found: Iterable[tuple[str, _ModelT | None]]
) -> tuple[list[Any], str | None]:
    """The first shown ones of what was found, and where the next page begins.

    ``found`` are positions with what is shown there, if anything.
    """
    size, taken, last = paging.page_size(call.query), 0, ""
    items: list[Any] = []
    for number, (place, item) in enumerate(found):
        if len(items) == size or number == MOST_READ or taken > deps.page_bytes:
            return items, last
        last = place
        if item is not None:
            items.append(item)
            taken += paging.size_of(item)
    return items, None


def _types(
    call: Call,
    deps: RegistryAccess,
    provisioner_id: str | None,
    to_answer: Callable[[WorkerType, RegistryAccess], _ModelT],
) -> Iterator[tuple[str, _ModelT | None]]:
    now, rules = deps.clock(), deps.registry.windows
    after = paging.position(call.query, is_pool_id) or ""
    for one in deps.registry.worker_types(
        provisioner_id=provisioner_id, after=after, limit=MOST_READ + 1
    ):
        is_shown = _with_inactive(call) or windows.is_type_listed(one, now, rules)
        yield one.queue_id, to_answer(one, deps) if is_shown else None


def _workers(call: Call, deps: RegistryAccess, name: str) -> Iterator[RegistryWorker]:
    """As they are read: a page and the one that follows it, or many where few may be wanted."""
    after: str | None = paging.position(call.query, _is_name) or ""
    at_once = AT_ONCE if "quarantined" in call.query else paging.page_size(call.query) + 1
    while after is not None:
        workers, after = deps.registry.workers(name, limit=at_once, after=after)
        at_once = AT_ONCE
        yield from workers


def _with_inactive(call: Call) -> bool:
    return call.query.get("includeInactive") == "true"


def _is_name(text: str) -> bool:
    group, _, worker_id = text.partition("#")
    return is_identifier(group) and is_identifier(worker_id)
