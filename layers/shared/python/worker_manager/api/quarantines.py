"""Workers that get no tasks: one by one, or a whole worker type for its downtime.

Where to read next: ``worker_manager.registry.quarantines``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker_manager.api.declarations import exact_queue_id
from worker_manager.api.refusals import not_found
from worker_manager.api.registry_answers import quarantine_detail, task_queue, worker_answer
from worker_manager.api.registry_schemas import QuarantinesResponse
from worker_manager.api.registry_views import worker_key
from worker_manager.core.moments import FOR_EVER
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from datetime import datetime

    from worker_manager.api.deps import RegistryAccess, RegistryDeps
    from worker_manager.api.registry_schemas import (
        QuarantineWorkerRequest,
        QueueWorkerResponse,
        TaskQueueResponse,
    )
    from worker_manager.api.routing import Call


def quarantine_worker(call: Call, deps: RegistryAccess) -> QueueWorkerResponse:
    """Give a worker no more tasks until then, also one that was never seen; the past releases one
    that is known.

    What it works on it may finish.  ``quarantined`` says the same without a time.
    """
    exact_queue_id(call)
    now, key = deps.clock(), worker_key(call)
    until = end_of(call.body, now)
    info = call.body.quarantine_info
    if until <= now and deps.registry.worker(key) is None:
        raise not_found(f"Worker {key.group}/{key.worker_id} of {key.pool_id} is not known")
    by = call.client_id or "anonymous"
    worker = deps.quarantines.impose(deps.backend, key, until, info=info, client_id=by, now=now)
    return worker_answer(worker, deps)


def list_quarantines(call: Call, deps: RegistryAccess) -> QuarantinesResponse:
    """Who quarantined a worker or released it, when and why: the latest hundred times."""
    history = deps.quarantines.history(worker_key(call))
    return QuarantinesResponse(quarantines=[quarantine_detail(change) for change in history])


def close_task_queue(call: Call, deps: RegistryDeps) -> TaskQueueResponse:
    """Give no worker of a type any more tasks until then; the past opens it again.

    Nobody starts workers for what waits meanwhile.  Both are told on the bus, and so is a downtime
    that ends by itself.
    """
    now, name = deps.clock(), call.params["taskQueueId"]
    until = end_of(call.body, now)
    deps.backend.close(name, until)
    info, client_id = call.body.quarantine_info, call.client_id or "anonymous"
    after = deps.downtimes.change(name, until, info=info, client_id=client_id, now=now)
    logger.info("downtime", pool=name, until=until, info=info, client=client_id)
    return task_queue(after, deps)


def end_of(body: QuarantineWorkerRequest, now: datetime) -> datetime:
    """When a quarantine ends that a body asks for."""
    if body.quarantine_until is not None:
        return body.quarantine_until
    return FOR_EVER if body.quarantined else now
