"""Splitting the schedule's minute into ticks, and telling every pool of the provider.

EventBridge fires once a minute; the tick sends itself delayed messages for the slots in between.
A tick's id is its scheduled time and slot, never the clock, so that a repeated delivery is the
same tick.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from worker_manager.core.messages import ProvisionPool
from worker_manager.core.model import Location
from worker_manager.core.moments import from_wire, to_wire
from worker_manager.core.standing import location_of_offering
from worker_manager.observing import freed, pauses, unlisted
from worker_manager.queues import Message
from worker_manager.reconcile.healing import count_machines
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from worker_manager.core.breaker import Breaker
    from worker_manager.core.model import Json
    from worker_manager.queues import Sender
    from worker_manager.reconcile.deps import Deps
    from worker_manager.store.places import Membership, Place

MINUTE = timedelta(minutes=1)
MOST_OFFERINGS = 150
"""Shared breakers that a message takes along: 1,500 bytes each at most, and SQS takes 256 KB."""

_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class Tick:
    """One slot of one scheduled minute, in one ``location`` where a large one is shared out."""

    scheduled: datetime
    slot: int
    interval: timedelta
    location: Location | None = None

    @property
    def name(self) -> str:
        """The tick's id; by it the plans of a pool sort as they were made."""
        return f"{to_wire(self.due)}#{self.slot:02d}"

    @property
    def due(self) -> datetime:
        """When it was meant to happen."""
        return self.scheduled + self.slot * self.interval


def from_schedule(
    event: Json, interval: timedelta, ticks: Sender, *, late: timedelta = timedelta(0)
) -> Tick:
    """The first slot of a minute; the others are sent to ``ticks``, each with its delay.

    ``late`` is how long after its time the schedule fired: later slots keep their time, and those
    that are past are left out, as this one is done now.
    """
    scheduled = from_wire(event["time"])
    slots = [Tick(scheduled, slot, interval) for slot in range(1, int(MINUTE / interval))]
    waits = [(tick, tick.due - scheduled - late) for tick in slots]
    ticks.send(
        Message({"time": event["time"], "slot": tick.slot}, delay=int(wait.total_seconds()))
        for tick, wait in waits
        if wait > timedelta(0)
    )
    return Tick(scheduled, 0, interval)


def from_message(body: Json, interval: timedelta) -> Tick:
    """A later slot."""
    location = body.get("location")
    return Tick(
        from_wire(body["time"]),
        int(body["slot"]),
        interval,
        Location(location) if location else None,
    )


def share_out(tick: Tick, locations: Iterable[Location], deps: Deps) -> int:
    """Have a tick done location by location, each by a call of its own; how many there are."""
    messages = [
        Message({"time": to_wire(tick.scheduled), "slot": tick.slot, "location": location})
        for location in locations
    ]
    deps.senders["ticks"].send(messages)
    return len(messages)


def ticks_in(event: Json, interval: timedelta, deps: Deps) -> list[Tick]:
    """The ticks that a function's event asks for: a schedule's, or those of a queue's records."""
    if "Records" in event:
        bodies = [json.loads(record["body"]) for record in event["Records"]]
        return [from_message(body, interval) for body in bodies]
    late = max(timedelta(0), deps.clock() - from_wire(event["time"]))
    return [from_schedule(event, interval, deps.senders["ticks"], late=late)]


def is_stale(due: datetime | None, now: datetime, interval: timedelta) -> bool:
    """Whether a tick is so old that the next one is the better answer."""
    return due is not None and now - due > 2 * interval


def provision_tick(tick: Tick, deps: Deps) -> dict[str, Any]:
    """Send one provision message for each pool of the provider, previous members included."""
    if is_stale(tick.due, deps.clock(), tick.interval):
        logger.info("a stale tick was left out", tick=tick.name)
        return {"tick": tick.name, "pools": 0, "stale": True}
    survey = deps.stores.places.survey(deps.provider_id, deps.clock())
    members = survey.members
    stale = unlisted(survey.places.values(), deps.clock(), deps.timing)
    offerings = freed(survey, deps.clock())
    deps.senders["provision"].send(
        _message(_for_pool(member, survey.places, stale, offerings, tick))
        for member in shuffled(members, tick)
    )
    _alarm(members, stale, deps)
    count_machines(survey, deps)
    logger.info("provision tick", tick=tick.name, pools=len(members), offerings=len(offerings))
    return {"tick": tick.name, "pools": len(members), "stale": False}


def shuffled(items: Sequence[_Item], tick: Tick) -> list[_Item]:
    """The same items, in an order of the tick's own.

    Where the time does not suffice for all of them it is not always the same ones that wait.
    """
    order = list(items)
    Random(tick.name).shuffle(order)
    return order


def _alarm(members: Iterable[Membership], stale: Mapping[Location, datetime], deps: Deps) -> None:
    """Say, once a tick, which locations take no orders because their lists do not come."""
    used = {location for member in members for location in member.places}
    before = deps.clock() - deps.timing.location_stale
    late = sorted(name for name in used if name in stale and stale[name] < before)
    if late:
        logger.error("locations could not be listed for too long", locations=late)


def _for_pool(
    member: Membership,
    places: Mapping[Location, Place],
    stale: Mapping[Location, datetime],
    offerings: Mapping[str, Breaker],
    tick: Tick,
) -> ProvisionPool:
    concern_it = {
        key: breaker
        for key, breaker in offerings.items()
        if location_of_offering(key) in member.places
    }
    return ProvisionPool(
        pool_id=member.pool_id,
        tick=tick.name,
        at=tick.due,
        not_before=pauses(places[name] for name in member.places if name in places),
        stale={name: stale[name] for name in member.places if name in stale},
        offerings=concern_it if len(concern_it) <= MOST_OFFERINGS else None,
    )


def _message(message: ProvisionPool) -> Message:
    return Message(message.to_json(), group=message.pool_id, dedup=message.dedup)
