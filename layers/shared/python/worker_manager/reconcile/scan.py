"""Settling one pool's workers in one location against a complete list.

Judge, write, and only then act: a machine is terminated only if our conditional write to
``stopping`` won, so nobody kills a worker that registered meanwhile.  Missing machines are looked
up by id before they count as gone; strays that an open plan ordered are adopted.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from worker_manager.core.errors import CloudError, QueueUnavailableError
from worker_manager.core.lifecycle import Launched, Verdict, settle
from worker_manager.core.messages import ScanPool
from worker_manager.core.model import MachineStatus, State, Worker, WorkerKey
from worker_manager.core.sightings import match
from worker_manager.providers.protocol import Names, Stepwise
from worker_manager.reconcile.healing import learn_late
from worker_manager.reconcile.settling import Settling, terminate, whole
from worker_manager.reconcile.strays import deal_with_strays
from worker_manager.reconcile.ticks import is_stale
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from worker_manager.core.activity import Activity
    from worker_manager.core.model import Json, Sighting
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
    doomed = {worker.key for worker, sighting in found.seen if _is_doomed(worker, sighting, deps)}
    seen = [
        Seen(worker, sighting.status, identity=sighting.identity)
        for worker, sighting in found.seen
        if worker.key not in doomed
    ]
    unsure = [worker for worker, _ in found.seen if worker.key in doomed]
    seen += _look_up(message, [*unsure, *_ripe(message, found.missing, deps)], deps)
    settling = Settling(deps, now)
    failures: dict[WorkerKey, CloudError] = {}
    for one, verdict in judge(message.pool_id, seen, now, deps):
        moved_on = settling.write(one.worker, verdict, **_identity(one, verdict, deps))
        if moved_on and one.failure is not None:
            failures[one.worker.key] = one.failure
    rows_of_failures = deps.stores.workers.get_many(failures)
    learn_late([(rows_of_failures[key], failures[key]) for key in rows_of_failures], deps)
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


@dataclass(frozen=True, slots=True)
class Seen:
    """What its cloud says of one of our workers."""

    worker: Worker
    status: MachineStatus
    failure: CloudError | None = None
    identity: Json = field(default_factory=dict)


def judge(
    pool_id: str, seen: Sequence[Seen], now: datetime, deps: Deps
) -> list[tuple[Seen, Verdict]]:
    """Settle each worker; the queue is asked once, and only if somebody has registered."""
    activity: Mapping[tuple[str, str], Activity] = {}
    known = False
    if any(one.worker.state is State.RUNNING for one in seen):
        try:
            activity = deps.queue.activity(pool_id)
            known = True
        except QueueUnavailableError as error:
            logger.warning("the queue did not answer", pool=pool_id, error=str(error))
    return [
        (
            one,
            settle(
                one.worker,
                one.status,
                activity.get((one.worker.key.group, one.worker.key.worker_id)),
                activity_known=known,
                now=now,
                timing=deps.timing,
                refusal=one.failure,
            ),
        )
        for one in seen
    ]


def _is_doomed(worker: Worker, sighting: Sighting, deps: Deps) -> bool:
    """Whether a creation seems to have failed, for a reason that only a look at it tells."""
    return (
        worker.state is State.REQUESTED
        and sighting.status is MachineStatus.STOPPED
        and isinstance(deps.provider, Stepwise)
    )


def _ripe(message: ScanPool, missing: Sequence[Worker], deps: Deps) -> Sequence[Worker]:
    """Missing workers less those that were announced, but maybe not asked for yet."""
    if not isinstance(deps.provider, Names) or all(w.launched is not None for w in missing):
        return missing
    control = deps.stores.pools.control(message.pool_id)
    waiting = {
        order.order_id
        for plan in deps.stores.plans.open_plans(control, deps.provider_id)
        for order in plan.orders
        if order.is_open
    }
    return [w for w in missing if w.state is not State.REQUESTED or w.order_id not in waiting]


def _look_up(message: ScanPool, missing: Sequence[Worker], deps: Deps) -> list[Seen]:
    """Ask for those that the list lacks; unanswered ones are not judged."""
    if not missing:
        return []
    try:
        answers = deps.provider.lookup(message.location, whole(missing, deps))
    except CloudError as error:
        logger.warning("a lookup failed", place=message.location, code=error.code)
        return []
    return [
        Seen(worker, found.status, found.failure) if found else Seen(worker, MachineStatus.GONE)
        for worker in missing
        if worker.key in answers
        for found in [answers[worker.key]]
    ]


def _identity(one: Seen, verdict: Verdict, deps: Deps) -> dict[str, Json]:
    """What the list told of a machine that is seen to run, to be written down beside.

    A machine may register long before its creation is over, and has to prove who it is.
    """
    if not isinstance(verdict, Launched) or not one.identity:
        return {}
    row = deps.stores.workers.get(one.worker.key)
    return {"identity": {**row.identity, **one.identity}} if row is not None else {}


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
