"""What the table of actions holds, as values.  Read next: ``action_table``, which keeps them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """One run as a text, and what is kept beside it; ``version`` is the one to be replaced."""

    run_id: str
    body: str
    requested: datetime
    kept: datetime
    """Until when it is remembered."""
    target: str
    lock: str
    """What no other run of the same target may hold while this one is open."""
    queue_id: str | None
    """The task queue in whose list it is."""
    todo: str
    """The list of those who may take it up."""
    place: str
    """Of what only so many may be under way at once."""
    places: int
    """How many."""
    bulk_id: str | None
    is_open: bool
    is_taken: bool
    has_place: bool
    version: int = 0


@dataclass(frozen=True, slots=True)
class Cooled:
    """An action that may not be done to a target again before then."""

    name: str
    until: datetime


@dataclass(frozen=True, slots=True)
class Todo:
    """An open run in the list of those who may take it up."""

    run_id: str
    place: str
    is_taken: bool


@dataclass(frozen=True, slots=True)
class Listed:
    """A run in a list; ``order`` is where the list goes on after it."""

    order: str
    run_id: str
