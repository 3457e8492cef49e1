"""Taking away what outlived its machine: disks, network interfaces, addresses, records.

Clouds delete a machine and what hangs on it in one go, if they are told to and nothing goes wrong.
What is left over carries our deployment's tag, costs money, and no scan of machines sees it.  So
every location is looked at every few minutes: each leftover that belongs to no live worker is
reported with its age, and removed once it is old enough that no launch can be at it still.
Where to read next: ``providers.protocol.Sweeps``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from worker_manager.core.errors import CloudError
from worker_manager.core.model import State
from worker_manager.metrics import meter
from worker_manager.providers.protocol import Leftover, Removed, Slots, Sweeps
from worker_manager.reconcile.side_by_side import side_by_side
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from datetime import datetime

    from worker_manager.core.model import Location
    from worker_manager.reconcile.deps import Deps

NAMED = 20
"""Leftovers that a log line names; the others are only counted."""


@dataclass(frozen=True, slots=True)
class Swept:
    """What was found at one location: all that is left over, and how many of it are gone now."""

    found: Sequence[Leftover] = ()
    removed: int = 0


def sweep(deps: Deps) -> dict[str, Any]:
    """Look at every location of the provider once."""
    now = deps.clock()
    _take_slots_back(now, deps)
    if not isinstance(deps.provider, Sweeps):
        return {"provider": deps.provider_id, "locations": 0, "found": 0, "removed": 0}
    locations = sorted(_locations(now, deps))
    places = deps.stores.slots.names(deps.provider_id) if isinstance(deps.provider, Slots) else ()
    look = partial(_sweep, provider=deps.provider, places=places, now=now, deps=deps)
    swept = side_by_side(look, locations, parallel=deps.parallel)
    found = sum(len(one.found) for one in swept)
    meter.leftovers(deps.provider_id, found)
    report: dict[str, Any] = {
        "provider": deps.provider_id,
        "locations": len(locations),
        "found": found,
        "removed": sum(one.removed for one in swept),
    }
    logger.info("swept", **report)
    return report


def _locations(now: datetime, deps: Deps) -> set[Location]:
    """Where pools have machines, or had: parts may outlive the last pool of a location."""
    members, known = deps.stores.places.of_provider(deps.provider_id)
    since = now - deps.timing.location_kept
    listed = {p.location for p in known.values() if p.complete is not None and p.complete > since}
    return listed.union(*(member.places for member in members))


def _sweep(
    location: Location, *, provider: Sweeps, places: Collection[str], now: datetime, deps: Deps
) -> Swept:
    """One location; what fails is found again the next time."""
    try:
        found = _without_owner(list(provider.leftovers(location, places)), deps)
        _report(location, found, now)
        oldest = now - deps.timing.leftover_grace
        old = [leftover for leftover in found if leftover.since and leftover.since < oldest]
    except CloudError as error:
        logger.warning("leftovers were not found out", place=location, code=error.code)
        return Swept()
    try:
        removed = provider.remove(location, old) if old else Removed()
    except CloudError as error:
        logger.warning("leftovers were not swept", place=location, code=error.code)
        return Swept(found)
    for name, failure in removed.failed.items():
        logger.warning("a leftover stays", place=location, resource=name, code=failure.code)
    return Swept(found, len(removed.done))


def _without_owner(leftovers: Sequence[Leftover], deps: Deps) -> list[Leftover]:
    """Those that no worker's launch or end is at any more.

    One that is being launched may have its parts before its machine, and one that is going takes
    them along; beside one that runs, what no machine uses was forgotten.
    """
    rows = deps.stores.workers.get_many(
        leftover.worker for leftover in leftovers if leftover.worker is not None
    )
    return [
        leftover
        for leftover in leftovers
        if leftover.worker is None
        or leftover.worker not in rows
        or rows[leftover.worker].state in (State.RUNNING, State.STOPPED)
    ]


def _report(location: Location, found: Iterable[Leftover], now: datetime) -> None:
    """Say what is left over, each with its age."""
    ages = {
        f"{leftover.kind} {leftover.resource_id}": (
            round((now - leftover.since).total_seconds()) if leftover.since else None
        )
        for leftover in found
    }
    if ages:
        logger.warning(
            "left over without a worker",
            place=location,
            count=len(ages),
            seconds=dict(sorted(ages.items(), key=lambda one: -(one[1] or 0))[:NAMED]),
        )


def _take_slots_back(now: datetime, deps: Deps) -> None:
    """Free what orders hold that nobody follows any more."""
    if not isinstance(deps.provider, Slots):
        return
    freed = deps.stores.slots.take_back(deps.provider_id, before=now - deps.timing.slots_kept)
    if freed:
        logger.warning("slots were taken back", provider=deps.provider_id, count=freed)
