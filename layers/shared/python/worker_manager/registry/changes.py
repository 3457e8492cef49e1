"""What an observation, or a person, does to what is known of a worker.

Pure: a worker goes in, the next one comes out, and what changes nothing gives back the same one.
In any order and however often, the same observations give the same worker, as far as its latest
claims reach.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from worker_manager.registry.entities import Claim, Outcomes, RegistryWorker
from worker_manager.registry.observations import CALLS, UNKNOWN, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from worker_manager.core.model import WorkerKey
    from worker_manager.registry.observations import Observation

RECENT = 20
"""Claims that are remembered; those that still run are, beyond that, up to ``MOST``."""
MOST = 64
WATCHED = timedelta(seconds=20)
"""How exactly it is known when a worker was last seen that somebody waits for."""
DAYS = 7
"""Of outcomes that are remembered."""
BLAMED = frozenset({"worker-shutdown", "claim-expired", "internal-error", "resource-unavailable"})
"""Reasons of exceptions that count against the worker."""


def meet(key: WorkerKey, now: datetime) -> RegistryWorker:
    """A worker of which nothing was known."""
    return RegistryWorker(key=key, created=now)


def seen(
    worker: RegistryWorker, at: datetime, *, calls: bool, interval: timedelta = timedelta()
) -> RegistryWorker:
    """The worker was heard of; ``calls`` if it asked for work.

    A sighting less than ``interval`` after the last one is not noted, but for a first call and
    for one that comes back: one that is heard of after all is not gone.  One that is waited for
    is noted sooner.
    """
    is_first = calls and (worker.first_claim is None or at < worker.first_claim)
    is_back = worker.gone is not None and at > worker.gone
    since, last = worker.first_seen, worker.last_seen
    if worker.watched_until is not None and at < worker.watched_until:
        interval = min(interval, WATCHED)
    is_known = since is not None and last is not None and since <= at < last + interval
    if is_known and not is_first and not is_back:
        return worker
    after = replace(
        worker,
        first_seen=min(worker.first_seen or at, at),
        last_seen=max(worker.last_seen or at, at),
        first_claim=at if is_first else worker.first_claim,
        gone=None if is_back else worker.gone,
    )
    return worker if after == worker else after


def took(worker: RegistryWorker, claims: Iterable[Claim]) -> RegistryWorker:
    """The worker took these runs; one that is known already keeps its outcome."""
    known = {claim.run: claim for claim in worker.claims}
    for claim in claims:
        before = known.get(claim.run)
        if before is None:
            known[claim.run] = claim
        elif claim.claimed < before.claimed:
            known[claim.run] = replace(before, claimed=claim.claimed)
    return replace(worker, claims=_latest(known.values()))


def ended(worker: RegistryWorker, observation: Observation) -> RegistryWorker:
    """A run of the worker ended; telling it again changes nothing, nor does another end of it.

    One older than all that is remembered is left out: it may have been counted before.  An end
    that says when the run began is right about that.
    """
    if observation.state == UNKNOWN:
        return _lost(worker, observation)
    run = (str(observation.task_id), int(observation.run_id or 0))
    known = {claim.run: claim for claim in worker.claims}
    claim = known.get(run) or Claim(*run, claimed=observation.at)
    if claim.state not in {None, UNKNOWN}:
        return worker
    known[run] = replace(
        claim,
        claimed=observation.began or claim.claimed,
        state=observation.state,
        reason=observation.reason,
        resolved=observation.at,
    )
    claims = _latest(known.values())
    if claim not in worker.claims and known[run] not in claims:
        return worker
    return replace(worker, claims=claims, outcomes=_counted(worker.outcomes, observation))


def observed(
    worker: RegistryWorker, observations: Sequence[Observation], *, interval: timedelta
) -> RegistryWorker:
    """All that a queue saw of this worker since, the oldest first."""
    for one in sorted(observations, key=lambda one: one.at):
        if one.is_sighting:
            # What is written anyway tells the time exactly.
            exactly = timedelta() if one.kind in {Kind.CLAIM, Kind.RESOLVE} else interval
            worker = seen(worker, one.at, calls=one.kind in CALLS, interval=exactly)
        if one.kind is Kind.CLAIM or one.kind is Kind.RECLAIM:
            claim = Claim(str(one.task_id), int(one.run_id or 0), claimed=one.at)
            worker = took(worker, [claim])
        elif one.kind is Kind.RESOLVE:
            worker = ended(worker, one)
    return worker


def quarantined(
    worker: RegistryWorker, until: datetime, *, info: str, client_id: str
) -> RegistryWorker:
    """No tasks for the worker until then; a moment in the past releases it."""
    return replace(worker, quarantine_until=until, quarantine_info=info, quarantined_by=client_id)


def _lost(worker: RegistryWorker, observation: Observation) -> RegistryWorker:
    """Nobody can tell how a run ended, or when: it runs no more, and counts for nothing."""
    run = (observation.task_id, observation.run_id)
    known = {claim.run: claim for claim in worker.claims if claim.state is None}
    if run not in known:
        return worker
    lost = known[run]
    others = (claim for claim in worker.claims if claim is not lost)
    return replace(worker, claims=_latest([*others, replace(lost, state=UNKNOWN)]))


def _latest(claims: Iterable[Claim]) -> tuple[Claim, ...]:
    """Those of which something was heard last, and all that run, by when they were taken.

    So one that is forgotten is older than all others also if its end is told again.
    """
    heard = sorted(claims, key=lambda claim: (claim.resolved or claim.claimed, claim.run))
    running = [claim for claim in heard[:-RECENT] if claim.state is None]
    kept = sorted((*running, *heard[-RECENT:]), key=lambda claim: (claim.claimed, claim.run))
    return tuple(kept[-MOST:])


def _counted(outcomes: Mapping[str, Outcomes], observation: Observation) -> Mapping[str, Outcomes]:
    day = observation.at.date().isoformat()
    before = outcomes.get(day, Outcomes())
    match observation.state:
        case "completed":
            after = replace(before, completed=before.completed + 1)
        case "failed":
            after = replace(before, failed=before.failed + 1)
        case _ if observation.reason in BLAMED:
            after = replace(before, exceptions=before.exceptions + 1)
        case _:
            after = replace(before, others=before.others + 1)
    days = {**outcomes, day: after}
    return {name: days[name] for name in sorted(days)[-DAYS:]}
