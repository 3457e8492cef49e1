"""A launch config's recent outcomes, and what they do to its weight.

Counters live in buckets of a rolling window (``store.health``); this module only reads their
sums.  Only provision adds ``requested``, ``launched`` and refusals, only registration adds
``registered``, only the scan adds ``claimed`` and what never came about, each after the
conditional write of the transition won: a crash may lose a count but never doubles one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

WINDOW = timedelta(minutes=60)
BUCKET = timedelta(minutes=5)

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


def failure_kind(kind: str) -> str:
    """The counted kind for any error kind."""
    return kind if kind in FAILURE_KINDS else "other"


def bucket_of(moment: datetime) -> int:
    """Epoch second at which the bucket of ``moment`` begins."""
    seconds = int(BUCKET.total_seconds())
    return int(moment.timestamp()) // seconds * seconds


@dataclass(frozen=True, slots=True)
class Health:
    """Sums over the window for one launch config."""

    requested: int = 0
    launched: int = 0
    registered: int = 0
    claimed: int = 0
    failed: Mapping[str, int] = field(default_factory=dict)

    @property
    def failures(self) -> int:
        """All failures in the window, whatever their kind."""
        return sum(self.failed.values())

    @property
    def factor(self) -> float:
        """What the outcomes leave of a weight: 1 without failures, never quite 0.

        ``(good + 1) / (good + failed + 1)`` where good are launches that did not fail later:
        one more failure never raises it, one more success never lowers it, and a launch config
        that only fails still gets a try now and then.
        """
        later = self.failed.get("never-registered", 0) + self.failed.get("never-claimed", 0)
        good = max(0, self.launched - later)
        return (good + 1) / (good + self.failures + 1)


def add_up(windows: Iterable[tuple[str, Health]]) -> dict[str, Health]:
    """Sum the buckets of each launch config."""
    sums: dict[str, Health] = {}
    for launch_config_id, part in windows:
        so_far = sums.get(launch_config_id, Health())
        failed = dict(so_far.failed)
        for kind, count in part.failed.items():
            failed[kind] = failed.get(kind, 0) + count
        sums[launch_config_id] = Health(
            requested=so_far.requested + part.requested,
            launched=so_far.launched + part.launched,
            registered=so_far.registered + part.registered,
            claimed=so_far.claimed + part.claimed,
            failed=failed,
        )
    return sums
