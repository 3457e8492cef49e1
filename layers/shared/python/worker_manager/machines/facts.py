"""What is known of a machine, and of the pool that it is in, as far as its health is concerned.

Facts come from the registry (what a task queue saw), from our own row of the worker, and from what
was found the last times; they are put together once a look, and judged as they are.
Read next: ``verdicts``.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from statistics import median
from types import MappingProxyType
from typing import TYPE_CHECKING

from worker_manager.core.lifecycle import OURSELVES
from worker_manager.core.model import State
from worker_manager.registry import figures
from worker_manager.registry.changes import BLAMED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from worker_manager.core.model import Worker, WorkerKey
    from worker_manager.registry.entities import Claim, RegistryWorker

AUTO = "auto: "
"""Begins the reason of a quarantine that is our own."""
HOUR = timedelta(hours=1)
"""Within which registrations are counted, and a pool's machines that turn bad."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One machine."""

    key: WorkerKey
    is_fixed: bool
    """Whether it stays where it is; else a cloud makes another."""
    entered: datetime
    """When it was first spoken of."""
    heard: datetime | None = None
    """When it last called the queue, or us; a queue may tell it late."""
    last_claim: datetime | None = None
    running: int = 0
    """Tasks that it holds, as far as is known."""
    runs: int = 0
    """Of a week that say something of it."""
    bad_runs: int = 0
    """Those of them that failed, or ended by its fault."""
    bad_in_a_row: int = 0
    """The latest ones, since it was last released from quarantine."""
    registrations: tuple[datetime, ...] = ()
    """The latest ones, the oldest first."""
    boot_time: datetime | None = None
    launch_config_id: str | None = None
    stale_since: datetime | None = None
    """Since when its launch config is no longer its pool's; ``None`` if it is."""
    is_quarantined: bool = False
    is_ours: bool = False
    """Whether it was us who put it there."""
    reboot_failed: datetime | None = None
    """When a reboot ended that did not bring it back."""
    was_flaky: tuple[datetime, ...] = ()
    """When it was found to be; the oldest first.  ``looks`` remembers it."""

    @property
    def bad_rate(self) -> float:
        """The share of its runs that went wrong."""
        return self.bad_runs / self.runs if self.runs else 0.0


@dataclass(frozen=True, slots=True)
class PoolFacts:
    """What judging one machine needs to know of the others."""

    pending_since: datetime | None = None
    """Since when tasks wait; ``None`` if none does, or if nobody knows."""
    rates: tuple[float, ...] = ()
    """Shares of bad runs of those with runs enough."""
    claims: tuple[tuple[datetime, WorkerKey], ...] = ()
    """The two machines that claimed last, and when; the latest first."""

    @classmethod
    def of(cls, machines: Iterable[Machine], *, pending_since: datetime | None) -> PoolFacts:
        """Of all machines of a pool."""
        known = list(machines)
        claims = ((one.last_claim, one.key) for one in known if one.last_claim is not None)
        return cls(
            pending_since=pending_since,
            rates=tuple(one.bad_rate for one in known if one.runs >= figures.ENOUGH),
            claims=tuple(sorted(claims, reverse=True)[:2]),
        )

    def median_without(self, machine: Machine) -> float | None:
        """The usual share of bad runs among its siblings; ``None`` if none has runs enough."""
        rates = list(self.rates)
        if machine.runs >= figures.ENOUGH:
            rates.remove(machine.bad_rate)
        return median(rates) if rates else None

    def last_claim_of_others(self, machine: Machine) -> datetime | None:
        """When any other machine took a task."""
        return next((at for at, key in self.claims if key != machine.key), None)


def machine_of(
    key: WorkerKey,
    worker: RegistryWorker | None,
    row: Worker | None,
    now: datetime,
    *,
    is_fixed: bool,
    reboot_failed: datetime | None = None,
    retired: Mapping[str, datetime] = MappingProxyType({}),
) -> Machine | None:
    """The facts of one machine; ``None`` if nobody but its cloud can say anything of it.

    So it is before a cloud's machine registers, and after it was told to end; and of one that was
    only spoken of.  ``retired`` says since when launch configs are no longer its pool's.
    """
    is_known = row is not None or (worker is not None and worker.last_seen is not None)
    is_up = is_fixed or row is None or row.state is State.RUNNING
    if not is_known or not is_up or figures.is_gone(worker, row):
        return None
    week = figures.outcomes_of([worker] if worker else [], now)
    config = row.launch_config_id if row else None
    is_quarantined = worker is not None and worker.is_quarantined(now)
    return Machine(
        key=key,
        is_fixed=is_fixed,
        entered=min(one.created for one in (worker, row) if one is not None),
        heard=_heard(worker, row),
        last_claim=worker.last_claim if worker else None,
        running=sum(claim.state is None for claim in worker.claims) if worker else 0,
        runs=week.completed + week.failed + week.exceptions,
        bad_runs=week.failed + week.exceptions,
        bad_in_a_row=_bad_in_a_row(worker, now) if worker else 0,
        registrations=_registrations(row),
        boot_time=figures.booted(worker, row),
        launch_config_id=config,
        stale_since=retired.get(config) if config else None,
        is_quarantined=is_quarantined,
        is_ours=is_quarantined and _is_our_word(worker),
        reboot_failed=reboot_failed,
    )


def _heard(worker: RegistryWorker | None, row: Worker | None) -> datetime | None:
    signs = [worker and worker.last_seen, row and row.registered, *_registrations(row)]
    return max((sign for sign in signs if sign), default=None)


def _registrations(row: Worker | None) -> tuple[datetime, ...]:
    return row.registrations if row else ()


def _is_our_word(worker: RegistryWorker | None) -> bool:
    return (
        worker is not None
        and worker.quarantined_by == OURSELVES
        and worker.quarantine_info.startswith(AUTO)
    )


def _bad_in_a_row(worker: RegistryWorker, now: datetime) -> int:
    """Who released a machine has forgiven what it did before."""
    until = worker.quarantine_until
    since = until if until is not None and until <= now else None
    ended = sorted(
        (one for one in worker.claims if one.state is not None and _says_something(one)),
        key=lambda one: (one.resolved or one.claimed, one.run),
        reverse=True,
    )
    count = 0
    for claim in ended:
        if claim.state == "completed" or (since is not None and claim.claimed < since):
            break
        count += 1
    return count


def _says_something(claim: Claim) -> bool:
    """Cancelled and overdue tasks say nothing of a machine."""
    return claim.state != "exception" or claim.reason in BLAMED
