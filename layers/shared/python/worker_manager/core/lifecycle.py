"""How one worker's state moves on, from what the cloud's list and the queue say of it.

``settle`` is a pure judgement; acting on it is the scan's work, and only where its conditional
write won.  What is unknown is never held against a worker: a machine that a list does not show
may be missing without being dead, and activity that the queue did not tell is not inactivity
(B13).  Every state reaches ``stopped`` (B48).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from worker_manager.core.events import (
    WORKER_REMOVED,
    WORKER_STOPPED,
    WORKER_STOPPING,
    with_event,
)
from worker_manager.core.model import MachineStatus, State, Worker
from worker_manager.core.surplus import is_interrupted

if TYPE_CHECKING:
    from worker_manager.core.activity import Activity
    from worker_manager.core.errors import CloudError
    from worker_manager.core.timing import Timing

QUEUE_ROW_KEPT = timedelta(days=1)
"""How long a queue remembers a worker it no longer hears of."""
OURSELVES = "worker-manager"
OUTSIDE = "cloud"
"""Who ends a worker that no caller of the API ends."""
REGISTRATIONS_KEPT = timedelta(days=1)
MOST_REGISTRATIONS = 12
"""That are kept of a worker: a machine that boots over and over is known by fewer."""
EXPIRED = "expired"
"""Why a static worker stopped that had its time."""


def registrations_with(worker: Worker, at: datetime) -> tuple[datetime, ...]:
    """A worker's registrations of the last day with one more, as many as are kept."""
    return (*registrations_until(worker, at), at)[-MOST_REGISTRATIONS:]


def registrations_until(worker: Worker, at: datetime) -> tuple[datetime, ...]:
    """A worker's registrations within a day before ``at``, as far as they are kept."""
    return tuple(one for one in worker.registrations if one > at - REGISTRATIONS_KEPT)


def expiry(worker: Worker, *, at: datetime) -> dict[str, Any]:
    """The changes that end a static worker, of which no list tells, with their event."""
    return with_event(
        worker,
        WORKER_STOPPED,
        at=at,
        reason=EXPIRED,
        state=State.STOPPED,
        stop_reason=EXPIRED,
        stopped_by=OURSELVES,
    )


def removal(
    worker: Worker, *, has_machine: bool, at: datetime, reason: str, by: str | None
) -> dict[str, Any]:
    """The changes by which somebody has a worker taken away, with their events.

    One that has no machine of ours, as a static one, is stopped at once.
    """
    state = State.STOPPING if has_machine else State.STOPPED
    names = (WORKER_REMOVED, WORKER_STOPPING) if has_machine else (WORKER_REMOVED,)
    return with_event(
        worker,
        *names,
        at=at,
        reason=reason,
        state=state,
        stopping_since=at,
        stop_reason=reason,
        stopped_by=by,
    )


def was_never_made(
    *, state: State, launched: object, registered: object, stopped_by: str | None
) -> bool:
    """Whether a worker ended by our own decision without a machine of it having been seen."""
    return state is State.STOPPED and not launched and not registered and stopped_by == OURSELVES


@dataclass(frozen=True, slots=True)
class Keep:
    """Nothing changed: nothing is written."""


@dataclass(frozen=True, slots=True)
class Note:
    """The worker goes on; the queue told something new of it."""

    first_claim: datetime | None
    quarantine_until: datetime | None


@dataclass(frozen=True, slots=True)
class Launched:
    """The machine runs in its cloud: from now on it has until ``deadline`` to register (B24)."""

    deadline: datetime


@dataclass(frozen=True, slots=True)
class Stop:
    """Take the machine away.

    ``failure`` is the health counter it adds to, if any; ``code`` the cloud's own word for it.
    """

    reason: str
    failure: str | None = None
    by: str = OURSELVES
    code: str | None = None


@dataclass(frozen=True, slots=True)
class Gone:
    """The machine exists no more.  ``by`` is ``None`` where it is known already who ended it."""

    reason: str
    failure: str | None = None
    by: str | None = OUTSIDE
    code: str | None = None


@dataclass(frozen=True, slots=True)
class StopAgain:
    """It should be going and is not: delete it once more.

    ``stuck`` is worth an alarm, and is noted as the row's last change: past the limit it is tried
    again whenever twice as long has passed as the last time.
    """

    stuck: bool


Verdict = Keep | Note | Launched | Stop | Gone | StopAgain


def settle(
    worker: Worker,
    status: MachineStatus,
    activity: Activity | None,
    *,
    activity_known: bool,
    now: datetime,
    timing: Timing,
    refusal: CloudError | None = None,
) -> Verdict:
    """Judge one live worker.

    ``status`` is what the cloud says (``GONE`` only after a lookup by id confirmed it), ``refusal``
    why it did not make the machine or will not go on with it;
    ``activity`` is the queue's row for it, ``None`` if the queue answered and has none;
    ``activity_known`` is false if the queue did not answer at all.
    """
    if refusal is not None and worker.state is State.REQUESTED:
        verdict = Gone if status is MachineStatus.GONE else Stop
        return verdict(str(refusal), refusal.kind, code=refusal.code)
    if status is MachineStatus.GONE:
        return _gone(worker)
    if worker.state is State.STOPPING:
        return _stopping(worker, status, now, timing)
    if status in (MachineStatus.STOPPED, MachineStatus.STOPPING):
        return _switched_off(worker)
    if worker.state is State.REQUESTED:
        return _requested(worker, status, now)
    return _running(worker, activity, activity_known=activity_known, now=now, timing=timing)


def told_to_go(worker: Worker) -> tuple[str, str] | None:
    """Why a worker was told to terminate, and by whom: what its end is put down to."""
    if worker.surplus is None or not worker.surplus.terminate:
        return None
    return worker.surplus.reason, OUTSIDE if is_interrupted(worker) else OURSELVES


def _switched_off(worker: Worker) -> Verdict:
    told = told_to_go(worker)
    if told is not None:
        reason, by = told
        return Stop(reason, by=by)
    failure = "never-registered" if worker.state is State.REQUESTED else None
    return Stop("the machine was stopped from outside", failure, by=OUTSIDE)


def _gone(worker: Worker) -> Verdict:
    if worker.state is State.STOPPING:
        return Gone(worker.stop_reason or "removed", by=None)
    told = told_to_go(worker)
    if told is not None:
        reason, by = told
        return Gone(reason, by=by)
    if worker.state is State.REQUESTED:
        return Gone("the machine vanished before it registered", "never-registered")
    return Gone("the machine is gone")


def _stopping(worker: Worker, status: MachineStatus, now: datetime, timing: Timing) -> Verdict:
    since = worker.stopping_since or now
    if now - since <= timing.list_lag:
        return Keep()  # the list may be older than the delete
    if now - since <= timing.stopping_limit:
        return Keep() if status is MachineStatus.STOPPING else StopAgain(stuck=False)
    told_after = worker.modified - since
    if told_after <= timing.stopping_limit or now - since >= 2 * told_after:
        return StopAgain(stuck=True)
    return Keep()


def _requested(worker: Worker, status: MachineStatus, now: datetime) -> Verdict:
    if worker.launched is None and status is MachineStatus.RUNNING:
        return Launched(deadline=now + worker.registration)
    if worker.deadline is not None and now > worker.deadline:
        if worker.launched is None:
            return Stop("did not run in its cloud in time", "lost")
        return Stop("did not register in time", "never-registered")
    return Keep()


def _running(
    worker: Worker,
    activity: Activity | None,
    *,
    activity_known: bool,
    now: datetime,
    timing: Timing,
) -> Verdict:
    if worker.deadline is not None and now > worker.deadline:
        return Stop("terminateAfter time exceeded")
    if not activity_known:
        return Keep()
    quarantine = activity.quarantine_until if activity else None
    if quarantine is not None and quarantine <= now:
        quarantine = None
    if quarantine is None and (verdict := _zombie(worker, activity, now, timing)):
        return verdict
    claim = worker.first_claim or (activity.first_claim if activity else None)
    held = worker.quarantine_until if worker.is_quarantined(now) else None
    if claim != worker.first_claim or quarantine != held:
        return Note(first_claim=claim, quarantine_until=quarantine)
    return Keep()


def _zombie(
    worker: Worker, activity: Activity | None, now: datetime, timing: Timing
) -> Stop | None:
    """A worker that registered and never claimed, or has long been silent.

    When it last called may be told too early; it is given as much more time.
    """
    cutoff = now - worker.queue_inactivity
    seconds = int(worker.queue_inactivity.total_seconds())
    if activity is None or not activity.is_seen:
        if worker.first_claim is not None:
            long_silent = worker.first_claim < cutoff - QUEUE_ROW_KEPT
            return Stop("the queue forgot it: inactive for a day") if long_silent else None
        since = worker.registered or worker.created
        if since < cutoff:
            return Stop(f"never claimed work within {seconds} s", "never-claimed")
        return None
    if activity.last_active is not None and activity.last_active < cutoff - timing.sighting:
        return Stop(f"inactive for more than {seconds} s")
    return None
