"""What a mix is made of: pools, machines that may be moved between them, and a proposal.

Where to read next: ``recommender``, which makes the one of the others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from worker_manager.core.model import WorkerKey
    from worker_manager.mix.load import Sample

DEFAULT_CLASS = "default"
"""The class of machines, and what a pool takes, where nobody said anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What a pool's people want of the mix."""

    weight: float = 1.0
    """How much its waiting counts beside that of other pools."""
    minimum: int = 0
    maximum: int | None = None
    """Of machines; ``None`` is any number."""
    target: timedelta = timedelta()
    """How long tasks may wait; up to there, waiting counts a tenth."""
    classes: tuple[str, ...] = (DEFAULT_CLASS,)
    """Of machines that can do its tasks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One machine, in the pool that it works for now."""

    key: WorkerKey
    machine_class: str = DEFAULT_CLASS
    is_busy: bool = False
    last_claim: datetime | None = None
    bad_share: float = 0.0
    """Of its latest runs, those that went wrong."""
    unusable: str = ""
    """Why it is no capacity wherever it is, in a word; empty if it is some."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A task queue whose machines may be moved, and what it had to do."""

    queue_id: str
    wishes: Wishes = field(default_factory=Wishes)
    samples: Sequence[Sample] = ()
    """In order."""
    service: timedelta | None = None
    """How long a task takes, on average; ``None`` if none has ended."""
    slots: float = 1.0
    """Tasks that one of its machines runs at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """How long a pool's tasks would have to wait."""

    weekly: timedelta
    """All of them together, in a week."""
    worst: timedelta | None
    """What 95 of 100 tasks do not wait longer than; ``None`` if they wait for ever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What is proposed for one pool."""

    queue_id: str
    now: int
    """Machines that are some capacity."""
    unusable: int
    """Those that are none."""
    proposed: int
    demand: float | None
    """Machines that 95 of 100 moments would keep at work; ``None`` if too little is known."""
    service: timedelta | None
    before: Waits | None
    after: Waits | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One machine that had better work for another pool."""

    machine: Machine
    target: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """A mix, never carried out by anything here."""

    lines: tuple[Line, ...]
    """Of all pools, by name."""
    moves: tuple[Move, ...]
    """None, if the mix is to stay as it is."""
    most: int
    """Machines that may be moved in a week."""
    reason: str
    """Why these moves, or why none."""
