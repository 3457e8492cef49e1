"""The wire: answers that are views, counted or merged from what several places know.

Where to read next: ``stats``, ``error_stats`` and ``queue_workers``, which make them; ``schemas``
(every other body).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from worker_manager.api.schemas import Counts, Slugid
from worker_manager.api.validation import Answer, Description, Identifier, Moment, PoolId
from worker_manager.core.model import State  # noqa: TC001 - pydantic reads it

Number = Annotated[int, Field(ge=0)]
Name = Annotated[str, StringConstraints(max_length=128)]


class LaunchConfigStats(Counts):
    """Counts of one launch config's workers."""

    worker_pool_id: PoolId
    launch_config_id: Identifier


class WorkerPoolStats(Answer):
    """Counts of one pool's workers by launch config."""

    launch_config_stats: list[LaunchConfigStats]


class PoolStats(Counts):
    """Counts of one pool's workers."""

    worker_pool_id: PoolId


class WorkerPoolsStatsList(Answer):
    """A page of pools with their counts."""

    worker_pools_stats: list[PoolStats]
    continuation_token: str | None = None


class ErrorTotals(Answer):
    """How many errors there were, by day and hour (their beginnings) and by what they say."""

    total: Number
    daily: dict[str, Number]
    hourly: dict[str, Number]
    title: dict[str, Number]
    code: dict[str, Number]
    worker_pool: dict[str, Number]
    launch_config: dict[str, Number]


class WorkerPoolErrorStats(Answer):
    """Totals of one pool, or of all where the pool's id is empty."""

    worker_pool_id: str
    totals: ErrorTotals


class ErrorGroup(Answer):
    """Errors of a pool that are alike, and the newest of them."""

    kind: str
    title: str
    code: str
    launch_config_id: Identifier | None = None
    first_seen: Moment
    last_seen: Moment
    count: Number
    error_id: Slugid
    description: Description


class WorkerPoolErrorGroupList(Answer):
    """A page of groups, in an order of no meaning that does not change."""

    error_groups: list[ErrorGroup]
    continuation_token: str | None = None


class TaskRun(Answer):
    """A run of a task that a worker took."""

    task_id: Slugid
    run_id: int = Field(ge=0, le=1000)


class QueueFacts(Answer):
    """What a list of workers says of one; what the queue does not know is left out."""

    worker_group: Identifier
    worker_id: Identifier
    worker_pool_id: str | None = None
    state: State | Literal["standalone"] | None = None
    capacity: Number | None = None
    provider_id: Identifier | None = None
    launch_config_id: Identifier | None = None
    first_claim: Moment | None = None
    last_date_active: Moment | None = None
    quarantine_until: Moment | None = None


class ListedWorker(QueueFacts):
    """One worker in a list."""

    latest_task: TaskRun | None = None


class ListWorkersResponse(Answer):
    """A page of workers."""

    workers: list[ListedWorker]
    continuation_token: str | None = None


class QuarantineChange(Answer):
    """Who set a worker's quarantine, when, until when and why."""

    client_id: str
    updated_at: Moment
    quarantine_until: Moment
    quarantine_info: str


class WorkerResponse(QueueFacts):
    """One worker; ``expires`` is when the queue forgets it."""

    provisioner_id: str
    worker_type: str
    recent_tasks: list[TaskRun]
    expires: Moment
    quarantine_details: list[QuarantineChange]
