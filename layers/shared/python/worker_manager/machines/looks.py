"""One look at all machines of a pool: verdicts, what of them is new, and what is to be done.

Pure.  Where to read next: ``worker_manager.reconcile.examine``, which gathers what goes in and does
what comes out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from worker_manager.machines.breaker import Judged, Trouble, trouble
from worker_manager.machines.facts import PoolFacts
from worker_manager.machines.memory import Record, Watch
from worker_manager.machines.remedies import remedies
from worker_manager.machines.verdicts import Condition, is_flaky, judge

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime, timedelta

    from worker_manager.core.model import WorkerKey
    from worker_manager.machines.facts import Machine
    from worker_manager.machines.policy import Policy, Thresholds
    from worker_manager.machines.remedies import Done, Remedy


@dataclass(frozen=True, slots=True)
class Change:
    """What is to be remembered of a machine from now on; ``None`` for nothing."""

    key: WorkerKey
    before: Record | None
    after: Record | None
    found: Judged | None = None
    """``None`` for a machine that is not there any more."""

    @property
    def previous(self) -> Condition:
        """How it was."""
        return self.before.verdict.condition if self.before else Condition.HEALTHY

    @property
    def is_news(self) -> bool:
        """Whether its condition is another one."""
        return self.found is not None and self.found.verdict.condition is not self.previous


@dataclass(frozen=True, slots=True)
class Look:
    """What a look found."""

    judged: Sequence[Judged]
    changes: Sequence[Change]
    trouble: Trouble
    watch: Watch
    remedies: Sequence[Remedy]


def watched(
    before: Watch,
    *,
    pending: int | None,
    used: Collection[str],
    current: Collection[str] | None,
    now: datetime,
) -> Watch:
    """What is to be remembered of a pool, its outages apart.

    ``pending`` are tasks that wait (``None`` if nobody knows, which changes nothing), ``used`` the
    launch configs of its machines and ``current`` those of its definition, if it has one.
    """
    waiting = before.pending_since
    if pending is not None:
        waiting = (waiting or now) if pending else None
    retired = {
        name: before.retired.get(name, now)
        for name in sorted(set(used) - set(current or ()))
        if current is not None
    }
    return replace(before, pending_since=waiting, retired=retired)


def look(
    machines: Sequence[Machine],
    records: Mapping[WorkerKey, Record],
    watch: Watch,
    policy: Policy,
    now: datetime,
    *,
    lag: timedelta,
    done: Sequence[Done] = (),
) -> Look:
    """Judge the machines of a pool; ``lag`` is how late a sighting may be told."""
    limits = policy.thresholds
    pool = PoolFacts.of(machines, pending_since=watch.pending_since)
    changes = [
        _judged(machine, pool, records.get(machine.key), limits, now=now, lag=lag)
        for machine in machines
    ]
    judged = [change.found for change in changes if change.found is not None]
    there = {machine.key for machine in machines}
    gone = [Change(key, record, None) for key, record in records.items() if key not in there]
    found = trouble(judged, limits, now, lag=lag)
    is_outage = found.is_outage(limits, was_one=watch.outage_since is not None)
    since = (watch.outage_since or now) if is_outage else None
    return Look(
        judged=judged,
        changes=[change for change in (*changes, *gone) if change.after != change.before],
        trouble=found,
        watch=replace(watch, outage_since=since),
        remedies=() if is_outage else remedies(judged, policy, done, now),
    )


def _judged(
    machine: Machine,
    pool: PoolFacts,
    before: Record | None,
    limits: Thresholds,
    *,
    now: datetime,
    lag: timedelta,
) -> Change:
    flaky_now = is_flaky(machine, pool, limits)
    known = before.flaky if before else ()
    times = tuple(at for at in known if at > now - limits.reformat)
    if flaky_now and not (before and before.is_flaky):
        times = (*times, now)
    machine = replace(machine, was_flaky=times)
    verdict = judge(machine, pool, limits, now, lag=lag)
    if before is not None and before.verdict.condition is verdict.condition:
        # What it was found for stays; nothing is written that is not new.
        verdict = before.verdict
    is_bad = verdict.condition.is_bad or flaky_now
    bad_since = ((before and before.bad_since) or now) if is_bad else None
    found = Judged(machine, verdict, is_flaky=flaky_now, bad_since=bad_since)
    if verdict.condition is Condition.HEALTHY and not times:
        return Change(machine.key, before, None, found)
    version = before.version if before else 0
    after = Record(verdict, bad_since, times, is_flaky=flaky_now, version=version)
    return Change(machine.key, before, after, found)
