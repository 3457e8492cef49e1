"""A launch config's recent outcomes, and what they leave of its weight.

Counters live in buckets of a rolling window (``store.health``); this module only reads them.
Provision adds ``requested``, ``launched`` and refusals, registration ``registered``, the scan
``claimed`` and, like who follows creations, what never came about; each after the conditional write
of the transition won: a crash may lose a count but never doubles one.

Where to read next: ``breaker`` (what they open and close), ``standing`` (whole weights).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

WINDOW = timedelta(minutes=60)
BUCKET = timedelta(minutes=5)
REMEMBERED = WINDOW + BUCKET
"""How old what a window still shows may be: its oldest bucket began before it did."""

BOOT_KINDS = frozenset({"never-registered", "never-claimed"})
"""Failures of machines that the cloud did start."""

FAILURE_KINDS = (
    "no-capacity",
    "quota-exceeded",
    "invalid-launch-config",
    "not-authorized",
    "lost",
    "never-registered",
    "never-claimed",
    "other",
)
"""Kinds of failure that are counted apart; everything else counts as ``other``.

Throttling is not among them: asking too fast is nobody's fault but ours.
"""

OLD = timedelta(minutes=30)
"""A machine that has not registered by this age begins to count as a failure."""
TOO_OLD = timedelta(minutes=60)
"""At this age it counts as one in full."""


def failure_kind(kind: str) -> str:
    """The counted kind for any error kind."""
    return kind if kind in FAILURE_KINDS else "other"


def bucket_of(moment: datetime) -> int:
    """Epoch second at which the bucket of ``moment`` begins."""
    seconds = int(BUCKET.total_seconds())
    return int(moment.timestamp()) // seconds * seconds


@dataclass(frozen=True, slots=True)
class Health:
    """Sums over the window for one launch config, and when each outcome came last."""

    requested: int = 0
    launched: int = 0
    registered: int = 0
    claimed: int = 0
    failed: Mapping[str, int] = field(default_factory=dict)
    launched_at: datetime | None = None
    registered_at: datetime | None = None
    claimed_at: datetime | None = None
    failed_at: datetime | None = None
    failed_kind: str = ""
    failed_reason: str = ""

    @property
    def failures(self) -> int:
        """All failures in the window, whatever their kind."""
        return sum(self.failed.values())

    @property
    def boot_failures(self) -> int:
        """Machines that were started and never registered, or never claimed."""
        return sum(self.failed.get(kind, 0) for kind in BOOT_KINDS)

    @property
    def came_up(self) -> int:
        """Machines that registered, less those that then never claimed."""
        return max(0, self.registered - self.failed.get("never-claimed", 0))


@dataclass(frozen=True, slots=True)
class Waiting:
    """Machines of one launch config that were started and have not registered yet.

    ``late`` is the part of ``count`` that by its age is taken for failed, between nothing at
    ``OLD`` and all of a machine at ``TOO_OLD``.
    """

    count: int = 0
    late: float = 0.0


def lateness(age: timedelta) -> float:
    """How much of a failure a machine is that has not registered ``age`` after its launch."""
    return min(1.0, max(0.0, (age - OLD) / (TOO_OLD - OLD)))


def outcome_factor(health: Health, waiting: Waiting, *, running: int = 0) -> float:
    """What the outcomes leave of a weight, from 1 to 0; the scenarios of the discussion.

    Machines that run came up, be it before the window: ``running`` of them are as many successes,
    or one failure in a calm hour would take everything from a launch config (report S7).

    - nothing happened yet, or only successes: all of it;
    - failures take their share of this launch config's own outcomes;
    - machines created, none registered, no failure: all of it until they are old, then falling;
    - machines created, none registered, and failures: nothing.

    One more failure never raises it, one more success never lowers it.
    """
    good, bad = max(health.came_up, running), health.failures
    if bad:
        return good / (good + bad + waiting.late)
    hopeful = good + waiting.count - waiting.late
    return hopeful / (good + waiting.count) if good + waiting.count else 1.0


def add_up(
    windows: Iterable[tuple[int, str, Health]], since: Mapping[str, datetime] | None = None
) -> dict[str, Health]:
    """Sum the buckets of each launch config.

    ``windows`` are begin (epoch second), launch config and content of each bucket; ``since`` is
    from when on outcomes count, where those before were forgiven: only whole buckets after it
    do.  When an outcome came last is told by all of them.
    """
    sums: dict[str, Health] = {}
    for begin, name, bucket in windows:
        part = bucket
        forgiven = since.get(name) if since else None
        if forgiven is not None and begin < forgiven.timestamp():
            part = replace(part, requested=0, launched=0, registered=0, claimed=0, failed={})
        sums[name] = _sum(sums[name], part) if name in sums else part
    return sums


def _sum(one: Health, other: Health) -> Health:
    failed = dict(one.failed)
    for kind, count in other.failed.items():
        failed[kind] = failed.get(kind, 0) + count
    last = max((one, other), key=lambda part: _instant(part.failed_at))
    return Health(
        requested=one.requested + other.requested,
        launched=one.launched + other.launched,
        registered=one.registered + other.registered,
        claimed=one.claimed + other.claimed,
        failed=failed,
        launched_at=_later(one.launched_at, other.launched_at),
        registered_at=_later(one.registered_at, other.registered_at),
        claimed_at=_later(one.claimed_at, other.claimed_at),
        failed_at=last.failed_at,
        failed_kind=last.failed_kind,
        failed_reason=last.failed_reason,
    )


def _later(one: datetime | None, other: datetime | None) -> datetime | None:
    return max((moment for moment in (one, other) if moment is not None), default=None)


def _instant(moment: datetime | None) -> float:
    return moment.timestamp() if moment is not None else float("-inf")
