"""What events look like, on our bus and as messages of the reference's exchanges.

A message (``Pulse…Message``) is the reference's, to the field.  The event of the same name on the
bus says in addition why, and carries an id by which a repeat is recognised.  Events are made by
``core.events``, without these models: they tell others, and tests, what to expect.
Where to read next: ``documents.references``, which publishes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from worker_manager.api.schemas import Slugid  # noqa: TC001 - pydantic reads it
from worker_manager.api.validation import (
    Answer,
    Identifier,
    Moment,
    PoolId,
    ShortText,
)
from worker_manager.core import events

if TYPE_CHECKING:
    from collections.abc import Mapping


class Event(Answer):
    """What every event on the bus says."""

    event_id: str = Field(pattern=r"^[0-9a-f]{32}$")
    reason: str
    decision_id: str | None = None


class PulseWorkerPoolMessage(Answer):
    """A worker pool was defined."""

    worker_pool_id: PoolId
    provider_id: Identifier
    previous_provider_id: Identifier | None = None


class WorkerPoolEvent(Event, PulseWorkerPoolMessage):
    """A worker pool was defined, or is defined differently."""


class PulseWorkerPoolErrorMessage(Answer):
    """Something went wrong for a worker pool."""

    worker_pool_id: PoolId
    provider_id: Identifier
    error_id: Slugid
    kind: ShortText
    title: ShortText
    timestamp: Moment
    worker_group: Identifier | None = None
    worker_id: Identifier | None = None
    launch_config_id: Identifier | None = None


class WorkerPoolErrorEvent(Event, PulseWorkerPoolErrorMessage):
    """Something went wrong for a worker pool; what exactly, its list of errors tells."""


class PulseWorkerMessage(Answer):
    """A worker came into another state."""

    worker_pool_id: PoolId
    provider_id: Identifier
    worker_group: Identifier
    worker_id: Identifier
    capacity: int = Field(ge=1)
    timestamp: Moment
    launch_config_id: Identifier | None = None


class PulseWorkerRemovedMessage(PulseWorkerMessage):
    """A worker is being taken away."""

    reason: str


class WorkerEvent(Event, PulseWorkerMessage):
    """A worker came into another state."""


class PulseWorkerStoppingMessage(PulseWorkerMessage):
    """A worker is to stop."""

    reason: str


class PulseWorkerErrorMessage(PulseWorkerPoolErrorMessage):
    """Something went wrong with one worker."""

    worker_group: Identifier
    worker_id: Identifier
    reason: str


class WorkerErrorEvent(Event, PulseWorkerErrorMessage):
    """Something went wrong with one worker."""


class PulseLaunchConfigMessage(Answer):
    """Something changed for a launch config."""

    worker_pool_id: PoolId
    provider_id: Identifier
    launch_config_id: Identifier


class LaunchConfigEvent(Event, PulseLaunchConfigMessage):
    """Something changed for a launch config."""


class PulseLaunchConfigPauseMessage(PulseLaunchConfigMessage):
    """A launch config is not to be used for a while, or is to be used again."""

    timestamp: Moment | None = None
    until: Moment | None = None
    reason: str


class LaunchConfigPauseEvent(Event, PulseLaunchConfigPauseMessage):
    """A launch config is not to be used for a while, or is to be used again."""


class PulseQuarantineMessage(Answer):
    """A worker gets no tasks for a while, or gets some again, maybe as its time is over."""

    worker_pool_id: PoolId
    worker_group: Identifier
    worker_id: Identifier
    timestamp: Moment
    quarantine_until: Moment | None = None
    client_id: str | None = None
    reason: str


class QuarantineEvent(Event, PulseQuarantineMessage):
    """A worker gets no tasks for a while, or gets some again."""


class PulseDowntimeMessage(Answer):
    """A task queue gives out no tasks for a while, or gives out some again."""

    worker_pool_id: PoolId
    timestamp: Moment
    closed_until: Moment | None = None
    client_id: str | None = None
    reason: str


class DowntimeEvent(Event, PulseDowntimeMessage):
    """A task queue gives out no tasks for a while, or gives out some again."""


class PulseActionMessage(Answer):
    """Somebody wants an action done, to a provisioner, a worker type or a worker."""

    run_id: Slugid
    action: str
    provisioner_id: Identifier
    requested_by: str
    reason: str
    timestamp: Moment
    worker_pool_id: PoolId | None = None
    worker_group: Identifier | None = None
    worker_id: Identifier | None = None


class PulseActionResolvedMessage(PulseActionMessage):
    """A run of an action is over."""

    state: Literal["succeeded", "failed", "timed-out", "cancelled"]
    message: str


class ActionRequestedEvent(Event, PulseActionMessage):
    """Somebody wants an action done."""


class ActionResolvedEvent(Event, PulseActionResolvedMessage):
    """A run of an action is over."""


class PulseMachineMessage(Answer):
    """A machine is in another condition than before."""

    worker_pool_id: PoolId
    worker_group: Identifier
    worker_id: Identifier
    timestamp: Moment
    verdict: str
    previous: str
    reason: str


class MachineEvent(Event, PulseMachineMessage):
    """A machine is in another condition than before."""


class PulseMachinesMessage(Answer):
    """So many machines of a pool are bad that nothing is done by itself, or few are again."""

    worker_pool_id: PoolId
    timestamp: Moment
    machines: int
    bad: int
    reason: str


class MachinesEvent(Event, PulseMachinesMessage):
    """So many machines of a pool are bad that nothing is done by itself, or few are again."""


MESSAGES: Mapping[str, type[Answer]] = {
    events.POOL_CREATED: PulseWorkerPoolMessage,
    events.POOL_UPDATED: PulseWorkerPoolMessage,
    events.POOL_ERROR: PulseWorkerPoolErrorMessage,
    events.WORKER_REQUESTED: PulseWorkerMessage,
    events.WORKER_RUNNING: PulseWorkerMessage,
    events.WORKER_STOPPED: PulseWorkerMessage,
    events.WORKER_REMOVED: PulseWorkerRemovedMessage,
    events.LAUNCH_CONFIG_CREATED: PulseLaunchConfigMessage,
    events.LAUNCH_CONFIG_UPDATED: PulseLaunchConfigMessage,
    events.LAUNCH_CONFIG_ARCHIVED: PulseLaunchConfigMessage,
    events.WORKER_ERROR: PulseWorkerErrorMessage,
    events.WORKER_STOPPING: PulseWorkerStoppingMessage,
    events.LAUNCH_CONFIG_PAUSED: PulseLaunchConfigPauseMessage,
    events.LAUNCH_CONFIG_RESUMED: PulseLaunchConfigPauseMessage,
    events.WORKER_QUARANTINED: PulseQuarantineMessage,
    events.WORKER_RELEASED: PulseQuarantineMessage,
    events.TASK_QUEUE_CLOSED: PulseDowntimeMessage,
    events.TASK_QUEUE_OPENED: PulseDowntimeMessage,
    events.ACTION_REQUESTED: PulseActionMessage,
    events.ACTION_RESOLVED: PulseActionResolvedMessage,
    events.MACHINE_VERDICT: PulseMachineMessage,
    events.MACHINES_HELD: PulseMachinesMessage,
    events.MACHINES_FREED: PulseMachinesMessage,
}
"""Exchange → its messages."""

EVENTS: Mapping[str, type[Event]] = {
    events.POOL_CREATED: WorkerPoolEvent,
    events.POOL_UPDATED: WorkerPoolEvent,
    events.POOL_ERROR: WorkerPoolErrorEvent,
    events.WORKER_REQUESTED: WorkerEvent,
    events.WORKER_RUNNING: WorkerEvent,
    events.WORKER_STOPPED: WorkerEvent,
    events.WORKER_REMOVED: WorkerEvent,
    events.LAUNCH_CONFIG_CREATED: LaunchConfigEvent,
    events.LAUNCH_CONFIG_UPDATED: LaunchConfigEvent,
    events.LAUNCH_CONFIG_ARCHIVED: LaunchConfigEvent,
    events.WORKER_ERROR: WorkerErrorEvent,
    events.WORKER_STOPPING: WorkerEvent,
    events.LAUNCH_CONFIG_PAUSED: LaunchConfigPauseEvent,
    events.LAUNCH_CONFIG_RESUMED: LaunchConfigPauseEvent,
    events.WORKER_QUARANTINED: QuarantineEvent,
    events.WORKER_RELEASED: QuarantineEvent,
    events.TASK_QUEUE_CLOSED: DowntimeEvent,
    events.TASK_QUEUE_OPENED: DowntimeEvent,
    events.ACTION_REQUESTED: ActionRequestedEvent,
    events.ACTION_RESOLVED: ActionResolvedEvent,
    events.MACHINE_VERDICT: MachineEvent,
    events.MACHINES_HELD: MachinesEvent,
    events.MACHINES_FREED: MachinesEvent,
}
"""Name → ``detail`` of the event on the bus."""
