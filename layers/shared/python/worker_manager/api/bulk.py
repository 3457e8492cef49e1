"""Many quarantines at once: of whoever a filter finds, a page with each request.

Each worker is changed by itself, as if it had been asked for alone, so whoever stops half way
leaves nothing half done, and may begin anew or go on.  A deployment changes only so many a
minute: each is a call of its queue, an event, and somebody who may have erred in the filter.
Where to read next: ``everyone`` (who is found), ``quarantines`` (one worker at a time).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from worker_manager.api.everyone import PATIENCE, take
from worker_manager.api.found import Place, Wanted
from worker_manager.api.paging import position, with_token
from worker_manager.api.quarantines import end_of
from worker_manager.api.registry_answers import told
from worker_manager.api.routing import Call, Route
from worker_manager.api.search import SEARCH_SCOPE
from worker_manager.api.search_schemas import (
    ChangedWorker,
    QuarantineWorkersRequest,
    QuarantineWorkersResponse,
)
from worker_manager.core.errors import QueueUnavailableError
from worker_manager.registry.figures import Health
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from worker_manager.api.deps import RegistryDeps
    from worker_manager.api.found import Found
    from worker_manager.api.search_schemas import StateName, WorkerFilter
    from worker_manager.core.model import WorkerKey

MOST_A_MINUTE = 600
"""Quarantines that all such requests to a deployment together change."""
WHAT = "quarantines"
"""The name under which they are counted."""
PAUSE = 5
"""Seconds after which a queue that did not answer may be asked again."""


@dataclass(slots=True)
class Step:
    """One worker that was found, and what is to be done with it."""

    key: WorkerKey
    state: StateName
    is_refused: bool
    is_change: bool
    is_done: bool

    @classmethod
    def of(cls, found: Found, call: Call, now: datetime) -> Step:
        """Nothing is to be done with one that is as wished, or not the caller's."""
        key = found.key
        scope = f"queue:quarantine-worker:{key.pool_id}/{key.group}/{key.worker_id}"
        is_refused = not call.satisfies(scope)
        is_change = not is_refused and not _is_as_wished(found, call.body, now)
        is_done = not is_change or call.body.dry_run
        return cls(key, found.state, is_refused, is_change, is_done=is_done)


def quarantine_workers(call: Call, deps: RegistryDeps) -> QuarantineWorkersResponse:
    """Give no more tasks to any of the workers that a filter finds, or release them.

    Goes through as many as ``limit`` says; the token leads on.  Workers that the caller may not
    quarantine (``queue:quarantine-worker:<task queue id>/<group>/<id>``) are only counted, those
    that are as wished already stay as they are.  Machines that have ended are put into quarantine
    only where the filter names a ``state``, or ``health`` ``gone``; released they are like any
    other.  ``dryRun`` says who would be changed.  When a
    minute's changes are used up, or the queue does not answer, the answer says what was done,
    with a token for the rest, and after how many seconds to go on.
    """
    body: QuarantineWorkersRequest = call.body
    late = deps.clock() + PATIENCE
    after = place_of(body.continuation_token)
    found, place = take(call, deps, _wanted(body, deps.clock()), after=after, size=body.limit)
    steps = [Step.of(one, call, deps.clock()) for one in found]
    pause = _change(call, deps, steps, late)
    done = list(takewhile(lambda step: step.is_done, steps))
    if len(done) < len(steps):
        place = Place.of(done[-1].key) if done else after
    mine = [step for step in done if not step.is_refused]
    return QuarantineWorkersResponse(
        workers=[_told(step) for step in mine],
        refused=len(done) - len(mine),
        **with_token(None if place is None else str(place)),
        **told(retry_after=pause),
    )


def _change(call: Call, deps: RegistryDeps, steps: Sequence[Step], late: datetime) -> int | None:
    """Do the steps, as far as may be; after how many seconds to go on if that is not all.

    The first is done however late it is, so that every request comes further.
    """
    for number, step in enumerate(step for step in steps if not step.is_done):
        now = deps.clock()
        if number and now >= late:
            return 0
        minute = now.replace(second=0, microsecond=0)
        if not deps.registry.table.take(WHAT, minute, 1, most=MOST_A_MINUTE):
            return 60 - now.second
        try:
            _quarantine(call, deps, step.key, now)
        except QueueUnavailableError as error:
            logger.warning("a quarantine does not take hold", error=str(error))
            return PAUSE
        step.is_done = True
    return None


def _quarantine(call: Call, deps: RegistryDeps, key: WorkerKey, now: datetime) -> None:
    """As for one worker alone: first where tasks are given out, then here."""
    body: QuarantineWorkersRequest = call.body
    until, info = end_of(body, now), body.quarantine_info
    by = call.client_id or "anonymous"
    deps.quarantines.impose(deps.backend, key, until, info=info, client_id=by, now=now)


def _is_as_wished(found: Found, body: QuarantineWorkersRequest, now: datetime) -> bool:
    """Whether a worker is in quarantine for as long as it shall be, or is not if it shall not."""
    held = found.seen.quarantine_until if found.seen and found.is_quarantined(now) else None
    until = end_of(body, now)
    if until <= now or held is None:
        return until <= now and held is None
    return held == until if body.quarantine_until else held >= until


def _wanted(body: QuarantineWorkersRequest, now: datetime) -> Wanted:
    return wanted_of(body.filter, takes_gone=end_of(body, now) <= now)


def place_of(token: str | None) -> Place:
    """Where a page begins, by what the one before told."""
    query = {} if token is None else {"continuationToken": token}
    return Place.parse(position(query, Place.is_one))


def wanted_of(asked: WorkerFilter, *, takes_gone: bool = False) -> Wanted:
    """Whom a filter means; with those whose machine has ended if it says so, or ``takes_gone``."""
    means_gone = takes_gone or asked.state is not None or asked.health == Health.GONE.value
    return Wanted(
        task_queue_id=asked.task_queue_id,
        provisioner_id=asked.provisioner_id,
        worker_group=asked.worker_group,
        worker_id=asked.q or "",
        state=asked.state,
        quarantined=asked.quarantined,
        health=asked.health,
        cloud_provider_id=asked.provider_id,
        launch_config_id=asked.launch_config_id,
        is_gone=None if means_gone else False,
    )


def _told(step: Step) -> ChangedWorker:
    return ChangedWorker(
        task_queue_id=step.key.pool_id,
        worker_group=step.key.group,
        worker_id=step.key.worker_id,
        state=step.state,
        changed=step.is_change,
    )


BULK_ROUTES: tuple[Route[RegistryDeps], ...] = (
    Route(
        name="quarantineWorkers",
        service="worker-registry",
        method="POST",
        path="/quarantines",
        handler=quarantine_workers,
        scopes=SEARCH_SCOPE,
        body=QuarantineWorkersRequest,
        response=QuarantineWorkersResponse,
        stability="experimental",
    ),
)
