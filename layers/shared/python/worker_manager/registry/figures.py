"""Figures that follow from what is known of workers: how they fare, and since when they are up.

Pure.  A rate says nothing until there were some runs; that of many workers is of all their runs
together, not the mean of their rates.  Where to read next: ``entities``.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from worker_manager.core.model import State
from worker_manager.registry.changes import DAYS
from worker_manager.registry.entities import Outcomes

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from worker_manager.core.model import Worker
    from worker_manager.registry.entities import RegistryWorker

ENOUGH = 5
"""Runs from which on a rate means something."""
FAILING = 0.5
"""The rate from which on a worker fails."""
SILENCE = timedelta(hours=2)
"""After which a worker that has not called is silent; one at work renews its claim earlier."""


class Health(StrEnum):
    """How a worker fares; the first that fits."""

    GONE = "gone"
    """Its machine has ended."""
    UNKNOWN = "unknown"
    """No queue has ever heard of it."""
    FAILING = "failing"
    """At least half of its runs failed, or ended in an exception that is its fault."""
    SILENT = "silent"
    """It has not been heard of for two hours."""
    OK = "ok"


@dataclass(frozen=True, slots=True)
class Rates:
    """Shares of runs within the last week, 0.0 to 1.0; ``None`` where there were too few."""

    runs: int
    """All that say something of the worker."""
    failure: float | None
    """Failed ones among those that ran to their end."""
    exception: float | None
    """Those that ended in an exception which is the worker's fault, among all."""


@dataclass(frozen=True, slots=True)
class Uptime:
    """Since when a machine is up; approximate where nobody said when it booted."""

    since: datetime
    is_approximate: bool


@dataclass(frozen=True, slots=True)
class WorkerCounts:
    """Workers by what they do; all but the first are disjoint, and never more than the first."""

    total: int = 0
    quarantined: int = 0
    claimed: int = 0
    """Those that hold a task and are not in quarantine."""

    @property
    def idle(self) -> int:
        """Those that could take a task at once."""
        return max(0, self.total - self.quarantined - self.claimed)


def outcomes_of(workers: Iterable[RegistryWorker], now: datetime) -> Outcomes:
    """How the runs of these workers ended within the last week, today included."""
    first = (now - timedelta(days=DAYS - 1)).date().isoformat()
    days = [of for one in workers for day, of in one.outcomes.items() if day >= first]
    return Outcomes(
        completed=sum(of.completed for of in days),
        failed=sum(of.failed for of in days),
        exceptions=sum(of.exceptions for of in days),
        others=sum(of.others for of in days),
    )


def rates(outcomes: Outcomes) -> Rates:
    """What share of the runs went wrong; cancelled and overdue tasks say nothing of a worker."""
    ended = outcomes.completed + outcomes.failed
    runs = ended + outcomes.exceptions
    return Rates(
        runs=runs,
        failure=outcomes.failed / ended if ended >= ENOUGH else None,
        exception=outcomes.exceptions / runs if runs >= ENOUGH else None,
    )


def is_gone(worker: RegistryWorker | None, row: Worker | None) -> bool:
    """Whether a worker's machine exists no more, by what the registry or our row say.

    A row made after the machine had ended is that of another machine of this name.
    """
    if row is not None and row.state is State.STOPPED:
        return True
    ended = None if worker is None else worker.gone
    return ended is not None and (row is None or row.created <= ended)


def health(worker: RegistryWorker | None, row: Worker | None, now: datetime) -> Health:
    """How a worker fares, by what the registry and our row say."""
    if is_gone(worker, row):
        return Health.GONE
    if worker is None or worker.last_seen is None:
        return Health.UNKNOWN
    found = rates(outcomes_of([worker], now))
    if max(found.failure or 0.0, found.exception or 0.0) >= FAILING:
        return Health.FAILING
    return Health.SILENT if worker.last_seen + SILENCE < now else Health.OK


def booted(worker: RegistryWorker | None, row: Worker | None) -> datetime | None:
    """When a worker's machine last booted, as somebody declared or it said itself."""
    boots = [worker and worker.boot_time, row and row.boot_time]
    return max((boot for boot in boots if boot), default=None)


def uptime(worker: RegistryWorker | None, row: Worker | None) -> Uptime | None:
    """Since when a worker's machine is up, by what the registry and our row say.

    ``None`` for one that is not there any more, or of which nobody knows.
    """
    if is_gone(worker, row):
        return None
    boot = booted(worker, row)
    if boot is not None:
        return Uptime(boot, is_approximate=False)
    signs = [worker and worker.first_seen, row and row.registered]
    up = max((sign for sign in signs if sign), default=None)
    return Uptime(up, is_approximate=True) if up is not None else None


def holds_task(worker: RegistryWorker) -> bool:
    """Whether a run that it took is not known to have ended."""
    return any(claim.state is None for claim in worker.claims)


def count(workers: Iterable[RegistryWorker], now: datetime) -> WorkerCounts:
    """Count workers that are shown; those that are gone are none any more."""
    total = quarantined = claimed = 0
    for worker in workers:
        if worker.gone is not None:
            continue
        total += 1
        if worker.is_quarantined(now):
            quarantined += 1
        elif holds_task(worker):
            claimed += 1
    return WorkerCounts(total, quarantined, claimed)
