"""What a provision tick sees of a pool, as one value.

Where to read next: ``planning`` (what is decided by it), ``worker_manager.observing`` (who reads
it).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from worker_manager.core.standing import Conditions
from worker_manager.core.tally import Tally, tally

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from worker_manager.core.activity import QueueCounts
    from worker_manager.core.breaker import Breaker
    from worker_manager.core.health import Health
    from worker_manager.core.model import Location, Pool, Worker
    from worker_manager.core.plans import Order, Pause


@dataclass(frozen=True, slots=True)
class Facts:
    """All that a tick observed of a pool, at ``now``.

    ``demand`` is ``None`` when the queue did not answer.  ``open_orders`` pairs each open order
    with how many of its machines are accounted for.  ``health``, ``breakers`` (as judged now) and
    ``pauses`` are by launch config, ``offerings`` the shared breakers that are known;
    ``not_before`` and ``stale`` (since when) are by location.  ``probed`` and ``probe_wait`` are
    the control item's.
    """

    pool: Pool
    workers: Sequence[Worker]
    open_orders: Sequence[tuple[Order, int]]
    demand: QueueCounts | None
    health: Mapping[str, Health]
    now: datetime
    stopping_limit: timedelta
    stale_after: timedelta
    not_before: Mapping[Location, datetime] = field(default_factory=dict)
    stale: Mapping[Location, datetime] = field(default_factory=dict)
    breakers: Mapping[str, Breaker] = field(default_factory=dict)
    offerings: Mapping[str, Breaker] = field(default_factory=dict)
    pauses: Mapping[str, Pause] = field(default_factory=dict)
    probed: datetime | None = None
    probe_wait: timedelta = timedelta(0)

    @property
    def tally(self) -> Tally:
        """The pool's counts."""
        return tally(
            self.workers, self.open_orders, now=self.now, stopping_limit=self.stopping_limit
        )

    @property
    def conditions(self) -> Conditions:
        """What may hold its launch configs back."""
        return Conditions(
            now=self.now,
            stale_after=self.stale_after,
            breakers=self.breakers,
            pauses=self.pauses,
            offerings=self.offerings,
            not_before=self.not_before,
            stale=self.stale,
        )
