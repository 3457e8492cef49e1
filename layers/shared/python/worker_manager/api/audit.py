"""Who changed what of a pool: entries for those who change something, and their list.

An entry is written in the transaction of the change that it tells of, and logged after it.  What
changes nothing has no entry.  Where to read next: ``core.audit``, ``store.audit``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from worker_manager.api import paging
from worker_manager.api.audit_schemas import AuditChange, AuditEntry, WorkerPoolAudit
from worker_manager.api.routing import PAGING, Call, Route
from worker_manager.core.audit import Entry, difference, pool_difference, worker_difference
from worker_manager.core.ids import is_identifier
from worker_manager.core.moments import from_wire, to_wire, whole_milliseconds
from worker_manager.store.audit import position
from worker_manager.taskcluster.credentials import worker_client_id
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from worker_manager.api.deps import ApiDeps
    from worker_manager.core.audit import Action, Difference, Entity
    from worker_manager.core.model import Json, Pool, Worker

DEFAULT_PAGE = 100
"""Entries; each may have 80 KB of changes."""

MOST_BODIES = 100
"""Archived launch configs whose content is told; of more only that they went."""


def of_pool(
    call: Call,
    deps: ApiDeps,
    action: Action,
    *,
    before: Pool | None,
    after: Pool,
    bodies: Mapping[str, Json],
) -> Entry | None:
    """The entry of a changed definition; ``bodies`` are those of ``after``.

    Reads the content of launch configs that go.
    """
    gone = _gone(before, after)[:MOST_BODIES]
    archived = deps.stores.pools.bodies(call.pool_id, gone, now=after.modified) if gone else {}
    told = pool_difference(
        before, after, {**bodies, **{name: config.body for name, config in archived.items()}}
    )
    return _entry(
        call, deps, action, "worker-pool", call.pool_id, difference=told, time=after.modified
    )


def of_launch_config(
    call: Call, deps: ApiDeps, action: Action, *, launch_config_id: str, before: Json, after: Json
) -> Entry | None:
    """The entry of what somebody did to one launch config of the pool that the path names."""
    return _entry(
        call,
        deps,
        action,
        "launch-config",
        launch_config_id,
        difference=difference(before, after),
        time=whole_milliseconds(deps.clock()),
    )


def of_worker(
    call: Call, deps: ApiDeps, action: Action, *, before: Worker | None, after: Worker
) -> Entry | None:
    """The entry of what somebody did to one worker of the pool that the path names.

    What a worker does to itself is its life and no change of anybody's: every one that is done
    removes itself.
    """
    if is_worker_itself(call, after):
        return None
    key = after.key
    return _entry(
        call,
        deps,
        action,
        "worker",
        f"{key.group}/{key.worker_id}",
        difference=worker_difference(before, after),
        time=after.modified,
    )


def is_worker_itself(call: Call, worker: Worker) -> bool:
    """Whether the caller is the worker that the call is about."""
    return call.client_id == worker_client_id(worker.key, provider_id=worker.provider_id)


def change_worker(
    call: Call, deps: ApiDeps, action: Action, before: Worker, **changes: Any
) -> Worker | None:
    """Write ``changes`` of a worker and who made them; ``None`` if somebody else was faster."""
    entry = of_worker(call, deps, action, before=before, after=replace(before, **changes))
    if entry is None:
        return deps.stores.workers.change(before, **changes)
    changed = deps.stores.workers.change_with(before, deps.audit.writes(entry), **changes)
    if changed is not None:
        log(entry)
    return changed


def put_worker(call: Call, deps: ApiDeps, worker: Worker) -> Worker | None:
    """Write a new worker and who entered it; ``None`` if it has a row already."""
    entry = of_worker(call, deps, "created", before=None, after=worker)
    if not deps.stores.workers.put_new_with(worker, deps.audit.writes(entry)):
        return None
    log(entry)
    return worker


def log(entry: Entry | None) -> None:
    """Say in the log what was just committed."""
    if entry is not None:
        logger.info(
            "audit-event",
            entity=entry.entity,
            entityId=entry.entity_id,
            workerPoolId=entry.pool_id,
            clientId=entry.client_id,
            action=entry.action,
            auditId=entry.audit_id,
        )


def list_of_pool(call: Call, deps: ApiDeps) -> WorkerPoolAudit:
    """A page of who changed what of a pool, its launch configs and its workers, newest first.

    A pool that is gone still has its trail; one that never was has an empty one.
    """
    size = paging.page_size(call.query, default=DEFAULT_PAGE)
    before = paging.position(call.query, _is_position)
    oldest = deps.clock() - deps.timing.audit_kept
    page: list[AuditEntry] = []
    last, taken = None, 0
    for entry in deps.audit.newest_first(call.pool_id, before=before, at_once=size + 1):
        if entry.time < oldest:
            break
        item = _shown(entry)
        taken += paging.size_of(item)
        if len(page) == size or (page and taken > deps.page_bytes):
            return WorkerPoolAudit(audit_history=page, **paging.with_token(last))
        page.append(item)
        last = position(entry)
    return WorkerPoolAudit(audit_history=page)


def _entry(
    call: Call,
    deps: ApiDeps,
    action: Action,
    entity: Entity,
    entity_id: str,
    *,
    difference: Difference,
    time: datetime,
) -> Entry | None:
    if not difference:
        return None
    return Entry(
        audit_id=deps.new_slugid(),
        pool_id=call.pool_id,
        entity=entity,
        entity_id=entity_id,
        action=action,
        client_id=call.client_id,
        time=time,
        difference=difference,
        request_id=call.request_id,
    )


def _gone(before: Pool | None, after: Pool) -> list[str]:
    kept = {head.launch_config_id for head in after.heads}
    ids = [] if before is None else [head.launch_config_id for head in before.heads]
    return [name for name in ids if name not in kept]


def _shown(entry: Entry) -> AuditEntry:
    optional = {"client_id": entry.client_id, "request_id": entry.request_id}
    return AuditEntry(
        audit_id=entry.audit_id,
        worker_pool_id=entry.pool_id,
        entity=entry.entity,
        entity_id=entry.entity_id,
        action=entry.action,
        time=entry.time,
        changes=[AuditChange(**change) for change in entry.difference.changes],
        left_out=entry.difference.left_out,
        **{name: value for name, value in optional.items() if value is not None},
    )


def _is_position(text: str) -> bool:
    moment, _, audit_id = text.partition("#")
    try:
        return to_wire(from_wire(moment)) == moment and is_identifier(audit_id)
    except ValueError:
        return False


ROUTES: tuple[Route[ApiDeps], ...] = (
    Route(
        name="listWorkerPoolAudit",
        method="GET",
        path="/worker-pool/<workerPoolId>/audit",
        handler=list_of_pool,
        scopes="worker-manager:get-worker-pool:<workerPoolId>",
        query=PAGING,
        response=WorkerPoolAudit,
        stability="experimental",
    ),
)
