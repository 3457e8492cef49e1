"""Credentials that are renewed with a secret, each secret once.

A lost answer must not cost a worker its life: the secret just used up is taken for a while longer,
and gives the *same* next secret again.  As only hashes are kept, the next secret is derived from
what is kept of the last one and a key that is not in the table.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING

from worker_manager.api.definitions import ATTEMPTS
from worker_manager.api.providers import existing_provider
from worker_manager.api.refusals import Refusal, input_error, unavailable
from worker_manager.api.routing import Call, Route
from worker_manager.api.schemas import (
    Credentials,
    ReregisterWorkerRequest,
    ReregisterWorkerResponse,
)
from worker_manager.api.workers import find_worker
from worker_manager.core.model import State, Worker, WorkerKey
from worker_manager.core.moments import whole_milliseconds
from worker_manager.identity.static import hash_secret, matches
from worker_manager.taskcluster.credentials import issue_worker_credentials

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from worker_manager.api.deps import ApiDeps

_BYTES = 33
"""Of a secret: 44 characters of base64, without padding."""


def reregister(call: Call, deps: ApiDeps) -> ReregisterWorkerResponse:
    """Give a running worker new credentials and the secret for the next ones."""
    body: ReregisterWorkerRequest = call.body
    key = WorkerKey(body.worker_pool_id, body.worker_group, body.worker_id)
    for _ in range(ATTEMPTS):
        worker = find_worker(deps, key)
        now = deps.clock()
        if worker is not None and matches(body.secret, worker.secret_hash):
            _require_running(worker, now)
            renewed = _rotate(worker, deps, now)
        elif worker is not None and _was_just_used(body.secret, worker, deps, now):
            _require_running(worker, now)
            renewed = worker
        else:
            raise _unknown_secret()
        if renewed is not None:
            return _answer(renewed, deps, now)
    raise unavailable()


def credentials_for(
    worker: Worker, deps: ApiDeps, *, now: datetime, expires: datetime
) -> Credentials:
    """Credentials of a worker until ``expires``; they name what its row says, not the request."""
    made = issue_worker_credentials(
        worker.key,
        provider_id=worker.provider_id,
        issuer=deps.issuer,
        now=now,
        expires=expires,
    )
    return Credentials(
        client_id=made["clientId"],
        access_token=made["accessToken"],
        certificate=made["certificate"],
    )


def lifetime(worker: Worker, deps: ApiDeps) -> timedelta:
    """How long credentials last: as the pool says now for static workers (Q19)."""
    provider = existing_provider(deps, worker.provider_id)
    pool = deps.stores.pools.get(worker.key.pool_id) if provider.provider_type == "static" else None
    return worker.reregistration if pool is None else pool.lifecycle.reregistration


def next_secret(worker: Worker, used_hash: str, deps: ApiDeps) -> str:
    """The secret that follows the one of which ``used_hash`` is kept."""
    key = worker.key
    text = "\0".join(("next-secret", key.pool_id, key.group, key.worker_id, used_hash))
    digest = hmac.digest(deps.issuer.access_token.encode(), text.encode(), hashlib.sha512)
    return urlsafe_b64encode(digest[:_BYTES]).decode()


def _rotate(worker: Worker, deps: ApiDeps, now: datetime) -> Worker | None:
    used = worker.secret_hash or ""
    return deps.stores.workers.change(
        worker,
        secret_hash=hash_secret(next_secret(worker, used, deps), deps.new_slugid()),
        previous_secret_hash=used,
        secret_rotated=whole_milliseconds(now),
        deadline=whole_milliseconds(now + lifetime(worker, deps)),
    )


def _was_just_used(secret: str, worker: Worker, deps: ApiDeps, now: datetime) -> bool:
    return (
        worker.secret_rotated is not None
        and now - worker.secret_rotated <= deps.timing.repeat
        and matches(secret, worker.previous_secret_hash)
    )


def _answer(worker: Worker, deps: ApiDeps, now: datetime) -> ReregisterWorkerResponse:
    secret = next_secret(worker, worker.previous_secret_hash or "", deps)
    if not matches(secret, worker.secret_hash) or worker.deadline is None:
        raise _unknown_secret()  # derived with another issuer's key
    return ReregisterWorkerResponse(
        expires=worker.deadline,
        credentials=credentials_for(worker, deps, now=now, expires=worker.deadline),
        secret=secret,
    )


def _require_running(worker: Worker, now: datetime) -> None:
    if worker.state is not State.RUNNING:
        raise input_error("Worker is not running")
    ends = [at for at in (worker.expires, worker.deadline) if at is not None]
    if ends and min(ends) < now:
        raise input_error("Worker has expired")


def _unknown_secret() -> Refusal:
    return input_error("Could not generate credentials for this secret")


ROUTES: tuple[Route[ApiDeps], ...] = (
    Route(
        name="reregisterWorker",
        method="POST",
        path="/worker/reregister",
        handler=reregister,
        scopes="worker-manager:reregister-worker:<workerPoolId>/<workerGroup>/<workerId>",
        body=ReregisterWorkerRequest,
        response=ReregisterWorkerResponse,
        secret_fields=((),),
        stability="experimental",
    ),
)
