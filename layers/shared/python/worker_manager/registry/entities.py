"""What the registry knows, as values.

Observed facts (``first_seen`` and ``last_seen``) come from a queue, declarations from people;
neither makes up the other.  Read next: ``windows``, which says what of it is shown, and
``changes``, which say how a worker changes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime, timedelta

    from worker_manager.core.activity import Downtime
    from worker_manager.core.model import Json, WorkerKey

Stability = Literal["experimental", "stable", "deprecated"]


@dataclass(frozen=True, slots=True)
class Claim:
    """A run that a worker took, and what became of it."""

    task_id: str
    run_id: int
    claimed: datetime
    state: str | None = None
    """How it ended (``completed``, ``failed`` or ``exception``); ``None`` while it runs.

    ``unknown`` if its queue has forgotten it before anybody was told; then nothing says when.
    """
    reason: str | None = None
    """Why, as in Taskcluster's ``reasonResolved``."""
    resolved: datetime | None = None

    @property
    def run(self) -> tuple[str, int]:
        """Which run it is."""
        return self.task_id, self.run_id


@dataclass(frozen=True, slots=True)
class Outcomes:
    """How the runs of a worker ended on one day, in numbers."""

    completed: int = 0
    failed: int = 0
    exceptions: int = 0
    """Those that the worker is to blame for; cancelled and overdue tasks are not among them."""
    others: int = 0
    """Exceptions that it is not to blame for."""


@dataclass(frozen=True, slots=True)
class RegistryWorker:
    """One worker, seen or only spoken of."""

    key: WorkerKey
    created: datetime
    """When the registry first heard of it, from a queue or from a person."""
    first_seen: datetime | None = None
    last_seen: datetime | None = None
    declared: datetime | None = None
    """When somebody last said something of it, which shows it for as long as a sighting does."""
    first_claim: datetime | None = None
    """Its first call for work, whether or not there was any."""
    claims: tuple[Claim, ...] = ()
    """Its latest ones, the oldest first."""
    outcomes: Mapping[str, Outcomes] = field(default_factory=dict)
    """By day (``2026-11-30``), the last week of them."""
    explicit_expires: datetime | None = None
    boot_time: datetime | None = None
    extra: Json = field(default_factory=dict)
    capacity: int | None = None
    quarantine_until: datetime | None = None
    quarantine_info: str = ""
    quarantined_by: str | None = None
    actions: tuple[Json, ...] = ()
    """What is declared that may be done with it, as ``actions.declared`` writes it down."""
    watched_until: datetime | None = None
    """Until when its calls are noted nearly all: somebody waits for it to come back."""
    gone: datetime | None = None
    """Since when its machine no longer exists; ``None`` as long as nobody said so."""
    version: int = 0

    @property
    def last_active(self) -> datetime | None:
        """When it was last seen or declared; ``None`` if it was neither."""
        signs = (self.last_seen, self.declared)
        return max((sign for sign in signs if sign is not None), default=None)

    @property
    def last_claim(self) -> datetime | None:
        """When it last took a task."""
        return max((claim.claimed for claim in self.claims), default=None)

    def is_quarantined(self, now: datetime) -> bool:
        """Whether it gets no tasks at ``now``."""
        return self.quarantine_until is not None and self.quarantine_until > now


@dataclass(frozen=True, slots=True)
class Declaration:
    """What people said of a provisioner or worker type."""

    description: str = ""
    stability: Stability = "experimental"
    window: timedelta | None = None
    """For how long after each sighting it is shown; ``None`` leaves that to the rules."""
    actions: tuple[Json, ...] = ()
    """What is declared that may be done with it or below, as ``actions.declared`` writes it."""
    at: datetime | None = None
    """When something was last declared; ``None`` if nothing ever was."""
    by: str | None = None


@dataclass(frozen=True, slots=True)
class Provisioner:
    """The first half of the names of some worker types."""

    provisioner_id: str
    created: datetime
    first_seen: datetime | None = None
    last_seen: datetime | None = None
    declaration: Declaration = field(default_factory=Declaration)


@dataclass(frozen=True, slots=True)
class WorkerType:
    """A task queue, and with it the workers that take their tasks from it."""

    queue_id: str
    created: datetime
    first_seen: datetime | None = None
    last_seen: datetime | None = None
    declaration: Declaration = field(default_factory=Declaration)
    has_metadata: bool = False
    is_hardware: bool = False
    """Whether its workers are machines that stay, and may be silent for longer."""
    is_hardware_said: bool = False
    """Whether a person said that they are, or that they are not: then nothing else counts."""
    downtime: Downtime | None = None
    """Why none of its workers gets a task, or did before it was over."""

    @property
    def provisioner_id(self) -> str:
        """The first half of its name."""
        return self.queue_id.partition("/")[0]

    @property
    def worker_type(self) -> str:
        """The second half of its name."""
        return self.queue_id.partition("/")[2]

    def downtime_at(self, now: datetime) -> Downtime | None:
        """The downtime in which none of its workers gets a task at ``now``."""
        return self.downtime if self.downtime is not None and self.downtime.until > now else None


@dataclass(frozen=True, slots=True)
class WorkerGroup:
    """Workers of one type that stand together, as in a zone or a rack."""

    queue_id: str
    group: str
    first_seen: datetime
    last_seen: datetime


@dataclass(frozen=True, slots=True)
class Metadata:
    """What a worker type is for, and what its tasks' payload must look like."""

    payload_schema: Json
    documentation: str
    """Markdown."""
    updated: datetime
    updated_by: str


@dataclass(frozen=True, slots=True)
class QuarantineChange:
    """Somebody quarantined a worker, or released it."""

    at: datetime
    client_id: str
    until: datetime
    info: str
