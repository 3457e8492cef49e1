"""Settling one pool's workers in one location against a complete list.

Judge, write, and only then act: a machine is terminated only if our conditional write to
``stopping`` won, so nobody kills a worker that registered meanwhile.  Missing machines are looked
up by id before they count as gone; strays that an open plan ordered are adopted.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from worker_manager.core.errors import CloudError, QueueUnavailableError
from worker_manager.core.lifecycle import Verdict, settle
from worker_manager.core.messages import ScanPool
from worker_manager.core.model import MachineStatus, State, Worker
from worker_manager.core.sightings import match
from worker_manager.reconcile.settling import Settling, terminate
from worker_manager.reconcile.strays import deal_with_strays
from worker_manager.reconcile.ticks import is_stale
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from worker_manager.core.activity import Activity
    from worker_manager.core.model import Json
    from worker_manager.reconcile.deps import Deps


def read(body: Json, deps: Deps) -> ScanPool | None:
    """A message from its body, or from the blob that the body names.

    ``None`` if the blob has vanished: the message is so old that a newer list exists.
    """
    if "blob" not in body:
        return ScanPool.from_json(body)
    text = deps.blobs.get(body["blob"]) if deps.blobs else None
    return ScanPool.from_json(json.loads(text)) if text else None


def scan(message: ScanPool, deps: Deps) -> dict[str, Any]:
    """Settle one pool's workers in one location."""
    now = deps.clock()
    if is_stale(message.complete_at, now, deps.timing.scan):
        return {"pool": message.pool_id, "location": message.location, "stale": True}
    rows = [
        worker
        for worker in deps.stores.workers.live(message.pool_id, message.location)
        if worker.provider_id == deps.provider_id
    ]
    live = [worker for worker in rows if worker.state is not State.STOPPED]
    found = match(
        live, message.sightings, listed_at=message.listed_at, list_lag=deps.timing.list_lag
    )
    statuses = [(worker, sighting.status) for worker, sighting in found.seen]
    statuses += _look_up(message, found.missing, deps)
    settling = Settling(deps, now)
    for worker, verdict in judge(message.pool_id, statuses, now, deps):
        settling.write(worker, verdict)
    terminate(message.location, settling.to_terminate, deps)
    if deal_with_strays(message, found.strays, deps):
        _tell_provision(message, deps)
    settling.tell()
    _send_again(rows, now, deps)
    report: dict[str, Any] = {
        "pool": message.pool_id,
        "location": message.location,
        "seen": len(found.seen),
        "missing": len(found.missing),
        "strays": len(found.strays),
        "changed": len(settling.changed),
    }
    if settling.changed or found.strays or found.missing:
        logger.info("scanned", **report)
    return report


def judge(
    pool_id: str, statuses: Sequence[tuple[Worker, MachineStatus]], now: datetime, deps: Deps
) -> list[tuple[Worker, Verdict]]:
    """Settle each worker; the queue is asked once, and only if somebody has registered."""
    activity: Mapping[tuple[str, str], Activity] = {}
    known = False
    if any(worker.state is State.RUNNING for worker, _ in statuses):
        try:
            activity = deps.queue.activity(pool_id)
            known = True
        except QueueUnavailableError as error:
            logger.warning("the queue did not answer", pool=pool_id, error=str(error))
    return [
        (
            worker,
            settle(
                worker,
                status,
                activity.get((worker.key.group, worker.key.worker_id)),
                activity_known=known,
                now=now,
                timing=deps.timing,
            ),
        )
        for worker, status in statuses
    ]


def _look_up(
    message: ScanPool, missing: Sequence[Worker], deps: Deps
) -> list[tuple[Worker, MachineStatus]]:
    """Ask for those that the list lacks; unanswered ones are not judged."""
    if not missing:
        return []
    try:
        answers = deps.provider.lookup(message.location, missing)
    except CloudError as error:
        logger.warning("a lookup failed", place=message.location, code=error.code)
        return []
    return [
        (worker, found.status if (found := answers[worker.key]) else MachineStatus.GONE)
        for worker in missing
        if worker.key in answers
    ]


def _tell_provision(message: ScanPool, deps: Deps) -> None:
    """Let open plans know that whatever this list showed of their orders has its row."""
    control = deps.stores.pools.control(message.pool_id)
    if deps.provider_id in control.open_plans.values():
        deps.stores.plans.scanned(
            message.pool_id, deps.provider_id, message.location, listed_at=message.listed_at
        )


def _send_again(rows: Iterable[Worker], now: datetime, deps: Deps) -> None:
    """Publish what its writer did not get to; the young ones it is still at."""
    old = now - deps.timing.list_lag
    deps.outbox.send_workers(row for row in rows if row.unsent and row.modified < old)
