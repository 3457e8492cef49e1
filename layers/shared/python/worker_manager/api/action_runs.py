"""Runs of actions over HTTP: asked for, looked at, cancelled.

Holding the scope of one action never allows another, nor the same on another target; and what an
action requires its caller must hold as well, as it is done in the caller's name.
Where to read next: ``agents``, ``bulk_runs``, ``worker_manager.actions.ledger``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from worker_manager.actions.declared import scopes_to_run
from worker_manager.actions.entities import Context, Kind, Level, Offered, Operation, Run, RunState
from worker_manager.api import paging
from worker_manager.api.action_run_schemas import (
    ActionRun,
    ActionRunsResponse,
    CancelActionRunRequest,
    RunActionRequest,
)
from worker_manager.api.actions import PATHS, target_of
from worker_manager.api.declarations import exact_queue_id
from worker_manager.api.definitions import after_commit
from worker_manager.api.routing import PAGING, Call, Route
from worker_manager.api.run_answers import run_answer
from worker_manager.core.ids import SLUGID, matches
from worker_manager.core.messages import Act
from worker_manager.core.moments import from_wire, to_wire
from worker_manager.core.scopes import AllOf, AnyOf
from worker_manager.queues import Message

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from worker_manager.actions.entities import Target
    from worker_manager.api.deps import RegistryDeps
    from worker_manager.core.scopes import Expression

LARGEST_PAGE = 100
"""Runs of one page: each has its log."""


def run_action(call: Call, deps: RegistryDeps) -> ActionRun:
    """Have an action done.

    Asking again with the same ``requestId`` is asking once: the answer is the run as it is by
    then.  409 if the same name means several actions and no ``level`` is given; if the worker has
    an open run; or if the same was done to it a short while ago.  The caller needs
    ``worker-registry:run-action:<name>:<target>`` and all that the action requires.
    """
    body: RunActionRequest = call.body
    if "workerType" in call.params:
        exact_queue_id(call)
    target = target_of(call)
    offered = _known(call, deps, target)
    if offered is None:
        level = Level(body.level) if body.level else None
        offered = deps.catalogue.find(target, call.params["actionName"], level)
    call.require(scopes_to_run(offered.action, target))
    wanted = new_run(call, deps, offered, target, run_id=body.request_id, now=deps.clock())
    return run_answer(request(wanted, deps))


def _known(call: Call, deps: RegistryDeps, target: Target) -> Offered | None:
    """The action of a run by the same id that may be the same, also where it is no longer."""
    known = deps.runs.find(call.body.request_id)
    if known is None or known.target != target or known.action.name != call.params["actionName"]:
        return None
    is_same = call.body.level in (None, known.level)
    return Offered(known.action, known.level) if is_same else None


def new_run(
    call: Call,
    deps: RegistryDeps,
    offered: Offered,
    target: Target,
    *,
    run_id: str,
    now: datetime,
    bulk_id: str | None = None,
) -> Run:
    """A run as the caller asks for it."""
    seen = deps.runs.seen(target.key) if target.key is not None else None
    is_silent = seen is None or seen <= now - 2 * deps.registry.interval
    return Run(
        run_id=run_id,
        action=offered.action,
        level=offered.level,
        target=target,
        requested=now,
        requested_by=call.client_id or "anonymous",
        reason=call.body.reason,
        params=call.body.params,
        bulk_id=bulk_id,
        was_silent=offered.action.operation == Operation.REBOOT and is_silent,
    )


def request(wanted: Run, deps: RegistryDeps) -> Run:
    """The run, handed on to whoever does it.

    Should our own queue not take it, it is found within a minute.
    """
    run = deps.runs.request(wanted)
    if run.action.kind is not Kind.AGENT and run.state is RunState.QUEUED:
        with after_commit("handing on a run"):
            deps.act.send([Message(Act(run.run_id).to_json())])
    return run


def get_run(call: Call, deps: RegistryDeps) -> ActionRun:
    """A run, with all that was tried and said.

    Needs what it takes to look at its provisioner, worker type or worker.
    """
    run_id = call.params["actionRunId"]
    call.require(scope_to_see(deps.runs.get(run_id).target))
    return run_answer(deps.runs.settle(run_id, now=deps.clock()))


def cancel_run(call: Call, deps: RegistryDeps) -> ActionRun:
    """Let nobody go on with a run.

    Nothing further is begun; what was begun already may still be done.  Needs what it takes to
    run it.
    """
    run_id = call.params["actionRunId"]
    run = deps.runs.get(run_id)
    call.require(scopes_to_run(run.action, run.target))
    who = call.client_id or "anonymous"
    return run_answer(deps.runs.cancel(run_id, by=who, reason=call.body.reason, now=deps.clock()))


def list_of_worker(call: Call, deps: RegistryDeps) -> ActionRunsResponse:
    """What was done to a worker, the newest first."""
    before = paging.position(call.query, _is_line_of_worker) or ""
    size = min(paging.page_size(call.query), LARGEST_PAGE)
    found = deps.runs.of_target(target_of(call), limit=size, before=before)
    return _page(deps, *found, prefix="run#")


def list_of_queue(call: Call, deps: RegistryDeps) -> ActionRunsResponse:
    """What was done to a worker type and its workers, the newest first."""
    before = paging.position(call.query, _is_line) or ""
    size = min(paging.page_size(call.query), LARGEST_PAGE)
    queue_id = call.params["taskQueueId"]
    return _page(deps, *deps.runs.of_queue(queue_id, limit=size, before=before))


def scope_to_see(target: Target) -> str:
    """What it takes to look at a target, and so at its runs."""
    return f"queue:get-{target.context}:{target}"


def _page(
    deps: RegistryDeps, runs: list[Run], following: str | None, *, prefix: str = ""
) -> ActionRunsResponse:
    """As many as fit into an answer."""
    answers = [run_answer(run) for run in runs]
    cut = list(paging.cut(answers, paging.size_of, most_bytes=deps.page_bytes))
    if len(cut) < len(answers):
        last = runs[len(cut) - 1]
        following = f"{prefix}{to_wire(last.requested)}#{last.run_id}"
    return ActionRunsResponse(runs=cut, **paging.with_token(following))


def _is_line(text: str) -> bool:
    """Whether a text is the place of a run in a list."""
    moment, _, run_id = text.partition("#")
    try:
        from_wire(moment)
    except ValueError:
        return False
    return matches(SLUGID, run_id)


def _is_line_of_worker(text: str) -> bool:
    return text.startswith("run#") and _is_line(text.removeprefix("run#"))


def known_later(_params: Mapping[str, str], _payload: Any) -> Expression:
    """What a call requires before it is known what it is about: nothing yet."""
    return AllOf(())


_, _WORKER_PATH, _WORKER = PATHS[Context.WORKER]


def _running(context: Context) -> Route[RegistryDeps]:
    word, path, names = PATHS[context]
    return Route(
        name=f"run{word}Action",
        service="worker-registry",
        method="POST",
        path=f"{path}/actions/<actionName>",
        handler=run_action,
        scopes=f"worker-registry:run-action:<actionName>:{names}",
        body=RunActionRequest,
        response=ActionRun,
        stability="experimental",
    )


RUN_ROUTES: tuple[Route[RegistryDeps], ...] = (
    *(_running(context) for context in Context),
    Route(
        name="actionRun",
        service="worker-registry",
        method="GET",
        path="/action-runs/<actionRunId>",
        handler=get_run,
        scopes=AnyOf(
            tuple(f"queue:get-{context}:{names}" for context, (*_, names) in PATHS.items())
        ),
        scopes_of=known_later,
        response=ActionRun,
        stability="experimental",
    ),
    Route(
        name="cancelActionRun",
        service="worker-registry",
        method="POST",
        path="/action-runs/<actionRunId>/cancel",
        handler=cancel_run,
        scopes=AllOf((f"worker-registry:run-action:<actionName>:{_WORKER}",)),
        scopes_of=known_later,
        body=CancelActionRunRequest,
        response=ActionRun,
        stability="experimental",
    ),
    Route(
        name="listWorkerActionRuns",
        service="worker-registry",
        method="GET",
        path=f"{_WORKER_PATH}/action-runs",
        handler=list_of_worker,
        scopes=f"queue:get-worker:{_WORKER}",
        query=PAGING,
        response=ActionRunsResponse,
        stability="experimental",
    ),
    Route(
        name="listTaskQueueActionRuns",
        service="worker-registry",
        method="GET",
        path="/task-queues/<taskQueueId>/action-runs",
        handler=list_of_queue,
        scopes=AllOf(("queue:get-worker-type:<taskQueueId>", "queue:get-worker:<taskQueueId>/*")),
        query=PAGING,
        response=ActionRunsResponse,
        stability="experimental",
    ),
)
