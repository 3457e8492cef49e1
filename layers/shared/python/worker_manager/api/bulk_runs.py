"""Many runs at once: of one action, done to whoever a filter finds, a page with each request.

Each run is asked for by itself, as if for its worker alone, under an id that derives from the
bulk's: whoever stops half way may begin anew, and nothing is done twice.  A deployment asks for
only so many a minute, and a bulk can be stopped: what nobody has done yet is cancelled, and no
page of it follows.
Where to read next: ``everyone`` (who is found), ``action_runs`` (one at a time).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from worker_manager.actions import bulks
from worker_manager.actions.declared import scopes_to_run
from worker_manager.actions.entities import Level, Target
from worker_manager.api.action_run_schemas import (
    BulkRun,
    RunActionsRequest,
    RunActionsResponse,
    StopActionRunsRequest,
    StopActionRunsResponse,
)
from worker_manager.api.action_runs import new_run, request
from worker_manager.api.bulk import place_of, wanted_of
from worker_manager.api.everyone import PATIENCE, take
from worker_manager.api.found import Place
from worker_manager.api.paging import with_token
from worker_manager.api.registry_answers import told
from worker_manager.api.routing import Call, Route
from worker_manager.api.search import SEARCH_SCOPE
from worker_manager.core.errors import ConflictError, InputInvalidError, NotFoundError
from worker_manager.core.ids import derived_slugid
from worker_manager.core.model import canonical_json

if TYPE_CHECKING:
    from worker_manager.actions.entities import Offered
    from worker_manager.api.deps import RegistryDeps
    from worker_manager.core.model import WorkerKey

MOST_A_MINUTE = 300
"""Runs that all such requests to a deployment together ask for."""
WHAT = "action-runs"
"""The name under which they are counted."""


def run_actions(call: Call, deps: RegistryDeps) -> RunActionsResponse:
    """Have an action done to each worker that a filter finds.

    Goes through as many as ``limit`` says; the token leads on, with the same ``requestId``.  Only
    what is declared as ``bulk`` is done to many.  A worker to which it cannot be done, or may not
    by the caller, is told as ``refused``, with why.  ``dryRun`` says to whom it would be done.
    When a minute's runs are used up the answer has a token for the rest, and after how many
    seconds to go on.  409 once the bulk was stopped.
    """
    body: RunActionsRequest = call.body
    late = deps.clock() + PATIENCE
    if not body.dry_run:
        bulks.begin(deps.runs, body.request_id, _about(call), now=deps.clock())
    after = place_of(body.continuation_token)
    found, place = take(call, deps, wanted_of(body.filter), after=after, size=body.limit)
    done: list[BulkRun] = []
    pause: int | None = None
    for number, one in enumerate(found):
        now = deps.clock()
        run = None
        if number and now >= late:
            pause = 0
        elif (run := _run(call, deps, one.key)) is None:
            pause = 60 - now.second
        if run is None:
            place = Place.of(found[number - 1].key) if number else after
            break
        done.append(run)
    return RunActionsResponse(
        runs=done,
        **with_token(None if place is None else str(place)),
        **told(retry_after=pause),
    )


def stop_runs(call: Call, deps: RegistryDeps) -> StopActionRunsResponse:
    """Stop a bulk: nothing further is asked for, and nothing begun of what is not over.

    By whoever asked for it, or who may have its action done to anything.  Of a large bulk some
    runs may not be cancelled yet: then there is a ``retryAfter``, and the same again goes on.
    """
    bulk_id, late = call.body.request_id, deps.clock() + PATIENCE
    about = json.loads(bulks.about(deps.runs, bulk_id))
    if call.client_id != about["client"]:
        call.require(f"worker-registry:run-action:{about['action']}:*")
    cancelled, is_all = bulks.stop(
        deps.runs,
        bulk_id,
        by=call.client_id or "anonymous",
        now=deps.clock(),
        is_late=lambda: deps.clock() >= late,
    )
    return StopActionRunsResponse(cancelled=cancelled, **told(retry_after=None if is_all else 0))


def _about(call: Call) -> str:
    """What stays the same from page to page."""
    varying = ("requestId", "limit", "dryRun", "continuationToken")
    same = {name: value for name, value in call.payload.items() if name not in varying}
    return canonical_json({**same, "client": call.client_id})


def _run(call: Call, deps: RegistryDeps, key: WorkerKey) -> BulkRun | None:
    """What became of asking for one worker; ``None`` if it must wait for another minute."""
    body: RunActionsRequest = call.body
    target = Target.of_worker(key)
    run_id = derived_slugid("bulk", body.request_id, target)
    known = deps.runs.find(run_id)
    if known is not None:
        return _told(key, run_id=known.run_id)
    try:
        offered = _offered(call, deps, target)
    except (ConflictError, InputInvalidError, NotFoundError) as error:
        return _told(key, refused=str(error))
    if not call.satisfies(scopes_to_run(offered.action, target)):
        return _told(key, refused="your scopes do not allow it")
    if body.dry_run:
        return _told(key)
    return _ask(call, deps, offered, key, run_id=run_id)


def _ask(
    call: Call, deps: RegistryDeps, offered: Offered, key: WorkerKey, *, run_id: str
) -> BulkRun | None:
    """Ask for one run, if this minute has one left."""
    target = Target.of_worker(key)
    bulk_id = call.body.request_id
    now = deps.clock()
    minute = now.replace(second=0, microsecond=0)
    if not deps.registry.table.take(WHAT, minute, 1, most=MOST_A_MINUTE):
        return None
    wanted = new_run(call, deps, offered, target, run_id=run_id, now=now, bulk_id=bulk_id)
    try:
        return _told(key, run_id=request(wanted, deps).run_id)
    except ConflictError as error:
        if deps.runs.is_stopped(bulk_id):
            raise
        return _told(key, refused=str(error))


def _offered(call: Call, deps: RegistryDeps, target: Target) -> Offered:
    body: RunActionsRequest = call.body
    level = Level(body.level) if body.level else None
    offered = deps.catalogue.find(target, body.action, level)
    if not offered.action.is_bulk:
        raise InputInvalidError("action", f"{body.action!r} is not done to many at once")
    return offered


def _told(key: WorkerKey, **more: str) -> BulkRun:
    return BulkRun(
        task_queue_id=key.pool_id, worker_group=key.group, worker_id=key.worker_id, **more
    )


BULK_RUN_ROUTES: tuple[Route[RegistryDeps], ...] = (
    Route(
        name="runActions",
        service="worker-registry",
        method="POST",
        path="/action-runs",
        handler=run_actions,
        scopes=SEARCH_SCOPE,
        body=RunActionsRequest,
        response=RunActionsResponse,
        stability="experimental",
    ),
    Route(
        name="stopActionRuns",
        service="worker-registry",
        method="POST",
        path="/action-runs/stop",
        handler=stop_runs,
        scopes=SEARCH_SCOPE,
        body=StopActionRunsRequest,
        response=StopActionRunsResponse,
        stability="experimental",
    ),
)
