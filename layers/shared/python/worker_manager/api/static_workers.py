"""Workers that somebody sets up by hand, and the secret with which they prove themselves.

Only a salted hash of the secret is kept (Q5).  One that never registered is ``created``, whatever
its machine does; from then on it is ``running`` until somebody or its end stops it.
Where to read next: ``identity.static``.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from worker_manager.api import audit
from worker_manager.api.definitions import ATTEMPTS, after_commit
from worker_manager.api.providers import existing_provider
from worker_manager.api.refusals import Refusal, input_error, unavailable
from worker_manager.api.routing import Call, Route
from worker_manager.api.schemas import WorkerFull
from worker_manager.api.static_schemas import CreateWorkerRequest, UpdateWorkerRequest
from worker_manager.api.worker_pools import existing_pool
from worker_manager.api.workers import Display, existing_worker, key_of
from worker_manager.core.lifecycle import expiry
from worker_manager.core.model import Location, State, Worker
from worker_manager.core.moments import whole_milliseconds
from worker_manager.identity.static import cut_short, first_identity, is_current, rotated

if TYPE_CHECKING:
    from datetime import datetime

    from worker_manager.api.deps import ApiDeps
    from worker_manager.core.model import Json, Pool

PREVIOUS_VALID = timedelta(days=1)
"""How long an old secret is taken beside the new one, unless somebody says otherwise."""

NOWHERE = Location("")
"""The location of what no cloud lists."""


def create(call: Call, deps: ApiDeps) -> WorkerFull:
    """Enter a worker; the same once more is fine, and a stopped one begins anew.

    A worker that is there with another secret, capacity or end is a 409 (Q6): silently keeping or
    replacing its secret would each surprise somebody.
    """
    body: CreateWorkerRequest = call.body
    pool = existing_pool(deps, call.pool_id)
    if body.expires < deps.clock():
        raise input_error("expires: must be in the future")
    _require_static(deps, pool)
    secret = _secret(body)
    if secret is None:
        raise input_error("providerInfo: field required, with a staticSecret")
    for _ in range(ATTEMPTS):
        there = deps.stores.workers.get(key_of(call))
        worker = _new(call, deps, pool, secret=secret)
        if there is None:
            written = audit.put_worker(call, deps, worker)
        elif there.state is State.STOPPED and there.provider_id == pool.provider_id:
            written = _begin_anew(call, deps, there, worker)
        else:
            written = _same(there, worker, secret)
        if written is not None:
            return Display(deps).show(written)
    raise unavailable()


def current_launch_config(pool: Pool) -> str | None:
    """Id of the launch config that a static pool has, if its config has one."""
    return pool.heads[0].launch_config_id if pool.heads else None


def update(call: Call, deps: ApiDeps) -> WorkerFull:
    """Change a worker's end, capacity or secret, whichever is given; the past ends it now."""
    body: UpdateWorkerRequest = call.body
    pool = existing_pool(deps, call.pool_id)
    _require_static(deps, pool)
    for _ in range(ATTEMPTS):
        worker = existing_worker(deps, key_of(call))
        if worker.provider_id != pool.provider_id:
            raise input_error(f"The worker belongs to provider {worker.provider_id!r}")
        changed = audit.change_worker(call, deps, "updated", worker, **_changes(worker, body, deps))
        if changed is None:
            continue
        if changed.unsent:
            with after_commit("publishing the end of a worker"):
                deps.outbox.send_workers([changed])
        return Display(deps).show(changed)
    raise unavailable()


def _changes(worker: Worker, body: UpdateWorkerRequest, deps: ApiDeps) -> dict[str, Any]:
    now = whole_milliseconds(deps.clock())
    changes: dict[str, Any] = {"modified": now}
    if body.capacity is not None:
        changes["capacity"] = body.capacity
    changes["identity"] = _identity(worker, body, deps, now)
    if body.expires is not None:
        changes["expires"] = whole_milliseconds(body.expires)
        if body.expires <= now and worker.state is not State.STOPPED:
            changes |= expiry(worker, at=now)
    return changes


def _identity(worker: Worker, body: UpdateWorkerRequest, deps: ApiDeps, now: datetime) -> Json:
    """The secrets that a worker has from now on."""
    secret, seconds = _secret(body), body.previous_secret_valid_seconds
    until = now + (PREVIOUS_VALID if seconds is None else timedelta(seconds=seconds))
    identity = worker.identity
    if secret is not None:
        identity = rotated(identity, secret, salt=deps.new_slugid(), until=until, now=now)
    return identity if seconds is None else cut_short(identity, until=until, now=now)


def _require_static(deps: ApiDeps, pool: Pool) -> None:
    provider = existing_provider(deps, pool.provider_id)
    if provider.provider_type != "static":
        raise input_error(
            f"Workers of provider {pool.provider_id!r} cannot be created or updated by hand"
        )


def _secret(body: CreateWorkerRequest | UpdateWorkerRequest) -> str | None:
    return body.provider_info.static_secret if body.provider_info else None


def _new(call: Call, deps: ApiDeps, pool: Pool, *, secret: str) -> Worker:
    body: CreateWorkerRequest = call.body
    now = whole_milliseconds(deps.clock())
    return Worker(
        key=key_of(call),
        provider_id=pool.provider_id,
        location=NOWHERE,
        state=State.CREATED,
        capacity=body.capacity or 1,
        created=now,
        modified=now,
        expires=whole_milliseconds(body.expires),
        launch_config_id=current_launch_config(pool),
        identity=first_identity(secret, salt=deps.new_slugid()),
    )


def _same(there: Worker, asked: Worker, secret: str) -> Worker:
    is_same = (
        there.state in (State.CREATED, State.RUNNING)
        and (there.provider_id, there.capacity, there.expires)
        == (asked.provider_id, asked.capacity, asked.expires)
        and is_current(secret, there.identity)
    )
    if not is_same:
        raise Refusal("RequestConflict", "Worker already exists")
    return there


def _begin_anew(call: Call, deps: ApiDeps, stopped: Worker, worker: Worker) -> Worker | None:
    nothing: dict[str, None] = dict.fromkeys(
        (
            "deadline",
            "registered",
            "boot_time",
            "rebooted",
            "first_claim",
            "quarantine_until",
            "stopping_since",
            "stop_reason",
            "stopped_by",
            "secret_hash",
            "previous_secret_hash",
            "secret_rotated",
        )
    )
    return audit.change_worker(
        call,
        deps,
        "created",
        stopped,
        state=worker.state,
        capacity=worker.capacity,
        created=worker.created,
        modified=worker.modified,
        expires=worker.expires,
        launch_config_id=worker.launch_config_id,
        identity=worker.identity,
        registrations=(),
        surplus=None,
        **nothing,
    )


_WORKER = "<workerPoolId>/<workerGroup>/<workerId>"
_PATH = "/workers/<workerPoolId>/<workerGroup>/<workerId>"
_COLON_PATH = "/workers/<workerPoolId>:/<workerGroup>/<workerId>"
_SECRET_FIELDS = (("providerInfo", "staticSecret"),)


def _create_route(name: str, path: str) -> Route[ApiDeps]:
    return Route(
        name=name,
        method="PUT",
        path=path,
        handler=create,
        scopes=f"worker-manager:create-worker:{_WORKER}",
        body=CreateWorkerRequest,
        response=WorkerFull,
        secret_fields=_SECRET_FIELDS,
        is_published=not name.endswith("WithColon"),
    )


def _update_route(name: str, path: str) -> Route[ApiDeps]:
    return Route(
        name=name,
        method="POST",
        path=path,
        handler=update,
        scopes=f"worker-manager:update-worker:{_WORKER}",
        body=UpdateWorkerRequest,
        response=WorkerFull,
        secret_fields=_SECRET_FIELDS,
        is_published=not name.endswith("WithColon"),
    )


ROUTES: tuple[Route[ApiDeps], ...] = (
    _create_route("createWorkerWithColon", _COLON_PATH),
    _update_route("updateWorkerWithColon", _COLON_PATH),
    _create_route("createWorker", _PATH),
    _update_route("updateWorker", _PATH),
)
