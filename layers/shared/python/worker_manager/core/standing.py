"""How each launch config stands in a plan: whether it takes part, with what weight, and why.

The weight of one that takes part::

    base   = initialWeight × what its outcomes leave (``health.outcome_factor``)
    fair   = base / sum of all bases
    step   = max(existing, wanted)
    weight = fair × (existing + step) / step − its own existing / step, hardly above 0 at least

``fair`` is the share of the pool that it should have, and ``step`` so much new capacity, spread by
these weights, brings the pool there: with 10 running on A and 5 on B the next go 0.33 / 0.66, and
a burst ends at the fair shares whatever was there before.  Where no outcome leaves anybody
anything, all count as equally bad, by their initialWeight; initialWeight 0 means off, always.
Room below a hard maximum is a limit and no weight.

Where to read next: ``selector`` (the draw by these weights), ``planning`` (who asks).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from worker_manager.core.breaker import Breaker, credentials_key
from worker_manager.core.health import Health, Waiting, lateness, outcome_factor
from worker_manager.core.model import State
from worker_manager.core.moments import to_wire
from worker_manager.core.tally import Counts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime, timedelta

    from worker_manager.core.model import LaunchConfigHead, Location, Worker
    from worker_manager.core.plans import Pause

SMALLEST_WEIGHT = 1e-100
"""What is left of a weight at least: small enough for no odds, large enough for arithmetic."""


class Held(StrEnum):
    """Why a launch config takes no part in a plan."""

    OFF = "switched off by initialWeight 0"
    PAUSED = "paused"
    NO_ROOM = "at its maximum"
    POOL_FULL = "the pool is at its maximum"
    WAITING = "its location asked for a pause"
    UNLISTED = "its location cannot be listed"
    BREAKER = "its breaker is open"
    OFFERING = "what it asks for is out of capacity or quota"
    PROVIDER = "the provider's credentials do not hold there"


@dataclass(frozen=True, slots=True)
class Conditions:
    """What may hold a launch config back, besides itself.

    ``breakers`` and ``pauses`` are by launch config id, ``offerings`` the shared breakers by
    offering; ``not_before`` and ``stale`` (since when) by location.
    """

    now: datetime
    stale_after: timedelta
    breakers: Mapping[str, Breaker] = field(default_factory=dict)
    pauses: Mapping[str, Pause] = field(default_factory=dict)
    offerings: Mapping[str, Breaker] = field(default_factory=dict)
    not_before: Mapping[Location, datetime] = field(default_factory=dict)
    stale: Mapping[Location, datetime] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Standing:
    """One launch config in one plan.

    ``room`` is in machines, ``existing`` in capacity.  ``factor`` is what its outcomes leave of
    its initial weight.  ``weight`` is 0 for one that is held; ``breaker`` is the one that holds
    it, and ``shared`` the offering under which that is kept, if it is not its own.
    """

    head: LaunchConfigHead
    room: int
    existing: int
    factor: float
    held: Held | None = None
    breaker: Breaker | None = None
    shared: str | None = None
    pause: Pause | None = None
    weight: float = 0.0

    @property
    def may_be_probed(self) -> bool:
        """Whether only a breaker keeps it from taking part."""
        return self.held in (Held.BREAKER, Held.OFFERING, Held.PROVIDER) and self.room > 0

    def to_json(self) -> dict[str, Any]:
        """As a stored decision tells it."""
        told: dict[str, Any] = {
            "weight": round(self.weight, 4),
            "initialWeight": self.head.initial_weight,
            "existing": self.existing,
            "room": self.room,
        }
        if self.factor < 1:
            told["healthFactor"] = round(self.factor, 4)
        if self.held is not None:
            told["held"] = self.held.value
        if self.breaker is not None:
            told["breaker"] = self.breaker.to_json()
        if self.shared is not None:
            told["offering"] = self.shared
        if self.pause is not None:
            told["pausedUntil"] = to_wire(self.pause.until)
        return told


def offering_key(head: LaunchConfigHead, pool_id: str) -> str:
    """Under which the breaker of what ``head`` asks for is kept; its own where nothing is known."""
    return head.offering or f"{head.location}/{pool_id}/{head.launch_config_id}"


def forgiven(
    pool_id: str,
    heads: Iterable[LaunchConfigHead],
    breakers: Mapping[str, Breaker],
    offerings: Mapping[str, Breaker],
) -> dict[str, datetime]:
    """From when on outcomes count, by launch config: since the last of its breakers closed.

    What a place refused while it had nothing is not held against it once it has.
    """
    found = {}
    for head in heads:
        name = head.launch_config_id
        keys = (credentials_key(head.location), offering_key(head, pool_id))
        shared = (offerings.get(key) for key in keys)
        known = (breakers.get(name), *shared)
        closed = [one.since for one in known if one is not None and one.is_closed]
        if closed:
            found[name] = max(closed)
    return found


def location_of_offering(key: str) -> str:
    """The location with which the key of an offering begins."""
    return key.partition("/")[0]


def waiting_machines(workers: Iterable[Worker], now: datetime) -> dict[str, Waiting]:
    """Machines that have not registered yet, by launch config."""
    found: dict[str, Waiting] = {}
    for worker in workers:
        if worker.state is State.REQUESTED and worker.launch_config_id:
            before = found.get(worker.launch_config_id, Waiting())
            late = before.late + lateness(now - worker.created)
            found[worker.launch_config_id] = Waiting(before.count + 1, late)
    return found


def stand(
    pool_id: str,
    heads: Iterable[LaunchConfigHead],
    *,
    counts: Mapping[str, Counts],
    health: Mapping[str, Health],
    waiting: Mapping[str, Waiting],
    conditions: Conditions,
    maximum: int,
    wanted: int,
) -> list[Standing]:
    """Where every launch config of a pool stands, in the given order.

    ``maximum`` is the pool's, for those without a limit of their own; ``wanted`` the capacity to
    be ordered.
    """
    found = []
    for head in heads:
        name = head.launch_config_id
        limit = maximum if head.max_capacity is None else min(head.max_capacity, maximum)
        counted = counts.get(name, Counts())
        room = max(0, limit - counted.total) // head.capacity_per_instance
        is_its_own = head.max_capacity is not None and head.max_capacity <= maximum
        full = Held.NO_ROOM if is_its_own else Held.POOL_FULL
        standing = Standing(
            head=head,
            room=room,
            held=full if room == 0 else None,
            existing=counted.existing,
            factor=outcome_factor(
                health.get(name, Health()),
                waiting.get(name, Waiting()),
                running=counted.running // head.capacity_per_instance,
            ),
        )
        found.append(_held(standing, pool_id, conditions))
    return _weighed(found, wanted)


def _held(standing: Standing, pool_id: str, conditions: Conditions) -> Standing:
    head, now = standing.head, conditions.now
    name = head.launch_config_id
    if head.initial_weight <= 0:
        return replace(standing, held=Held.OFF)
    pause = conditions.pauses.get(name)
    if pause is not None and pause.until > now:
        return replace(standing, held=Held.PAUSED, pause=pause)
    if standing.held is not None:
        return standing
    until = conditions.not_before.get(head.location)
    if until is not None and until > now:
        return replace(standing, held=Held.WAITING)
    since = conditions.stale.get(head.location)
    if since is not None and now - since > conditions.stale_after:
        return replace(standing, held=Held.UNLISTED)
    return _behind_breakers(standing, offering_key(head, pool_id), conditions)


def _behind_breakers(standing: Standing, offering: str, conditions: Conditions) -> Standing:
    """Held by the first breaker that is not closed, the widest one first."""
    credentials = credentials_key(standing.head.location)
    for key, held in ((credentials, Held.PROVIDER), (offering, Held.OFFERING)):
        shared = conditions.offerings.get(key)
        if shared is not None and not shared.is_closed:
            return replace(standing, held=held, breaker=shared, shared=key)
    own = conditions.breakers.get(standing.head.launch_config_id)
    if own is not None and not own.is_closed:
        return replace(standing, held=Held.BREAKER, breaker=own)
    return standing


def _weighed(standings: Sequence[Standing], wanted: int) -> list[Standing]:
    """The weights of those that take part; they add up to 1 where none has more than its share."""
    part = [standing for standing in standings if standing.held is None]
    bases = {s.head.launch_config_id: s.head.initial_weight * s.factor for s in part}
    if not any(bases.values()):
        bases = {s.head.launch_config_id: s.head.initial_weight for s in part}
    total = sum(bases.values())
    existing = sum(standing.existing for standing in part)

    step = max(existing, wanted, 1)

    def weight(standing: Standing) -> float:
        fair = bases[standing.head.launch_config_id] / total
        return max(SMALLEST_WEIGHT, (fair * (existing + step) - standing.existing) / step)

    return [replace(s, weight=weight(s)) if s.held is None else s for s in standings]


def launch_rate(standing: Iterable[Standing]) -> float:
    """How much of what is wanted is ordered: where all fail, less, but never nothing.

    One launch config that works takes the whole, so its outcomes alone decide.
    """
    return max((s.factor for s in standing if s.held is None), default=0.0) or 0.01
