"""Writing down what a look at a pool's machines found, and telling of it, each thing once.

What is remembered of the pool comes first: an outage is told of by whoever noted it.  Then the
verdicts, those of which its owner is mailed one by one, with their error in the same transaction.
Where to read next: ``examine``, ``store.machine_table``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker_manager.core.errors import ConflictError
from worker_manager.core.events import error_events
from worker_manager.core.ids import derived_slugid
from worker_manager.core.model import PoolError
from worker_manager.core.moments import to_wire
from worker_manager.machines.memory import from_record, from_watch
from worker_manager.machines.telling import outage_event, verdict_event
from worker_manager.machines.verdicts import Condition
from worker_manager.store.machine_table import TOGETHER
from worker_manager.store.outbox_items import outbox_key
from worker_manager.store.registry_rows import StoredWorker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from worker_manager.core.model import Json
    from worker_manager.machines.looks import Change, Look
    from worker_manager.reconcile.examine import ExamineDeps, Pooled
    from worker_manager.store.transactions import Writes

MAILED = {
    Condition.DEAD: ("machine-dead", "A machine is dead"),
    Condition.REBOOT_LOOP: ("machine-reboot-loop", "A machine registers time and again"),
}
"""Of what a pool's owner is told as of an error: kind and title."""
OUTAGE = "machines-outage"
"""The kind of error that tells of very many at once."""


def record(found: Pooled, decided: Look, deps: ExamineDeps, now: datetime) -> None:
    """Write what is new.  ``ConflictError`` if another call examines the same pool."""
    _record_watch(found, decided, deps, now)
    is_outage = decided.watch.outage_since is not None
    mailed = (
        [] if is_outage or found.pool is None else [c for c in decided.changes if _is_mailed(c)]
    )
    alone = {change.key for change in mailed}
    others = [change for change in decided.changes if change.key not in alone]
    for start in range(0, len(others), TOGETHER):
        _write(others[start : start + TOGETHER], deps, now)
    for change in mailed:
        _write([change], deps, now, error=_machine_error(change, now), found=found)


def _is_mailed(change: Change) -> bool:
    after = change.after
    return change.is_news and after is not None and after.verdict.condition in MAILED


def _record_watch(found: Pooled, decided: Look, deps: ExamineDeps, now: datetime) -> None:
    before, after = found.before, decided.watch
    # A pool with verdicts has a watch, by which it is found.
    if after == before and (before.version or not decided.changes):
        if before.version and after.is_empty and not (found.machines or found.records):
            # Nobody is there any more, nor anything to be told of who was.
            deps.machines.drop_watch(found.queue_id, version=before.version)
        return
    events: list[Json] = []
    error: PoolError | None = None
    if (after.outage_since is None) != (before.outage_since is None):
        events = [outage_event(found.queue_id, decided.trouble, after, at=now)]
        if after.outage_since is not None and found.pool is not None:
            error = _outage_error(found.queue_id, decided, now)

    def write(also: Writes | None) -> None:
        deps.machines.put_watch(
            found.queue_id,
            from_watch(after),
            version=before.version,
            events=events,
            at=now,
            also=also,
        )

    _write_with(write, error, found, deps)
    if events:
        deps.outbox.send(outbox_key(events, now), events)


def _write(
    changes: Sequence[Change],
    deps: ExamineDeps,
    now: datetime,
    *,
    error: PoolError | None = None,
    found: Pooled | None = None,
) -> None:
    kept = [
        StoredWorker(change.key, from_record(change.after), now, change.after.version)
        for change in changes
        if change.after is not None
    ]
    removed = [
        StoredWorker(change.key, "", now, change.before.version)
        for change in changes
        if change.after is None and change.before is not None
    ]
    events = [verdict_event(change, at=now) for change in changes if change.is_news]

    def write(also: Writes | None) -> None:
        deps.machines.write_verdicts(kept, removed, events=events, at=now, also=also)

    _write_with(write, error, found, deps)
    if events:
        deps.outbox.send(outbox_key(events, now), events)


def _write_with(
    write: Callable[[Writes | None], None],
    error: PoolError | None,
    found: Pooled | None,
    deps: ExamineDeps,
) -> None:
    """Write something, and in the same transaction an error of the pool, if there is one."""
    if error is None or found is None or found.pool is None:
        write(None)
        return
    provider_id = found.pool.provider_id
    events = error_events(error, provider_id)
    mails = found.pool.email_on_error
    try:
        write(deps.errors.writes(error, events, is_late=False, mails=mails))
    except ConflictError:
        # One like it may have been counted that was reported later; else this fails again.
        write(deps.errors.writes(error, events, is_late=True, mails=mails))
    deps.outbox.tell(error, provider_id)


def _machine_error(change: Change, now: datetime) -> PoolError | None:
    if change.after is None:
        return None
    verdict, key = change.after.verdict, change.key
    kind, title = MAILED[verdict.condition]
    return PoolError(
        error_id=derived_slugid(kind, key, to_wire(now)),
        pool_id=key.pool_id,
        reported=now,
        kind=kind,
        title=title,
        description=f"{key.group}/{key.worker_id}: {verdict.reason}",
        extra={"workerGroup": key.group, "workerId": key.worker_id, "facts": dict(verdict.facts)},
    )


def _outage_error(queue_id: str, decided: Look, now: datetime) -> PoolError:
    trouble = decided.trouble
    return PoolError(
        error_id=derived_slugid(OUTAGE, queue_id, to_wire(now)),
        pool_id=queue_id,
        reported=now,
        kind=OUTAGE,
        title="Many machines turned bad at once",
        description=(
            f"{trouble.together} of {trouble.machines} machines turned bad within an hour; it is "
            "more likely something that they share than the machines. Nothing is done by itself "
            "until most of them are well again, or in quarantine."
        ),
        extra={"machines": trouble.machines, "bad": trouble.bad, "together": trouble.together},
    )
