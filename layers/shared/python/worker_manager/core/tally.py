"""Counting a pool's workers, each exactly once.

``running``, ``requested``, ``stopping`` and ``quarantined`` are *disjoint*: a worker is stopping
(also while its cloud is about to take its machine back), else quarantined, else requested, else
running.  All counts are capacity (tasks at once), not instances.  An open order counts as requested
for what it may still bring: its count less the rows that carry its id.  The reference counted
requested workers inside the existing ones and again beside them; see ``estimator`` for what came
of that.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from worker_manager.core.model import State, Worker
from worker_manager.core.surplus import is_interrupted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime, timedelta

    from worker_manager.core.plans import Order


@dataclass(frozen=True, slots=True)
class Counts:
    """Capacity by what it is doing."""

    running: int = 0
    requested: int = 0
    stopping: int = 0
    quarantined: int = 0

    @property
    def existing(self) -> int:
        """Capacity that works or soon will: running and requested."""
        return self.running + self.requested

    @property
    def total(self) -> int:
        """Everything that still costs money."""
        return self.running + self.requested + self.stopping + self.quarantined

    def __add__(self, other: Counts) -> Counts:
        """Sum of both, count by count."""
        return Counts(
            running=self.running + other.running,
            requested=self.requested + other.requested,
            stopping=self.stopping + other.stopping,
            quarantined=self.quarantined + other.quarantined,
        )


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of a pool, by launch config and by worker group.

    ``stuck`` is the part of ``pool.stopping`` that is still there long after its delete.
    """

    pool: Counts = field(default_factory=Counts)
    by_launch_config: Mapping[str, Counts] = field(default_factory=dict)
    by_group: Mapping[str, Counts] = field(default_factory=dict)
    stuck: int = 0


def counts_of(worker: Worker, now: datetime) -> Counts:
    """One worker's capacity, under the one heading that applies at ``now``."""
    if worker.state is State.STOPPED:
        return Counts()
    if worker.state is State.STOPPING or is_interrupted(worker):
        return Counts(stopping=worker.capacity)
    if worker.is_quarantined(now):
        return Counts(quarantined=worker.capacity)
    if worker.state in (State.CREATED, State.REQUESTED):
        return Counts(requested=worker.capacity)
    return Counts(running=worker.capacity)


def outstanding(order: Order, rows: int) -> int:
    """Machines an order may still bring, given how many rows carry its id."""
    return max(0, order.count - rows) if order.is_open else 0


def tally(
    workers: Iterable[Worker],
    open_orders: Iterable[tuple[Order, int]],
    *,
    now: datetime,
    stopping_limit: timedelta,
) -> Tally:
    """Count live workers and open orders.

    ``open_orders`` pairs each order with how many of its machines are accounted for, by a row or
    by a refusal for good.
    """
    pool = Counts()
    by_launch_config: dict[str, Counts] = {}
    by_group: dict[str, Counts] = {}
    stuck = 0
    for worker in workers:
        counts = counts_of(worker, now)
        pool += counts
        if worker.launch_config_id:
            _add(by_launch_config, worker.launch_config_id, counts)
        _add(by_group, worker.key.group, counts)
        since = worker.stopping_since
        if counts.stopping and since is not None and now - since > stopping_limit:
            stuck += counts.stopping
    for order, rows in open_orders:
        counts = Counts(requested=outstanding(order, rows) * order.capacity_per_instance)
        pool += counts
        _add(by_launch_config, order.launch_config_id, counts)
        _add(by_group, order.location, counts)
    return Tally(pool=pool, by_launch_config=by_launch_config, by_group=by_group, stuck=stuck)


def _add(sums: dict[str, Counts], key: str, counts: Counts) -> None:
    sums[key] = sums.get(key, Counts()) + counts
