"""The wire: what is told of workers by search, by name and in numbers.

Where to read next: ``search``, ``worker_details`` and ``worker_stats``, which make these answers,
and ``bulk``, which has the one request.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool, StringConstraints, model_validator

from worker_manager.api.machine_schemas import (  # noqa: TC001 - pydantic reads them
    VerdictName,
    VerdictPart,
)
from worker_manager.api.registry_schemas import (
    Info,
    ListTaskQueuesResponse,
    MayBeClosed,
    QuarantineDetail,
    QuarantineWorkerRequest,
    RecentTask,
    RunName,
    TaskQueueResponse,
    WorkerItem,
)
from worker_manager.api.routing import TOKEN
from worker_manager.api.validation import (
    Answer,
    Identifier,
    Moment,
    PoolId,
    Wire,
)
from worker_manager.core.model import State

StateName = State | Literal["standalone"]
HealthName = Literal["ok", "failing", "silent", "unknown", "gone"]
Source = Literal["observed", "declared", "worker-manager"]
Token = Annotated[str, StringConstraints(pattern=TOKEN)]

MOST_AT_ONCE = 100
"""Workers whose quarantine one request changes."""


class WorkerFigures(Answer):
    """How a worker fares; rates are of the last seven days, and not told below five runs."""

    health: HealthName
    last_claim: Moment | None = None
    up_since: Moment | None = None
    uptime_seconds: int | None = None
    uptime_is_approximate: bool | None = None
    runs: int
    failure_rate: float | None = None
    exception_rate: float | None = None


class SearchedWorker(WorkerItem):
    """A worker of any task queue; what nobody knows of it is left out.

    ``closedUntil`` while its task queue gives out no tasks at all.
    """

    task_queue_id: PoolId
    closed_until: Moment | None = None
    state: StateName
    provider_id: Identifier
    launch_config_id: Identifier | None = None
    capacity: int
    figures: WorkerFigures
    verdict: VerdictName | None = None
    """What is wrong with its machine, if anything is."""


class SearchWorkersResponse(Answer):
    """A page of workers; it may be short, or empty, and still not be the last."""

    workers: list[SearchedWorker]
    continuation_token: str | None = None


class Part(Answer):
    """Some facts, who says so, and when that was last known to be so."""

    source: Source
    as_of: Moment | None = None


class Standing(Answer):
    """Whether a worker should terminate, and why."""

    terminate: bool
    reason: str
    decided: Moment


class ManagedPart(Part):
    """What the worker manager knows of a worker that it made, or that was set up with it.

    ``registrations`` are those of the last day, the latest twelve at most.
    """

    state: StateName
    provider_id: Identifier
    provider_type: str | None = None
    launch_config_id: Identifier | None = None
    capacity: int
    created: Moment
    last_modified: Moment
    last_checked: Moment
    expires: Moment | None = None
    registered: Moment | None = None
    registrations: list[Moment] | None = None
    boot_time: Moment | None = None
    decision_id: str | None = None
    stop_reason: str | None = None
    stopped_by: str | None = None
    should_terminate: Standing | None = None


class ObservedPart(Part):
    """What the task queue saw of a worker.

    ``queueAnswers`` is false where it could not be asked how a run ended: one among ``running``
    may then have.
    """

    first_date_active: Moment | None = None
    last_date_active: Moment | None = None
    first_claim: Moment | None = None
    gone_since: Moment | None = None
    expires: Moment
    recent_tasks: list[RecentTask]
    running: list[RunName]
    queue_answers: bool


class DeclaredPart(Part):
    """What people said of a worker."""

    expires: Moment | None = None
    boot_time: Moment | None = None
    capacity: int | None = None
    extra: dict[str, Any] | None = None


class QuarantinePart(Part):
    """A worker's quarantine, and how it came to it, the newest first."""

    in_force: bool
    quarantine_until: Moment
    quarantine_info: str
    quarantined_by: str | None = None
    history: list[QuarantineDetail]


class GroupPart(Part):
    """The worker's group, as far as anybody of it was seen."""

    first_date_active: Moment
    last_date_active: Moment


class WorkerDetailsResponse(Answer):
    """All that anybody knows of one worker; parts that nobody knows are left out."""

    task_queue_id: PoolId
    provisioner_id: Identifier
    worker_type: Identifier
    worker_group: Identifier
    worker_id: Identifier
    figures: WorkerFigures
    worker_manager: ManagedPart | None = None
    observed: ObservedPart | None = None
    declared: DeclaredPart | None = None
    quarantine: QuarantinePart | None = None
    verdict: VerdictPart | None = None
    group: GroupPart | None = None
    task_queue: TaskQueueResponse | None = None


class WorkerNumbers(Answer):
    """Workers of a task queue; the last three are disjoint."""

    total: int
    idle: int
    quarantined: int
    claimed: int


class TaskQueueStats(MayBeClosed):
    """How a task queue fares; rates are over all runs of its workers within seven days.

    Workers are counted by what was heard of them, tasks by the queue itself, which may be ahead.
    Where it does not answer ``unavailable`` says so.  While the queue is closed nobody is started
    for the tasks that wait.
    """

    workers: WorkerNumbers
    pending_tasks: int | None = None
    claimed_tasks: int | None = None
    unavailable: str | None = None
    runs: int
    failure_rate: float | None = None
    exception_rate: float | None = None
    last_date_active: Moment | None = None


class TaskQueueStatsResponse(TaskQueueStats):
    """How one task queue fares."""

    task_queue_id: PoolId


class TaskQueueWithStats(TaskQueueResponse):
    """A task queue, with how it fares if that was asked for."""

    stats: TaskQueueStats | None = None


class TaskQueuesWithStatsResponse(ListTaskQueuesResponse):
    """A page of all worker types."""

    task_queues: list[TaskQueueWithStats]  # type: ignore[assignment]


class WorkerStatsResponse(WorkerFigures):
    """How one worker fares."""

    task_queue_id: PoolId
    worker_group: Identifier
    worker_id: Identifier


class WorkerFilter(Wire):
    """To whom something is done: workers of one task queue, or of one provisioner.

    The rest narrows them down, as in a search.  To those whose machine has ended nothing is done
    without a ``state``, or ``health`` ``gone``; but they are released from quarantine.
    """

    task_queue_id: PoolId | None = None
    provisioner_id: Identifier | None = None
    worker_group: Identifier | None = None
    q: Identifier | None = None
    state: StateName | None = None
    health: HealthName | None = None
    quarantined: StrictBool | None = None
    provider_id: Identifier | None = None
    launch_config_id: Identifier | None = None

    @model_validator(mode="after")
    def _is_about_somebody(self) -> WorkerFilter:
        if (self.task_queue_id is None) == (self.provisioner_id is None):
            raise ValueError("taskQueueId or provisionerId must be given, and not both")
        return self


class QuarantineWorkersRequest(QuarantineWorkerRequest):
    """Until when, or just whether, tasks are kept away from whom."""

    filter: WorkerFilter
    quarantine_info: Info = ""
    limit: Annotated[int, Field(ge=1, le=MOST_AT_ONCE, strict=True)] = 25
    continuation_token: Token | None = None
    dry_run: StrictBool = False


class ChangedWorker(Answer):
    """A worker that was gone through; ``changed`` is false where it was as wished already."""

    task_queue_id: PoolId
    worker_group: Identifier
    worker_id: Identifier
    state: StateName
    changed: bool


class QuarantineWorkersResponse(Answer):
    """What was done so far; with a token there is more to do, not before ``retryAfter`` seconds.

    ``refused`` are those among the wanted whose quarantine the caller may not change.
    """

    workers: list[ChangedWorker]
    refused: int
    continuation_token: str | None = None
    retry_after: int | None = None
