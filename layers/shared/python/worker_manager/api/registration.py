"""Machines say that they are there and get their credentials.

Who proves to be the machine of a row is registered by one conditional write, so of two at once one
wins (Q7).  To a worker-runner a 4xx is final, so a repeat after a lost answer gets an answer, and a
machine that is faster than its own row is told to come back.  A machine of a cloud registers once,
and once more for each reboot that somebody asked us for (``rebooted``).
Where to read next: ``proofs``, ``renewal``.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from worker_manager.api import proofs
from worker_manager.api.conversions import currency
from worker_manager.api.definitions import ATTEMPTS, after_commit
from worker_manager.api.refusals import Refusal, input_error, not_found, unavailable
from worker_manager.api.renewal import credentials_for, lifetime
from worker_manager.api.routing import Call, Route
from worker_manager.api.schemas import RegisterWorkerRequest, RegisterWorkerResponse
from worker_manager.api.static_workers import current_launch_config
from worker_manager.api.worker_pools import existing_pool
from worker_manager.api.workers import find_worker
from worker_manager.core.events import WORKER_RUNNING, with_event
from worker_manager.core.lifecycle import registrations_with
from worker_manager.core.model import State, WorkerKey
from worker_manager.core.moments import whole_milliseconds
from worker_manager.identity.static import hash_secret
from worker_manager.metrics import meter
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from datetime import datetime

    from worker_manager.api.deps import ApiDeps
    from worker_manager.core.model import Json, Pool, Worker

REGISTERED = "registered"
"""The reason of the event."""
CLOCK_SKEW = timedelta(minutes=5)
"""How much a machine's clock may be behind ours."""


def register(call: Call, deps: ApiDeps) -> RegisterWorkerResponse:
    """Register a machine that proves to be the one we know."""
    body: RegisterWorkerRequest = call.body
    pool = existing_pool(deps, body.worker_pool_id)
    if body.provider_id not in deps.providers:
        raise not_found(f"Provider {body.provider_id!r} does not exist")
    if body.provider_id not in (pool.provider_id, *pool.previous_provider_ids):
        raise input_error(f"Provider {body.provider_id!r} is not that of the worker pool")
    is_static = deps.providers[body.provider_id].provider_type == "static"
    secret = deps.new_secret()
    for _ in range(ATTEMPTS):
        worker = _row(body, deps)
        now = whole_milliseconds(deps.clock())
        _check(body, worker, deps, now)
        changes = _changes(body, worker, deps, now, is_static=is_static)
        if is_static and body.provider_id == pool.provider_id:
            changes |= _brought_up_to_date(pool)
        changes["secret_hash"] = hash_secret(secret, deps.new_slugid())
        registered = deps.stores.workers.change(worker, previous_secret_hash=None, **changes)
        if registered is not None:
            _tell(worker, registered, deps, now)
            return _answer(pool, registered, deps, now, secret=secret, is_static=is_static)
    raise unavailable()


def _row(body: RegisterWorkerRequest, deps: ApiDeps) -> Worker:
    """The machine's row.

    If it has none but may have been launched just now, a 503: launches write rows after the
    cloud's answer, and adoption later.  The plan is read after the row, and the row again after
    the plan, because a plan is closed only when its rows are written.
    """
    key = WorkerKey(body.worker_pool_id, body.worker_group, body.worker_id)
    worker = find_worker(deps, key)
    if worker is not None:
        return worker
    _, control = deps.stores.pools.get_with_control(key.pool_id)
    if body.provider_id in control.open_plans.values() and proofs.is_plausible(body, deps):
        raise unavailable()
    worker = find_worker(deps, key)
    if worker is None:
        logger.info("no such worker", pool=key.pool_id, group=key.group, worker=key.worker_id)
        raise not_found("Worker not found")
    return worker


def _check(body: RegisterWorkerRequest, worker: Worker, deps: ApiDeps, now: datetime) -> None:
    if worker.expires is not None and worker.expires < now:
        raise input_error("Worker has expired")
    if worker.provider_id != body.provider_id:
        raise input_error(f"Worker does not belong to provider {body.provider_id!r}")
    proofs.verify(body, worker, deps)


def _changes(
    body: RegisterWorkerRequest, worker: Worker, deps: ApiDeps, now: datetime, *, is_static: bool
) -> dict[str, Any]:
    """What registering does to the row, refused where its state does not allow it."""
    changes: dict[str, Any] = {"deadline": whole_milliseconds(now + lifetime(worker, deps))}
    boot = None if body.system_boot_time is None else whole_milliseconds(body.system_boot_time)
    if worker.state in (State.REQUESTED, State.CREATED):
        return changes | with_event(
            worker,
            WORKER_RUNNING,
            at=now,
            reason=REGISTERED,
            state=State.RUNNING,
            registered=now,
            registrations=registrations_with(worker, now),
            boot_time=boot,
            rebooted=None if _is_down_since(worker, deps, now) else worker.rebooted,
        )
    if worker.state is not State.RUNNING:
        raise proofs.refused(worker.key, f"the worker is {worker.state}")
    if is_static or _is_rebooted(worker, boot, deps, now):
        return changes | {
            "registered": now,
            "registrations": registrations_with(worker, now),
            "boot_time": boot,
            "rebooted": None,
        }
    if not _is_repeat(worker, boot, deps, now):
        raise proofs.refused(worker.key, "the worker has registered before")
    return changes


def _brought_up_to_date(pool: Pool) -> dict[str, Any]:
    """A static worker gets what its pool says now (B28); nothing is held against it any more."""
    return {"launch_config_id": current_launch_config(pool), "surplus": None}


def _is_repeat(worker: Worker, boot: datetime | None, deps: ApiDeps, now: datetime) -> bool:
    """Whether this is the same boot of the same machine, whose answer may have been lost."""
    return (
        worker.registered is not None
        and now - worker.registered <= deps.timing.repeat
        and (worker.first_claim is None or worker.first_claim < worker.registered)
        and worker.boot_time == boot
    )


def _is_rebooted(worker: Worker, boot: datetime | None, deps: ApiDeps, now: datetime) -> bool:
    """Whether this is the boot that we asked for, of a machine that forgot its credentials.

    Until the machine is surely down this may be what ran on it before, so that is to come back.
    """
    if worker.rebooted is None or boot is None or now - worker.rebooted > deps.timing.comes_back:
        return False
    is_another = worker.boot_time is None or boot > worker.boot_time
    if not is_another or boot <= worker.rebooted - CLOCK_SKEW:
        return False
    if not _is_down_since(worker, deps, now):
        raise unavailable()
    return True


def _is_down_since(worker: Worker, deps: ApiDeps, now: datetime) -> bool:
    """Whether a worker that was to be rebooted was down since, as far as time tells."""
    return worker.rebooted is not None and now - worker.rebooted >= deps.timing.reboot


def _tell(before: Worker, after: Worker, deps: ApiDeps, now: datetime) -> None:
    if before.state is State.RUNNING:
        return
    key = after.key
    logger.info("worker registered", pool=key.pool_id, group=key.group, worker=key.worker_id)
    if before.state is State.REQUESTED:
        _count(after, deps, now)
    with after_commit("publishing a registration"):
        deps.outbox.send_workers([after])


def _count(worker: Worker, deps: ApiDeps, now: datetime) -> None:
    """How long a machine that we ordered took; when somebody turns theirs on says nothing."""
    meter.registered(worker)
    if worker.launch_config_id is not None:
        with after_commit("counting a registration"):
            deps.stores.health.add(worker.key.pool_id, worker.launch_config_id, now, registered=1)


def _answer(
    pool: Pool, worker: Worker, deps: ApiDeps, now: datetime, *, secret: str, is_static: bool
) -> RegisterWorkerResponse:
    if worker.deadline is None:
        raise Refusal("InternalServerError", "A registration without an end")
    has_own = not is_static or worker.launch_config_id is not None
    config = _body(worker, deps) if has_own else pool.config
    return RegisterWorkerResponse(
        expires=worker.deadline,
        credentials=credentials_for(worker, deps, now=now, expires=worker.deadline),
        worker_config=config.get("workerConfig", {}),
        secret=secret,
        **(currency(worker, pool) if is_static else {}),
    )


def _body(worker: Worker, deps: ApiDeps) -> Json:
    """The launch config of the worker, archived or not."""
    if worker.launch_config_id is None:
        return {}
    return (
        deps.stores.pools.body(worker.key.pool_id, worker.launch_config_id, now=deps.clock()) or {}
    )


ROUTES: tuple[Route[ApiDeps], ...] = (
    Route(
        name="registerWorker",
        method="POST",
        path="/worker/register",
        handler=register,
        body=RegisterWorkerRequest,
        response=RegisterWorkerResponse,
        secret_fields=((),),
    ),
)
