"""The scan's tick: each location listed once, to its end, and every pool told of its part.

A list that fails concludes nothing and shows as stale.  A complete one that lost too many machines
at once is held until three in a row agree, and so are strays where there are too many of them.
Pools get a message also when none of their machines
was seen: a pool whose machines all vanished must hear of it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from worker_manager.core.errors import (
    CloudError,
    NotAuthorizedError,
    NotStoredError,
    ThrottledError,
)
from worker_manager.core.messages import ScanPool
from worker_manager.core.model import Location, MachineStatus, Sighting
from worker_manager.core.sightings import CONSISTENT_LISTS, too_many_strays
from worker_manager.metrics import meter
from worker_manager.providers.protocol import Names
from worker_manager.queues import Message
from worker_manager.reconcile.moves import absent, leave_pools
from worker_manager.reconcile.provider_status import provider_failed, provider_recovered
from worker_manager.reconcile.side_by_side import side_by_side
from worker_manager.reconcile.ticks import Tick, is_stale, share_out, shuffled
from worker_manager.store.places import Membership, Place
from worker_manager.store.provider_status import Activity
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker_manager.reconcile.deps import Deps

IDENTIFIED_WITHIN = timedelta(hours=2)
"""Of its launch a machine is seen to run, and its row says who it is from then on."""

MOST_AT_ONCE = 20_000
"""Machines of a provider that one call lists; of more, each location is a call of its own."""

LARGEST_MESSAGE = 200_000
"""Bytes of a message that still goes through the queue; a larger one goes through a blob."""


@dataclass(frozen=True, slots=True)
class Listing:
    """One location's complete list."""

    place: Place
    began: datetime
    ended: datetime
    sightings: Sequence[Sighting]

    @property
    def machines(self) -> int:
        """Machines that are not being deleted."""
        return sum(s.status is not MachineStatus.STOPPING for s in self.sightings)

    def after(self, members: Sequence[Membership]) -> Place:
        """The location as its list leaves it, as far as pools that moved away are concerned."""
        missing = absent(members, self.place.location, self.sightings)
        return replace(self.place, complete=self.began, absent=missing)

    @property
    def has_many_strays(self) -> bool:
        """Whether the scans of the list before this one found too many strays to believe."""
        return too_many_strays(self.place.strays, self.machines)


@dataclass(frozen=True, slots=True)
class Told:
    """What came of one location: the list if it is believed, messages sent, the cloud's error."""

    listing: Listing | None = None
    messages: int = 0
    error: CloudError | None = None


def scan_tick(tick: Tick, deps: Deps) -> dict[str, Any]:
    """List every location of the provider, and send each pool what was seen of it."""
    if is_stale(tick.due, deps.clock(), tick.interval):
        logger.info("a stale tick was left out", tick=tick.name)
        return {"tick": tick.name, "stale": True}
    members, known = deps.stores.places.of_provider(deps.provider_id)
    locations = sorted({location for member in members for location in member.places})
    places = [known.get(location, Place(location)) for location in locations]
    due = [place for place in shuffled(places, tick) if _may_list(place, deps.clock())]
    if tick.location is not None:
        due = [place for place in due if place.location == tick.location]
    elif len(due) > 1 and sum(place.baseline.machines for place in due) > MOST_AT_ONCE:
        shares = share_out(tick, [place.location for place in due], deps)
        leave_pools(members, known, deps)
        logger.info("a scan tick was shared out", tick=tick.name, locations=shares)
        return {"tick": tick.name, "locations": shares, "stale": False, "shared": True}
    told = side_by_side(
        lambda place: _list_and_tell(place, shuffled(members, tick), tick, deps),
        due,
        parallel=deps.parallel,
    )
    _note_access(told, [place for place in places if place not in due], deps)
    believed = [one.listing for one in told if one.listing]
    if tick.location is None:
        fresh = {one.place.location: one.after(members) for one in believed}
        leave_pools(members, {**known, **fresh}, deps)
    report: dict[str, Any] = {
        "tick": tick.name,
        "locations": len(places) if tick.location is None else len(due),
        "believed": len(believed),
        "machines": sum(len(listing.sightings) for listing in believed),
        "messages": sum(one.messages for one in told),
    }
    logger.info("scan tick", **report)
    return {**report, "stale": False}


def _may_list(place: Place, now: datetime) -> bool:
    """Whether the cloud lets us list; a wait that launches were asked for delays no list."""
    return place.stale_since is None or place.not_before is None or place.not_before <= now


def _list_and_tell(place: Place, members: Sequence[Membership], tick: Tick, deps: Deps) -> Told:
    """One location, so that none waits for a slower one."""
    listing = _list(place, deps)
    if isinstance(listing, CloudError):
        return Told(error=listing)
    if not _believe(listing, members, deps):
        return Told()
    return Told(listing, _send(listing, members, tick, deps))


def _note_access(told: Sequence[Told], others: Sequence[Place], deps: Deps) -> None:
    """A provider that may list nowhere fails as a whole; one that may somewhere does not.

    ``others`` are locations that this call did not list.
    """
    refusals = [one.error for one in told if isinstance(one.error, NotAuthorizedError)]
    if any(one.error is None for one in told):
        provider_recovered(deps, Activity.LIST)
    elif refusals and all(place.stale_since is not None for place in others):
        provider_failed(deps, Activity.LIST, refusals[0])


def _list(place: Place, deps: Deps) -> Listing | CloudError:
    began = deps.clock()
    try:
        sightings = list(deps.provider.instances(place.location))
    except CloudError as error:
        wait = timedelta(0)
        if isinstance(error, ThrottledError):
            meter.throttled(deps.provider_id)
            wait = error.retry_after
        deps.stores.places.stale(
            deps.provider_id,
            place.location,
            since=place.stale_since or began,
            reason=str(error),
            not_before=deps.clock() + wait if wait else None,
        )
        logger.warning("a list failed", place=place.location, kind=error.kind, code=error.code)
        return error
    return Listing(place, began, deps.clock(), sightings)


def _believe(listing: Listing, members: Sequence[Membership], deps: Deps) -> bool:
    """Whether to conclude anything from a complete list."""
    place = listing.place
    accepted, baseline = place.baseline.accept(listing.machines)
    if accepted:
        deps.stores.places.believed(
            deps.provider_id,
            place,
            began=listing.began,
            machines=baseline.machines,
            strays_held=place.strays_held + 1 if listing.has_many_strays else 0,
            absent=absent(members, place.location, listing.sightings),
        )
        return True
    if place.baseline.held == 0:
        logger.error(
            "too many machines vanished at once, waiting for lists that agree",
            place=place.location,
            before=place.baseline.machines,
            now=listing.machines,
        )
    deps.stores.places.held(
        deps.provider_id,
        place.location,
        held=baseline.held,
        since=place.stale_since or listing.began,
    )
    return False


def _send(listing: Listing, members: Sequence[Membership], tick: Tick, deps: Deps) -> int:
    """One message for each pool that is, or may be, there; the number of messages."""
    place = listing.place
    by_pool: dict[str, list[Sighting]] = {
        member.pool_id: [] for member in members if place.location in member.places
    }
    for sighting in listing.sightings:
        by_pool.setdefault(sighting.key.pool_id, []).append(sighting)
    held = listing.has_many_strays and place.strays_held + 1 < CONSISTENT_LISTS
    if held and place.strays_held == 0:
        logger.error(
            "too many strays at once, waiting for lists that agree",
            place=place.location,
            strays=place.strays,
        )
    scans = [
        ScanPool(
            pool_id=pool_id,
            location=Location(place.location),
            tick=tick.name,
            listed_at=listing.began,
            complete_at=listing.ended,
            sightings=tuple(_told(sighting, listing.began, deps) for sighting in sightings),
            strays_reported=place.strays > 0 and not held,
        )
        for pool_id, sightings in by_pool.items()
    ]
    messages = [message for scan in scans if (message := _message(scan, deps))]
    deps.senders["scan"].send(messages)
    return len(messages)


def _told(sighting: Sighting, began: datetime, deps: Deps) -> Sighting:
    """What a pool's scan needs: who a machine is only if its row may not say so yet."""
    young = sighting.launched is not None and began - sighting.launched < IDENTIFIED_WITHIN
    if not sighting.identity or (young and isinstance(deps.provider, Names)):
        return sighting
    return replace(sighting, identity={})


def _message(scan: ScanPool, deps: Deps) -> Message | None:
    """A pool's message; ``None`` if its part could not be stored: the next list repairs."""
    body = scan.to_json()
    text = json.dumps(body, separators=(",", ":"))
    if len(text) > LARGEST_MESSAGE and deps.blobs is not None:
        key = f"scan/{scan.dedup}.json"
        try:
            deps.blobs.put(key, text)
        except NotStoredError as error:
            logger.warning("a pool's part of a list was not stored", error=str(error))
            return None
        body = {"blob": key}
    return Message(body, group=scan.group, dedup=scan.dedup)
