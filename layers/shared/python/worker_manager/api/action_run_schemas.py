"""The wire: runs of actions, and what agents say of them.

Where to read next: ``action_runs`` and ``agents``, which use them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool, StringConstraints

from worker_manager.actions.course import MOST_ATTEMPTS
from worker_manager.api.action_schemas import (  # noqa: TC001 - pydantic reads them
    ActionName,
    ContextName,
    KindName,
    LevelName,
    Params,
)
from worker_manager.api.registry_schemas import PRINTABLE
from worker_manager.api.schemas import Slugid  # noqa: TC001 - too
from worker_manager.api.search_schemas import MOST_AT_ONCE, Token, WorkerFilter
from worker_manager.api.validation import Answer, Identifier, Moment, PoolId, Wire

MOST_CLAIMED = 10
"""Runs that an agent may take up with one request."""

RunStateName = Literal[
    "queued", "claimed", "running", "succeeded", "failed", "timed-out", "cancelled"
]
ResultName = Literal["ok", "no-change", "error", "unknown"]

Reason = Annotated[str, StringConstraints(max_length=4000, pattern=PRINTABLE)]
Said = Annotated[str, StringConstraints(max_length=2000, pattern=PRINTABLE)]
Method = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][-a-z0-9]{0,37}$")]
AttemptNumber = Annotated[int, Field(ge=1, le=MOST_ATTEMPTS, strict=True)]


class RunAction(Answer):
    """What is done, as it was declared when it was asked for."""

    name: str
    title: str
    kind: KindName
    context: ContextName
    url: str | None = None
    method: str | None = None
    operation: str | None = None
    agent_id: Identifier | None = None
    params: dict[str, Any] | None = None
    timeout_seconds: int


class RunTarget(Answer):
    """What it is done to; ``taskQueueId`` is that of a worker type or worker."""

    provisioner_id: Identifier
    worker_type: Identifier | None = None
    task_queue_id: PoolId | None = None
    worker_group: Identifier | None = None
    worker_id: Identifier | None = None


class RunAttempt(Answer):
    """One thing that was tried; ``unknown`` if whoever began it was gone before it told."""

    number: int
    method: str
    started: Moment
    ended: Moment | None = None
    result: ResultName | None = None
    message: str


class RunLogLine(Answer):
    """Something that was said of a run."""

    at: Moment
    text: str


class ActionRun(Answer):
    """One time that an action is done.

    ``verified`` is since when it is only waited for that the worker is seen again.
    """

    run_id: Slugid
    action: RunAction
    declared_at: LevelName
    target: RunTarget
    state: RunStateName
    requested: Moment
    requested_by: str
    reason: str
    params: dict[str, Any]
    bulk_id: Slugid | None = None
    holder: str | None = None
    taken: Moment | None = None
    lease_until: Moment | None = None
    attempts: list[RunAttempt]
    verified: Moment | None = None
    ended: Moment | None = None
    message: str
    log: list[RunLogLine]


class ActionRunsResponse(Answer):
    """A page of runs, the newest first."""

    runs: list[ActionRun]
    continuation_token: str | None = None


class RunActionRequest(Wire):
    """That an action shall be done; ``requestId`` becomes the run's id.

    ``level`` is where the action that is meant is declared, if there are several by its name.
    """

    request_id: Slugid
    level: LevelName | None = None
    reason: Reason = ""
    params: Params = Field(default={})


class CancelActionRunRequest(Wire):
    """Why."""

    reason: Reason = ""


class ClaimActionRunsRequest(Wire):
    """How many runs an agent would take up at most."""

    most: Annotated[int, Field(ge=1, le=MOST_CLAIMED, strict=True)] = 1


class ClaimedActionRun(Answer):
    """A run that is the agent's until the lease ends, unless it says more by then."""

    run: ActionRun
    lease_id: Slugid
    lease_until: Moment


class ClaimActionRunsResponse(Answer):
    """What an agent is to do now, the oldest first."""

    runs: list[ClaimedActionRun]


class BeginAttempt(Wire):
    """An attempt that is about to be made."""

    number: AttemptNumber
    method: Method


class EndAttempt(Wire):
    """How an attempt ended; one that was ``skipped`` was never begun, and is only told of."""

    number: AttemptNumber
    result: Literal["ok", "no-change", "error", "skipped"]
    message: Said = ""


class HeartbeatActionRunRequest(Wire):
    """That an agent still works on a run, and what has happened: first what ended."""

    lease_id: Slugid
    end: EndAttempt | None = None
    log: Said = ""
    begin: BeginAttempt | None = None


class HeartbeatActionRunResponse(Answer):
    """How the run is; ``workerSeen`` is when its worker was heard of since it was asked for."""

    state: RunStateName
    lease_until: Moment
    worker_seen: Moment | None = None


class ResolveActionRunRequest(Wire):
    """How the run ended."""

    lease_id: Slugid
    state: Literal["succeeded", "failed"]
    message: Said = ""


class RunActionsRequest(RunActionRequest):
    """That an action shall be done to each worker that a filter finds."""

    action: ActionName
    filter: WorkerFilter
    limit: Annotated[int, Field(ge=1, le=MOST_AT_ONCE, strict=True)] = 25
    continuation_token: Token | None = None
    dry_run: StrictBool = False


class BulkRun(Answer):
    """A worker that was gone through: the run that was made, or why none was."""

    task_queue_id: PoolId
    worker_group: Identifier
    worker_id: Identifier
    run_id: Slugid | None = None
    refused: str | None = None


class RunActionsResponse(Answer):
    """What was asked for so far; with a token there is more, not before ``retryAfter`` seconds."""

    runs: list[BulkRun]
    continuation_token: str | None = None
    retry_after: int | None = None


class StopActionRunsRequest(Wire):
    """Which bulk is to stop, by its ``requestId``."""

    request_id: Slugid


class StopActionRunsResponse(Answer):
    """How many runs of it were cancelled; with ``retryAfter`` (seconds) there are more."""

    cancelled: int
    retry_after: int | None = None
