"""Taking away a worker because an action says so, whatever kind of worker it is.

A machine of a cloud is deleted as if it had been removed by hand; one that stays is stopped and
gets no more tasks, as it may go on calling until its credentials end; of one that only a queue
knows all we can do is give it no more tasks.  All of it is harmless when done again.
Read next: ``act``, whose runs ask for it; ``core.lifecycle``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from worker_manager.core.audit import Entry, worker_difference
from worker_manager.core.errors import QueueUnavailableError
from worker_manager.core.ids import derived_slugid
from worker_manager.core.lifecycle import removal
from worker_manager.core.messages import Terminate
from worker_manager.core.model import State
from worker_manager.core.moments import FOR_EVER
from worker_manager.queues import Message
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from datetime import datetime

    from worker_manager.actions.entities import Run
    from worker_manager.core.model import Worker, WorkerKey
    from worker_manager.reconcile.act import ActDeps

ATTEMPTS = 8
"""How often it is decided anew when somebody else changes the worker."""


def kill(run: Run, key: WorkerKey, deps: ActDeps, *, now: datetime) -> str:
    """Take away a worker; what was done, in words."""
    for _ in range(ATTEMPTS):
        worker = deps.stores.workers.get(key)
        if worker is None or deps.stores.workers.is_forgotten(worker, now):
            quarantine(run, key, deps, until=FOR_EVER, now=now)
            return "no machine of ours; it gets no more tasks"
        has_machine = worker.provider_id in deps.senders
        if worker.state in (State.STOPPING, State.STOPPED):
            return _again(run, worker, deps, now=now)
        if _stop(run, worker, deps, has_machine=has_machine, now=now):
            return _finish(run, worker, deps, now=now)
    raise QueueUnavailableError(f"worker {key.worker_id} is changed too often at once")


def quarantine(run: Run, key: WorkerKey, deps: ActDeps, *, until: datetime, now: datetime) -> None:
    """Give a worker no tasks until then."""
    by = run.requested_by
    deps.quarantines.impose(deps.backend, key, until, info=run.reason, client_id=by, now=now)


def _stop(run: Run, worker: Worker, deps: ActDeps, *, has_machine: bool, now: datetime) -> bool:
    """Write that it goes, and who wanted that; false if somebody else was faster."""
    reason = f"killed: {run.reason}" if run.reason else "killed"
    changes = removal(worker, has_machine=has_machine, at=now, reason=reason, by=run.requested_by)
    stopped = replace(worker, **changes)
    entry = Entry(
        audit_id=derived_slugid("killed", run.run_id),
        pool_id=worker.key.pool_id,
        entity="worker",
        entity_id=f"{worker.key.group}/{worker.key.worker_id}",
        action="removed",
        client_id=run.requested_by,
        time=now,
        difference=worker_difference(worker, stopped),
    )
    removed = deps.stores.workers.change_with(worker, deps.audit.writes(entry), **changes)
    if removed is None:
        return False
    logger.info("a worker is killed", pool=worker.key.pool_id, worker=worker.key.worker_id)
    try:
        deps.outbox.send_workers([removed])
    except Exception:
        logger.exception("an event is late", pool=worker.key.pool_id)
    return True


def _again(run: Run, worker: Worker, deps: ActDeps, *, now: datetime) -> str:
    """What the first time may have left undone."""
    if worker.state is State.STOPPED and worker.provider_id in deps.senders:
        return "it had stopped already"
    return _finish(run, worker, deps, now=now)


def _finish(run: Run, worker: Worker, deps: ActDeps, *, now: datetime) -> str:
    sender = deps.senders.get(worker.provider_id)
    if sender is None:
        quarantine(run, worker.key, deps, until=FOR_EVER, now=now)
        return "stopped; its machine stays, and gets no more tasks"
    sender.send([Message(Terminate(worker.key).to_json())])
    return "its machine is being deleted"
