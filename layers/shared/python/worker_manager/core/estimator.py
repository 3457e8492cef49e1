"""How much capacity to order, and how much to keep.

With disjoint counts (``tally``)::

    needed   = claimed + ⌈ratio × pending⌉
    existing = running + requested
    wanted   = max(needed − max(existing, claimed), minimum − existing)
    spawn    = max(0, min(wanted, maximum − everything that still costs money))
    target   = max(minimum, min(needed, maximum))

Why so:

- Requested capacity is counted once.  The reference counted it as existing *and* subtracted it
  again, so a pool with half of its workers requested ordered nothing, and its minimum was not
  kept (field reports S1, S2).
- The ratio applies to the tasks that are pending, once, and not again to those left over at each
  tick.  Demand that is held for any number of ticks while workers boot orders ``⌈ratio ×
  pending⌉`` in all, not that much again and again (B02, B03).
- ``max(existing, claimed)``: more tasks claimed than capacity known means that the counts are
  from different moments; it is no debt of capacity.
- Stopping and quarantined capacity costs money, so it counts against the maximum, but does no
  work, so it never counts as idle (B06, B21).  What is still stopping long after its delete is
  forgiven for at most a tenth of the maximum, so that ghosts cannot starve a pool (S4).
- Of a queue that is closed, tasks that wait are told and not counted: nobody would be given them.
- Spawning and letting go are two readings of one ``needed``, so one never undoes the other (B12).
- Fractions are rounded up once, here (S3).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from worker_manager.core.activity import QueueCounts
    from worker_manager.core.tally import Tally


@dataclass(frozen=True, slots=True)
class Limits:
    """A pool's limits, in capacity, and the workers wanted per pending task (0.0 to 1.0)."""

    minimum: int
    maximum: int
    ratio: float = 1.0


@dataclass(frozen=True, slots=True)
class Estimate:
    """New capacity to order now, what termination keeps, and where both come from.

    ``wanted`` is what demand and minimum ask for beyond what exists, ``costing`` what already
    counts against the maximum.
    """

    to_spawn: int
    target: int
    wanted: int
    costing: int

    @property
    def held_back(self) -> int:
        """Capacity that is wanted and not ordered because of the maximum."""
        return max(0, self.wanted - self.to_spawn)


def needed_capacity(demand: QueueCounts, ratio: float) -> int:
    """Capacity that the work at hand justifies."""
    return demand.claimed + math.ceil(round(ratio * demand.to_be_given, 9))


def estimate(demand: QueueCounts, tally: Tally, limits: Limits) -> Estimate:
    """Decide from values alone; the formula and its reasons are in the module's docstring."""
    counts = tally.pool
    needed = needed_capacity(demand, limits.ratio)
    wanted = max(
        0,
        needed - max(counts.existing, demand.claimed),
        limits.minimum - counts.existing,
    )
    forgiven = min(tally.stuck, max(1, math.floor(0.1 * limits.maximum)))
    costing = counts.total - forgiven
    return Estimate(
        to_spawn=max(0, min(wanted, limits.maximum - costing)),
        target=max(limits.minimum, min(needed, limits.maximum)),
        wanted=wanted,
        costing=costing,
    )
