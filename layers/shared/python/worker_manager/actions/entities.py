"""Actions and their runs, as values.

An action is what somebody declared may be done with a provisioner, a worker type or a worker; a
run is one time that it is done to one of them.  A run keeps the action as it was when it was asked
for.  Read next: ``declared``, which says what may be declared; ``course``, how runs go on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from worker_manager.core.lifecycle import OURSELVES
from worker_manager.core.model import WorkerKey

if TYPE_CHECKING:
    from datetime import datetime

    from worker_manager.core.model import Json

COOLDOWN = timedelta(seconds=600)
"""From the end of a run to the next of the same action on the same target, unless it says."""
TIMEOUT = timedelta(seconds=600)
"""From when a run is first taken up to when it is given up, unless its action says."""
MOST_AT_ONCE = 5
"""Runs of one action that are under way within a worker type at once, unless it says."""


class Context(StrEnum):
    """What an action is done to."""

    PROVISIONER = "provisioner"
    WORKER_TYPE = "worker-type"
    WORKER = "worker"


class Level(StrEnum):
    """Where an action was declared; from the widest to the narrowest."""

    DEPLOYMENT = "deployment"
    """Nowhere: this service has it."""
    PROVISIONER = "provisioner"
    WORKER_TYPE = "worker-type"
    WORKER = "worker"


class Kind(StrEnum):
    """Who does it."""

    BUILTIN = "builtin"
    """This service."""
    HTTP = "http"
    """Another service, with a request that we sign."""
    AGENT = "agent"
    """An agent beside the machines, which asks us what there is to do."""


class Operation(StrEnum):
    """What this service can do by itself."""

    KILL = "kill"
    REBOOT = "reboot"
    QUARANTINE = "quarantine"
    RELEASE = "release"


@dataclass(frozen=True, slots=True)
class Target:
    """A provisioner, one of its worker types, or one of its workers."""

    provisioner_id: str
    worker_type: str | None = None
    worker_group: str | None = None
    worker_id: str | None = None

    @classmethod
    def of_worker(cls, key: WorkerKey) -> Target:
        """A worker."""
        provisioner_id, _, worker_type = key.pool_id.partition("/")
        return cls(provisioner_id, worker_type, key.group, key.worker_id)

    @property
    def context(self) -> Context:
        """What it is."""
        if self.worker_id is not None:
            return Context.WORKER
        return Context.PROVISIONER if self.worker_type is None else Context.WORKER_TYPE

    @property
    def queue_id(self) -> str | None:
        """The task queue of a worker type or worker."""
        return None if self.worker_type is None else f"{self.provisioner_id}/{self.worker_type}"

    @property
    def key(self) -> WorkerKey | None:
        """The worker, if it is one."""
        if self.queue_id is None or self.worker_group is None or self.worker_id is None:
            return None
        return WorkerKey(self.queue_id, self.worker_group, self.worker_id)

    def __str__(self) -> str:
        """Its names with slashes, as in scopes."""
        names = (self.provisioner_id, self.worker_type, self.worker_group, self.worker_id)
        return "/".join(name for name in names if name is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """What may be done, as declared.

    Of ``http`` there are ``url`` (with placeholders) and ``method``; of ``builtin`` the
    ``operation``; of ``agent`` the ``agent_id``, ``operation`` and ``params``.
    """

    name: str
    title: str
    context: Context
    description: str = ""
    """Markdown."""
    kind: Kind
    url: str | None = None
    method: str | None = None
    operation: str | None = None
    agent_id: str | None = None
    params: Json = field(default_factory=dict)
    required_scopes: tuple[str, ...] = ()
    """What a caller needs besides the scope of the action; just these sign an ``http`` request."""
    is_confirmed: bool = True
    """Whether people should be asked whether they are sure."""
    is_bulk: bool = False
    """Whether it may be done to many at once."""
    cooldown: timedelta = COOLDOWN
    timeout: timedelta = TIMEOUT
    most_at_once: int = MOST_AT_ONCE


@dataclass(frozen=True, slots=True)
class Offered:
    """An action that a target has, and where it was declared."""

    action: Action
    level: Level
    refusal: str | None = None
    """Why it cannot be done to this target; ``None`` if it can."""


class RunState(StrEnum):
    """How far a run is.  The last four are final."""

    QUEUED = "queued"
    CLAIMED = "claimed"
    """Somebody took it up, and has not begun."""
    RUNNING = "running"
    """Something was begun; also while it is waited for that the worker is seen again."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed-out"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """Whether nothing follows."""
        return self in _FINAL


_FINAL = frozenset({RunState.SUCCEEDED, RunState.FAILED, RunState.TIMED_OUT, RunState.CANCELLED})


class Result(StrEnum):
    """How one attempt of a run ended."""

    OK = "ok"
    """It did what it should."""
    NO_CHANGE = "no-change"
    """It was done, and the machine did not do what it should have."""
    ERROR = "error"
    """It could not be done."""
    UNKNOWN = "unknown"
    """Whoever began it was gone before it told; it may have been done, and is not done again."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One thing that was tried; written down before it is."""

    number: int
    """From 1."""
    method: str
    """As an agent calls it (``ssh``, ``redfish-reset``), or the operation."""
    started: datetime
    ended: datetime | None = None
    result: Result | None = None
    message: str = ""


@dataclass(frozen=True, slots=True)
class Lease:
    """Who works on a run, and until when nobody else does."""

    lease_id: str
    holder: str
    """An agent's id, or ``worker-manager``."""
    until: datetime


@dataclass(frozen=True, slots=True)
class LogLine:
    """Something that was said of a run."""

    at: datetime
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One time that an action is done."""

    run_id: str
    """A slugid that whoever asked for it chose: asking again with it is the same run."""
    action: Action
    level: Level
    target: Target
    requested: datetime
    requested_by: str
    """A client id; ``worker-manager`` for what was decided by itself."""
    reason: str = ""
    params: Json = field(default_factory=dict)
    bulk_id: str | None = None
    """The bulk run that it is part of."""
    was_silent: bool = False
    """Whether the worker had not been heard of for long when this was asked for: should it come
    back by itself, nothing more is done."""
    state: RunState = RunState.QUEUED
    taken: datetime | None = None
    """When it was first taken up."""
    lease: Lease | None = None
    attempts: tuple[Attempt, ...] = ()
    verified: datetime | None = None
    """Since when it is only waited for that the worker is seen again."""
    ended: datetime | None = None
    message: str = ""
    """How it ended, in words."""
    log: tuple[LogLine, ...] = ()
    version: int = 0

    @property
    def open_attempt(self) -> Attempt | None:
        """The attempt that was begun and whose end nobody told yet."""
        last = self.attempts[-1] if self.attempts else None
        return last if last is not None and last.result is None else None

    @property
    def is_under_way(self) -> bool:
        """Whether somebody is at it, and it counts among those that may be so at once."""
        taken = self.state in (RunState.CLAIMED, RunState.RUNNING)
        return taken and self.verified is None

    @property
    def is_reboot(self) -> bool:
        """Whether it is done only when the worker is seen again."""
        is_worker = self.target.context is Context.WORKER
        return is_worker and self.action.operation == Operation.REBOOT

    @property
    def taker(self) -> str:
        """Who may take it up: an agent by its id, or ``OURSELVES``."""
        return self.action.agent_id or OURSELVES
