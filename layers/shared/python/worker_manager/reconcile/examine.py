"""Every few minutes, pool by pool: how its machines are, and what is done about it.

Observe, decide, record, act: nothing is done that is not written down first, and of two looks at
once only the one whose writes win does anything.  One pool's trouble never stops the others, and
each call begins with another pool, so that a lack of time is shared by all.
Where to read next: ``worker_manager.machines.looks`` (the decision), ``remedying`` (acting).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from worker_manager.core.errors import ConflictError, QueueUnavailableError
from worker_manager.core.model import NULL_PROVIDER
from worker_manager.machines import policy as policies
from worker_manager.machines.facts import machine_of
from worker_manager.machines.looks import look, watched
from worker_manager.machines.memory import Watch, to_record, to_watch
from worker_manager.machines.remedies import Cure
from worker_manager.machines.verdicts import Condition, missing_after
from worker_manager.metrics import meter
from worker_manager.mix.load import Sample
from worker_manager.reconcile.verdict_records import record
from worker_manager.registry.windows import is_type_listed, is_worker_listed
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from worker_manager.core.activity import QueueCounts
    from worker_manager.core.model import Pool, Worker, WorkerKey
    from worker_manager.core.timing import Timing
    from worker_manager.machines.facts import Machine
    from worker_manager.machines.looks import Look
    from worker_manager.machines.memory import Record
    from worker_manager.machines.policy import Policy
    from worker_manager.machines.remedies import Done
    from worker_manager.mix.load import Loads
    from worker_manager.outbox import Outbox
    from worker_manager.reconcile.deadline import Deadline
    from worker_manager.reconcile.remedying import Cures
    from worker_manager.registry.entities import RegistryWorker, WorkerType
    from worker_manager.registry.registry import Registry
    from worker_manager.store.machine_table import MachineTable
    from worker_manager.store.pool_errors import PoolErrorStore
    from worker_manager.store.stores import Stores
    from worker_manager.taskcluster.queue import QueueClient

PAGE = 1000
"""Workers that are read at once."""
LONGEST = timedelta(seconds=20)
"""What one pool may take; none is begun with less time left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExamineDeps:
    """What examining works with; ``static`` are the ids of providers whose machines stay."""

    registry: Registry
    queue: QueueClient
    stores: Stores
    outbox: Outbox
    errors: PoolErrorStore
    loads: Loads
    machines: MachineTable
    cures: Cures
    clock: Callable[[], datetime]
    timing: Timing
    static: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pooled:
    """A pool as it is found: what everybody knows of its workers."""

    queue_id: str
    pool: Pool | None
    machines: Sequence[Machine]
    counts: QueueCounts | None
    records: Mapping[WorkerKey, Record]
    before: Watch
    """What was remembered of it."""
    watch: Watch
    done: Sequence[Done]


def examine(deps: ExamineDeps, deadline: Deadline) -> dict[str, Any]:
    """Look at every pool that has time; what came of it, in numbers."""
    now = deps.clock()
    said = {queue_id: policies.from_json(stored) for queue_id, stored in deps.machines.policies()}
    total: Counter[str] = Counter(pools=0, failed=0, left=0)
    for queue_id in _in_turn(_queues(deps, said, now), now, deps):
        if not deadline.allows(LONGEST):
            total["left"] += 1
            continue
        try:
            policy = said.get(queue_id, policies.Policy())
            total.update(_examine_pool(queue_id, policy, deps))
            total["pools"] += 1
        except ConflictError:
            logger.info("a pool is examined by another call as well", pool=queue_id)
        except Exception:
            total["failed"] += 1
            logger.exception("a pool's machines could not be examined", pool=queue_id)
    report = dict(total)
    meter.examined(report)
    logger.info("examined", report=report)
    return report


def _queues(deps: ExamineDeps, said: Mapping[str, Policy], now: datetime) -> list[str]:
    rules = deps.registry.windows
    types = (
        one.queue_id
        for one in deps.registry.worker_types()
        if one.is_hardware or is_type_listed(one, now, rules)
    )
    # Those that are watched, too: of what was deleted nothing is to be told any more.
    return sorted({*types, *deps.stores.pools.ids(), *said, *deps.machines.watched()})


def _in_turn(queues: Sequence[str], now: datetime, deps: ExamineDeps) -> list[str]:
    """Each call begins elsewhere, so that those left over are not always the same."""
    if not queues:
        return []
    slot = int(now.timestamp() / max(60, deps.timing.examine.total_seconds()))
    start = slot * 7919 % len(queues)
    return [*queues[start:], *queues[:start]]


def _examine_pool(queue_id: str, policy: Policy, deps: ExamineDeps) -> Counter[str]:
    """One pool."""
    now = deps.clock()
    found = _observe(queue_id, policy, deps, now)
    decided = look(
        found.machines,
        found.records,
        found.watch,
        policy,
        now,
        lag=deps.timing.sighting,
        done=found.done,
    )
    _note_load(found, decided, deps, now)
    record(found, decided, deps, now)
    applied = [deps.cures.apply(remedy, now) for remedy in decided.remedies]
    began = decided.watch.outage_since == now
    return Counter(
        machines=len(decided.judged),
        bad=decided.trouble.bad,
        news=sum(change.is_news for change in decided.changes),
        remedies=sum(applied),
        outages=int(began),
        held=int(decided.watch.outage_since is not None),
    )


def _observe(queue_id: str, policy: Policy, deps: ExamineDeps, now: datetime) -> Pooled:
    """All that is known of a pool, the machines put together a page at a time."""
    of_type = deps.registry.worker_type(queue_id)
    pool = deps.stores.pools.get(queue_id)
    if pool is not None and pool.provider_id == NULL_PROVIDER:
        pool = None
    rows = _rows(queue_id, pool, of_type, deps, now)
    counts = _counts(queue_id, deps)
    known = deps.machines.watch(queue_id)
    before = to_watch(known[0], version=known[1]) if known else Watch()
    watch = watched(
        before,
        # What waits in a queue that gives out nothing, no machine could have taken.
        pending=counts.to_be_given if counts else None,
        used={
            row.launch_config_id
            for row in rows.values()
            if row.launch_config_id and row.provider_id in deps.static
        },
        current={head.launch_config_id for head in pool.heads} if pool else None,
        now=now,
    )
    machines = [
        machine
        for key, worker, row in _joined(queue_id, rows, of_type, deps, now)
        if (
            machine := machine_of(
                key,
                worker,
                row,
                now,
                is_fixed=_is_fixed(row, of_type, deps),
                retired=watch.retired,
            )
        )
    ]
    done = _done(queue_id, machines, policy, deps, now)
    return Pooled(
        queue_id=queue_id,
        pool=pool,
        machines=_with_reboots(machines, done),
        counts=counts,
        records={
            row.key: to_record(row.body, version=row.version)
            for row in deps.machines.verdicts(queue_id)
        },
        before=before,
        watch=watch,
        done=done,
    )


def _rows(
    queue_id: str,
    pool: Pool | None,
    of_type: WorkerType | None,
    deps: ExamineDeps,
    now: datetime,
) -> dict[WorkerKey, Worker]:
    """Our rows: of machines that stay all there is, of clouds' what their index tells."""
    if (pool and pool.provider_id in deps.static) or (of_type and of_type.is_hardware):
        rows = deps.stores.workers.beyond(queue_id, after=None, at_once=PAGE)
        return {row.key: row for row in rows if not deps.stores.workers.is_forgotten(row, now)}
    return {row.key: row for row in deps.stores.workers.live(queue_id)}


def _joined(
    queue_id: str,
    rows: Mapping[WorkerKey, Worker],
    of_type: WorkerType | None,
    deps: ExamineDeps,
    now: datetime,
) -> Iterator[tuple[WorkerKey, RegistryWorker | None, Worker | None]]:
    """What queue and rows know of each worker; without a row only those that lists show."""
    is_hardware = of_type is not None and of_type.is_hardware
    seen: set[WorkerKey] = set()
    for worker in deps.registry.all_workers(queue_id):
        row = rows.get(worker.key)
        seen.add(worker.key)
        if row is not None or is_worker_listed(
            worker, now, deps.registry.windows, is_hardware=is_hardware
        ):
            yield worker.key, worker, row
    for key, row in rows.items():
        if key not in seen:
            yield key, None, row


def _is_fixed(row: Worker | None, of_type: WorkerType | None, deps: ExamineDeps) -> bool:
    if row is not None:
        return row.provider_id in deps.static
    return of_type is not None and of_type.is_hardware


def _counts(queue_id: str, deps: ExamineDeps) -> QueueCounts | None:
    try:
        return deps.queue.counts(queue_id)
    except QueueUnavailableError as error:
        logger.warning("the queue does not tell of its tasks", pool=queue_id, error=str(error))
        return None


def _done(
    queue_id: str, machines: Sequence[Machine], policy: Policy, deps: ExamineDeps, now: datetime
) -> list[Done]:
    """What was done lately, where that matters: it is read only then."""
    limit = now - missing_after(policy.thresholds, deps.timing.sighting)
    has_missing = any(one.is_fixed and (one.heard or now) < limit for one in machines)
    has_ours = policy.replace and any(one.is_ours for one in machines)
    return deps.cures.lately(queue_id, now) if has_missing or has_ours else []


def _with_reboots(machines: Sequence[Machine], done: Sequence[Done]) -> list[Machine]:
    vain: dict[WorkerKey, datetime] = {}
    for one in done:
        if one.cure is Cure.REBOOT and one.was_vain and one.ended is not None:
            vain[one.key] = max(one.ended, vain.get(one.key, one.ended))
    if not vain:
        return list(machines)
    return [replace(one, reboot_failed=vain.get(one.key)) for one in machines]


def _note_load(found: Pooled, decided: Look, deps: ExamineDeps, now: datetime) -> None:
    """Keep how much there was to do, and who could do it, for the recommended mix."""
    if found.counts is None or not decided.judged:
        return
    lost = {Condition.MISSING, Condition.DEAD}
    there = [one for one in decided.judged if one.verdict.condition not in lost]
    held = sum(one.machine.is_quarantined for one in there)
    counts = found.counts
    sample = Sample(now, counts.pending, counts.claimed, len(there) - held, held)
    deps.loads.note(found.queue_id, sample)
