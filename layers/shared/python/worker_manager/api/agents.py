"""What agents beside the machines call: they take up runs, and tell how these go.

An agent asks; nobody calls it.  What it is given it has for a minute, and for another with each
heartbeat; nothing may be tried before its beginning was written down.  A 409 means: stop at once.
Where to read next: ``worker_manager.actions.course``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker_manager.actions.course import LEASE, Beginning, Ending
from worker_manager.actions.entities import Result, RunState
from worker_manager.api.action_run_schemas import (
    ActionRun,
    ClaimActionRunsRequest,
    ClaimActionRunsResponse,
    ClaimedActionRun,
    HeartbeatActionRunRequest,
    HeartbeatActionRunResponse,
    ResolveActionRunRequest,
)
from worker_manager.api.action_runs import known_later
from worker_manager.api.registry_answers import told
from worker_manager.api.routing import Call, Route
from worker_manager.api.run_answers import run_answer
from worker_manager.core.scopes import AllOf

if TYPE_CHECKING:
    from datetime import datetime

    from worker_manager.actions.entities import Run
    from worker_manager.api.action_run_schemas import EndAttempt
    from worker_manager.api.deps import RegistryDeps

AGENT_SCOPE = "worker-registry:agent:"


def claim_runs(call: Call, deps: RegistryDeps) -> ClaimActionRunsResponse:
    """Take up what there is to do for an agent: what nobody has, the oldest first.

    Also what it had before and went silent about: what it had begun and not ended may have been
    done, and must not be done again.
    """
    claimed = deps.runs.claim(
        call.params["agentId"],
        most=call.body.most,
        new_lease_id=deps.new_slugid,
        now=deps.clock(),
    )
    return ClaimActionRunsResponse(
        runs=[
            ClaimedActionRun(
                run=run_answer(run), lease_id=run.lease.lease_id, lease_until=run.lease.until
            )
            for run in claimed
            if run.lease is not None
        ]
    )


def heartbeat(call: Call, deps: RegistryDeps) -> HeartbeatActionRunResponse:
    """Keep a run for another minute, and tell of it.

    ``begin`` says that an attempt is about to be made; only who got this answered may make it.
    409 if the run is over, or somebody else has it by now: then nothing more may be done.
    """
    body: HeartbeatActionRunRequest = call.body
    _require_agent(call, deps)
    now = deps.clock()
    run = deps.runs.beat(
        call.params["actionRunId"],
        body.lease_id,
        end=_ending(body.end),
        log=_log(body),
        begin=Beginning(body.begin.number, body.begin.method) if body.begin else None,
        now=now,
    )
    until = run.lease.until if run.lease else now + LEASE
    return HeartbeatActionRunResponse(
        state=run.state.value, lease_until=until, **told(worker_seen=_seen(run, deps))
    )


def resolve(call: Call, deps: RegistryDeps) -> ActionRun:
    """Be done with a run; saying the same again is fine.

    A reboot that succeeded goes on until its worker is seen again, without the agent.
    """
    _require_agent(call, deps)
    run = deps.runs.resolve(
        call.params["actionRunId"],
        call.body.lease_id,
        state=RunState(call.body.state),
        message=call.body.message,
        now=deps.clock(),
    )
    return run_answer(run)


def _require_agent(call: Call, deps: RegistryDeps) -> None:
    """Refuse whoever is not the agent that the run is for."""
    agent_id = deps.runs.get(call.params["actionRunId"]).action.agent_id
    call.require(f"{AGENT_SCOPE}{agent_id}" if agent_id else f"{AGENT_SCOPE}*")


def _ending(end: EndAttempt | None) -> Ending | None:
    if end is None or end.result == "skipped":
        return None
    return Ending(end.number, Result(end.result), end.message)


def _log(body: HeartbeatActionRunRequest) -> str:
    if body.end is None or body.end.result != "skipped":
        return body.log
    skipped = f"skipped: {body.end.message}" if body.end.message else "skipped"
    return f"{skipped}\n{body.log}" if body.log else skipped


def _seen(run: Run, deps: RegistryDeps) -> datetime | None:
    """When the worker was heard of, if that was after the run was asked for."""
    key = run.target.key
    seen = deps.runs.seen(key) if key is not None else None
    return seen if seen is not None and seen > run.requested else None


AGENT_ROUTES: tuple[Route[RegistryDeps], ...] = (
    Route(
        name="claimActionRuns",
        service="worker-registry",
        method="POST",
        path="/agents/<agentId>/claim",
        handler=claim_runs,
        scopes=f"{AGENT_SCOPE}<agentId>",
        body=ClaimActionRunsRequest,
        response=ClaimActionRunsResponse,
        stability="experimental",
    ),
    Route(
        name="heartbeatActionRun",
        service="worker-registry",
        method="POST",
        path="/action-runs/<actionRunId>/heartbeat",
        handler=heartbeat,
        scopes=AllOf((f"{AGENT_SCOPE}<agentId>",)),
        scopes_of=known_later,
        body=HeartbeatActionRunRequest,
        response=HeartbeatActionRunResponse,
        stability="experimental",
    ),
    Route(
        name="resolveActionRun",
        service="worker-registry",
        method="POST",
        path="/action-runs/<actionRunId>/resolve",
        handler=resolve,
        scopes=AllOf((f"{AGENT_SCOPE}<agentId>",)),
        scopes_of=known_later,
        body=ResolveActionRunRequest,
        response=ActionRun,
        stability="experimental",
    ),
)
