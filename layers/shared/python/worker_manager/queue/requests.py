"""What callers may send: shapes, limits and defaults of the queue's request bodies.

Anything else is an ``InputInvalidError`` that names the field.  Limits are Taskcluster's, but for
two of our own: no dependencies yet, and 128 KiB a definition, so that the 32 tasks of one
``claimWork`` fit into one response.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)
from pydantic.alias_generators import to_camel

from worker_manager.core.errors import InputInvalidError
from worker_manager.core.ids import IDENTIFIER, SLUGID, is_pool_id, matches
from worker_manager.core.model import Json, canonical_json
from worker_manager.core.moments import from_wire, is_date_time, to_wire
from worker_manager.core.scopes import AllOf, AnyOf
from worker_manager.queue.tasks import EXCEPTIONS, PRIORITIES, Resolution

MAX_DEFINITION_BYTES = 128 * 1024
MAX_DEADLINE = timedelta(days=5)
CLOCK_SKEW = timedelta(minutes=15)
DEFAULT_EXPIRES = timedelta(days=365)
"""After the deadline, when a task says nothing else."""

LATEST = datetime.max.replace(tzinfo=UTC) - DEFAULT_EXPIRES - timedelta(days=1)
"""No time may be later, so that what follows from it is a time as well."""


def _as_text(value: Any) -> Any:
    """A date-time as JSON has it: no number, which would be taken for seconds since 1970."""
    if isinstance(value, datetime) or is_date_time(value):
        return value
    raise ValueError("must be a date-time such as 2026-11-30T13:31:00.000Z")


def _in_utc(moment: datetime) -> datetime:
    try:
        moment = moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("is beyond the calendar") from None
    if moment > LATEST:
        raise ValueError("is too far off")
    return moment


Moment = Annotated[AwareDatetime, AfterValidator(_in_utc), BeforeValidator(_as_text)]
Identifier = Annotated[str, StringConstraints(pattern=IDENTIFIER)]
Slugid = Annotated[str, StringConstraints(pattern=SLUGID)]
Scope = Annotated[str, StringConstraints(pattern=r"^[ -~]*$")]
Text255 = Annotated[str, StringConstraints(max_length=255)]


class _Body(BaseModel):
    """Camel case on the wire, and nothing unknown."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel)


class TaskMetadata(_Body):
    """For people: what the task is and whose."""

    name: Text255
    description: Annotated[str, StringConstraints(max_length=32_768)]
    owner: Text255
    source: Annotated[str, StringConstraints(max_length=4_096)]


class CreateTask(_Body):
    """The body of ``createTask``; the queue is named in one of two ways."""

    task_queue_id: str | None = None
    provisioner_id: str | None = None
    worker_type: str | None = None
    scheduler_id: Identifier = "-"
    project_id: Annotated[str, StringConstraints(min_length=1, max_length=500)] = "none"
    task_group_id: Slugid | None = None
    dependencies: Annotated[list[Slugid], Field(max_length=0)] = []
    requires: Literal["all-completed", "all-resolved"] = "all-completed"
    routes: Annotated[
        list[Annotated[str, StringConstraints(min_length=1, max_length=249)]],
        Field(max_length=64),
    ] = []
    priority: Literal[
        "highest", "very-high", "high", "medium", "low", "very-low", "lowest", "normal"
    ] = "lowest"
    retries: Annotated[int, Field(ge=0, le=49, strict=True)] = 5
    created: Moment
    deadline: Moment
    expires: Moment | None = None
    scopes: list[Scope] = []
    payload: dict[str, Any]
    metadata: TaskMetadata
    tags: dict[str, Annotated[str, StringConstraints(max_length=4_096)]] = {}
    extra: dict[str, Any] = {}


class ClaimTask(_Body):
    """The body of ``claimTask``."""

    worker_group: Identifier
    worker_id: Identifier


class ClaimWork(ClaimTask):
    """The body of ``claimWork``."""

    tasks: Annotated[int, Field(ge=1, le=32, strict=True)] = 1


class ReportException(_Body):
    """The body of ``reportException``."""

    reason: str


_BodyT = TypeVar("_BodyT", bound=_Body)


def parse(shape: type[_BodyT], body: Json) -> _BodyT:
    """The body as ``shape``; ``InputInvalidError`` names the first field that is wrong."""
    try:
        return shape.model_validate(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "body"
        raise InputInvalidError(field, first["msg"]) from error


def parse_definition(task_id: str, body: Json) -> dict[str, Any]:
    """A task's definition on the wire, complete with its defaults.

    The same body gives the same definition, whenever it is sent.
    """
    task = parse(CreateTask, body)
    queue_id = _queue_of(task)
    provisioner_id, _, worker_type = queue_id.partition("/")
    expires = task.expires or task.deadline + DEFAULT_EXPIRES
    _require(task.created <= task.deadline, "deadline", "is before created")
    _require(task.deadline <= expires, "expires", "is before the deadline")
    definition = task.model_dump(mode="json", by_alias=True) | {
        "taskQueueId": queue_id,
        "provisionerId": provisioner_id,
        "workerType": worker_type,
        "taskGroupId": task.task_group_id or task_id,
        "priority": "lowest" if task.priority == "normal" else task.priority,
        "created": to_wire(task.created),
        "deadline": to_wire(task.deadline),
        "expires": to_wire(expires),
    }
    size = len(canonical_json(definition).encode())
    _require(size <= MAX_DEFINITION_BYTES, "body", f"is {size} bytes, over 131072")
    return definition


def check_deadline(deadline: str, now: datetime) -> None:
    """Refuse a new task whose deadline is past, or further off than five days."""
    moment = from_wire(deadline)
    _require(moment > now - CLOCK_SKEW, "deadline", "is past")
    _require(moment <= now + MAX_DEADLINE + CLOCK_SKEW, "deadline", "is over 5 days off")


def parse_exception(body: Json) -> Resolution:
    """How a run ends that a worker reports as an exception."""
    reason = parse(ReportException, body).reason
    _require(reason in EXCEPTIONS, "reason", f"is not one of {', '.join(EXCEPTIONS)}")
    return EXCEPTIONS[reason]


def require_queue_id(text: str) -> str:
    """``text`` if it names a task queue."""
    _require(is_pool_id(text), "taskQueueId", "is malformed")
    return text


def require_slugid(task_id: str) -> None:
    """Refuse what cannot be a task's id."""
    _require(matches(SLUGID, task_id), "taskId", "is malformed")


def require_limit(limit: int) -> None:
    """Refuse a page size that Taskcluster does not know."""
    _require(1 <= limit <= 1000, "limit", "is not from 1 to 1000")


def scopes_to_create(definition: Json) -> AllOf:
    """What a caller must hold to create this task: all that the task may do, and more.

    A task is never given a scope that its creator lacks.  A higher priority's scope serves too.
    """
    queue_id = definition["taskQueueId"]
    enough = PRIORITIES[: PRIORITIES.index(definition["priority"]) + 1]
    return AllOf(
        (
            *definition["scopes"],
            *(f"queue:route:{route}" for route in definition["routes"]),
            f"queue:create-task:project:{definition['projectId']}",
            f"queue:scheduler-id:{definition['schedulerId']}",
            AnyOf(tuple(f"queue:create-task:{priority}/{queue_id}" for priority in enough)),
        )
    )


def scopes_to_cancel(task_id: str, definition: Json) -> AnyOf:
    """What a caller must hold to cancel this task."""
    name = f"{definition['schedulerId']}/{definition['taskGroupId']}/{task_id}"
    project_id = definition["projectId"]
    return AnyOf((f"queue:cancel-task:{name}", f"queue:cancel-task-in-project:{project_id}"))


def scopes_to_claim(definition: Json, group: str, worker_id: str) -> AllOf:
    """What this worker must hold to claim just this task."""
    queue_id = definition["taskQueueId"]
    return AllOf((f"queue:claim-task:{queue_id}", f"queue:worker-id:{group}/{worker_id}"))


def _queue_of(task: CreateTask) -> str:
    parts = f"{task.provisioner_id}/{task.worker_type}"
    queue_id = task.task_queue_id or parts
    _require(is_pool_id(queue_id), "taskQueueId", "is malformed or missing")
    given_twice = task.task_queue_id and (task.provisioner_id or task.worker_type)
    _require(not given_twice or queue_id == parts, "taskQueueId", "contradicts provisionerId")
    return queue_id


def _require(condition: object, field: str, message: str) -> None:
    if not condition:
        raise InputInvalidError(field, message)
