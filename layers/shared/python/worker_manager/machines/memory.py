"""What is remembered from one look at a pool's machines to the next, and how it is stored.

Of a machine with which nothing is, or was lately, wrong there is nothing to remember.
Read next: ``looks``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from worker_manager.core.model import canonical_json
from worker_manager.core.moments import from_wire, to_wire
from worker_manager.machines.verdicts import Condition, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from worker_manager.core.model import Json


@dataclass(frozen=True, slots=True)
class Record:
    """The last verdict on a machine, and what later ones need to know of earlier ones."""

    verdict: Verdict
    bad_since: datetime | None = None
    """When it was first found bad, if it still is."""
    flaky: tuple[datetime, ...] = ()
    """When it was found flaky, the oldest first, as far as that still counts."""
    is_flaky: bool = False
    version: int = 0


@dataclass(frozen=True, slots=True)
class Watch:
    """What is remembered of a pool."""

    pending_since: datetime | None = None
    """Since when tasks wait."""
    outage_since: datetime | None = None
    """Since when nothing is done by itself."""
    retired: Mapping[str, datetime] = field(default_factory=dict)
    """Launch configs that machines go on with: since when their pool has others."""
    version: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether it says nothing."""
        return self.pending_since is None and self.outage_since is None and not self.retired


def from_record(record: Record) -> str:
    """A record as text."""
    verdict = record.verdict
    return canonical_json(
        {
            "condition": verdict.condition,
            "reason": verdict.reason,
            "since": to_wire(verdict.since),
            "facts": dict(verdict.facts),
            "bad_since": _wire(record.bad_since),
            "flaky": [to_wire(at) for at in record.flaky],
            "is_flaky": record.is_flaky,
        }
    )


def to_record(text: str, *, version: int) -> Record:
    """Back from text."""
    stored = json.loads(text)
    return Record(
        verdict=Verdict(
            condition=Condition(stored["condition"]),
            reason=stored["reason"],
            since=from_wire(stored["since"]),
            facts=stored["facts"],
        ),
        bad_since=_moment(stored["bad_since"]),
        flaky=tuple(from_wire(at) for at in stored["flaky"]),
        is_flaky=stored["is_flaky"],
        version=version,
    )


def from_watch(watch: Watch) -> Json:
    """A watch as JSON."""
    return {
        "pending_since": _wire(watch.pending_since),
        "outage_since": _wire(watch.outage_since),
        "retired": {name: to_wire(at) for name, at in watch.retired.items()},
    }


def to_watch(stored: Json, *, version: int) -> Watch:
    """Back from JSON."""
    return Watch(
        pending_since=_moment(stored["pending_since"]),
        outage_since=_moment(stored["outage_since"]),
        retired={name: from_wire(at) for name, at in stored["retired"].items()},
        version=version,
    )


def _wire(moment: datetime | None) -> str | None:
    return to_wire(moment) if moment is not None else None


def _moment(text: str | None) -> datetime | None:
    return from_wire(text) if text is not None else None
