"""The wire: bodies of the registry, as Taskcluster's queue has them, and some of our own.

Fields that are unknown are left out, never null: a worker that was only spoken of has no
``firstClaim``.  Where to read next: ``registry_views`` and ``declarations``, which use them.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StrictBool, StringConstraints, model_validator

from worker_manager.api.action_schemas import ActionsRequest, DeclaredAction  # noqa: TC001 - too
from worker_manager.api.schemas import Slugid  # noqa: TC001 - pydantic reads it
from worker_manager.api.validation import Answer, Description, Identifier, Moment, PoolId, Wire

Stability = Literal["experimental", "stable", "deprecated"]
Info = Annotated[str, StringConstraints(max_length=4_000)]

MOST_METADATA = 64 * 1024
"""Bytes of a payload schema, and of a documentation."""
PRINTABLE = r"^[^\x00-\x08\x0b\x0c\x0e-\x1f]*$"
"""Text with its lines, without control characters: each of those takes six bytes when stored."""
MOST_EXTRA = 16 * 1024
"""Bytes of what a worker's declaration may say besides."""
MOST_OBSERVATIONS = 100


LATEST = datetime(9900, 1, 1, tzinfo=UTC)
"""No time may be later, so that what follows from it is a time as well."""


def _on_the_calendar(moment: datetime) -> datetime:
    if moment > LATEST:
        raise ValueError("is too far off")
    return moment


Time = Annotated[Moment, AfterValidator(_on_the_calendar)]


def _at_most(most: int) -> Any:
    def check(value: Any) -> Any:
        text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
        if (size := len(text.encode("utf-8", "surrogatepass"))) > most:
            raise ValueError(f"takes {size} bytes, over {most}")
        return value

    return AfterValidator(check)


class Something(Wire):
    """A body of which every field may be missing, but not all."""

    @model_validator(mode="after")
    def _is_something(self) -> Something:
        if not self.model_fields_set:
            raise ValueError("must say something")
        return self


class ProvisionerRequest(Something):
    """What is said of a provisioner; what is left out stays, a null ``expires`` is the usual."""

    stability: Stability = "experimental"
    description: Description = ""
    expires: Time | None = None
    actions: ActionsRequest = Field(default=[])


class WorkerTypeRequest(ProvisionerRequest):
    """What is said of a worker type; ``hardware`` if its workers are machines that stay."""

    hardware: StrictBool = False


class WorkerRequest(Something):
    """What is said of a worker."""

    expires: Time | None = None
    boot_time: Time | None = None
    extra: Annotated[dict[str, Any], _at_most(MOST_EXTRA)] = Field(default={})
    capacity: Annotated[int, Field(ge=1, le=10_000, strict=True)] | None = None
    actions: ActionsRequest = Field(default=[])


class MetadataRequest(Something):
    """What a worker type is for (Markdown), and what its tasks' payload must look like."""

    payload_schema: Annotated[dict[str, Any], _at_most(MOST_METADATA)] = Field(default={})
    documentation: Annotated[str, StringConstraints(pattern=PRINTABLE), _at_most(MOST_METADATA)] = (
        ""
    )


class QuarantineWorkerRequest(Wire):
    """Until when, or just whether, tasks are kept away; exactly one of both."""

    quarantine_until: Time | None = None
    quarantined: StrictBool | None = None
    quarantine_info: Info = ""

    @model_validator(mode="after")
    def _is_one(self) -> QuarantineWorkerRequest:
        if (self.quarantine_until is None) == (self.quarantined is None):
            raise ValueError("quarantineUntil or quarantined must be given, and not both")
        return self


class ObservationRequest(Wire):
    """One thing that a queue saw; a run is named but for ``idle``, its end only for ``resolve``."""

    task_queue_id: PoolId
    worker_group: Identifier
    worker_id: Identifier
    kind: Literal["idle", "claim", "reclaim", "resolve"]
    at: Time
    task_id: Slugid | None = None
    run_id: Annotated[int, Field(ge=0, le=1000, strict=True)] | None = None
    state: Literal["completed", "failed", "exception"] | None = None
    reason: Annotated[str, StringConstraints(pattern=r"^[-a-z]{1,64}$")] | None = None


class ObservationsRequest(Wire):
    """What a queue saw, in any order."""

    observations: Annotated[
        list[ObservationRequest], Field(min_length=1, max_length=MOST_OBSERVATIONS)
    ]


class ObservationsResponse(Answer):
    """How many were taken in."""

    observed: int


class Shown(Answer):
    """What provisioners and worker types have in common."""

    stability: Stability
    description: Description
    expires: Moment
    last_date_active: Moment | None = None


class ProvisionerResponse(Shown):
    """A provisioner, with what is declared there."""

    provisioner_id: Identifier
    actions: list[DeclaredAction]


class MayBeClosed(Answer):
    """What is told of a task queue while it gives out no tasks: until when, who said so, why."""

    closed_until: Moment | None = None
    closed_at: Moment | None = None
    closed_by: str | None = None
    closed_info: str | None = None


class TaskQueueResponse(Shown, MayBeClosed):
    """A worker type by the name of its task queue; ``closedUntil`` while it gives no tasks."""

    task_queue_id: PoolId
    hardware: bool = False


class WorkerTypeResponse(TaskQueueResponse):
    """A worker type; ``actions``, not in lists, are those that are done to all of it."""

    provisioner_id: Identifier
    worker_type: Identifier
    actions: list[DeclaredAction] | None = None


class ListProvisionersResponse(Answer):
    """A page of provisioners."""

    provisioners: list[ProvisionerResponse]
    continuation_token: str | None = None


class ListWorkerTypesResponse(Answer):
    """A page of one provisioner's worker types."""

    worker_types: list[WorkerTypeResponse]
    continuation_token: str | None = None


class ListTaskQueuesResponse(Answer):
    """A page of all worker types."""

    task_queues: list[TaskQueueResponse]
    continuation_token: str | None = None


class RunName(Answer):
    """One run of a task."""

    task_id: Slugid
    run_id: int


class RecentTask(RunName):
    """A run that a worker took, when, and what became of it.

    ``state`` is absent while it runs, and ``unknown`` where its queue has forgotten the task.
    """

    claimed: Moment
    state: str | None = None
    reason_resolved: str | None = None
    resolved: Moment | None = None


class WorkerItem(Answer):
    """A worker in a list; ``quarantineUntil`` only while it is in force."""

    worker_group: Identifier
    worker_id: Identifier
    first_claim: Moment | None = None
    last_date_active: Moment | None = None
    latest_task: RunName | None = None
    quarantine_until: Moment | None = None


class ListQueueWorkersResponse(Answer):
    """A page of one type's workers."""

    workers: list[WorkerItem]
    continuation_token: str | None = None


class QuarantineDetail(Answer):
    """Somebody quarantined a worker, or released it."""

    client_id: str
    updated_at: Moment
    quarantine_until: Moment
    quarantine_info: str


class QueueWorkerResponse(Answer):
    """One worker, as it was seen and spoken of."""

    provisioner_id: Identifier
    worker_type: Identifier
    task_queue_id: PoolId
    worker_group: Identifier
    worker_id: Identifier
    recent_tasks: list[RecentTask]
    actions: list[DeclaredAction]
    expires: Moment
    quarantine_details: list[QuarantineDetail]
    quarantine_until: Moment | None = None
    first_claim: Moment | None = None
    last_date_active: Moment | None = None
    boot_time: Moment | None = None
    capacity: int | None = None
    extra: dict[str, Any] | None = None


class QuarantinesResponse(Answer):
    """The latest changes of one worker's quarantine, the newest first."""

    quarantines: list[QuarantineDetail]


class MetadataResponse(Answer):
    """Metadata of a worker type, and who set it."""

    payload_schema: dict[str, Any]
    documentation: str
    updated: Moment
    updated_by: str


class WorkerGroupResponse(Answer):
    """A worker group of one type."""

    worker_group: Identifier
    first_date_active: Moment
    last_date_active: Moment


class WorkerGroupsResponse(Answer):
    """A page of the worker groups of one type."""

    worker_groups: list[WorkerGroupResponse]
    continuation_token: str | None = None
