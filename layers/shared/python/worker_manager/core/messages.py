"""What the functions say to each other, as JSON that both sides can read.

A message is a request to look, not a fact: whoever receives it reads the tables again, so that
duplicates, reordering and losses cost time at most.  ``at`` is when its tick was due; ticks older
than two intervals are acknowledged unread.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from worker_manager.core.breaker import Breaker
from worker_manager.core.ids import event_id
from worker_manager.core.model import (
    Json,
    Location,
    MachineStatus,
    Sighting,
    WorkerKey,
)
from worker_manager.core.moments import from_wire, to_wire

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime


RESUME = "#resume#"
"""What stands in the tick of a pool that is looked at again, before the tick it began with."""


def _moments(given: Mapping[str, str]) -> dict[Location, datetime]:
    return {Location(name): from_wire(text) for name, text in given.items()}


def _texts(given: Mapping[Location, datetime]) -> dict[str, str]:
    return {name: to_wire(moment) for name, moment in given.items()}


@dataclass(frozen=True, slots=True)
class ProvisionPool:
    """Plan one pool.

    ``not_before`` and ``stale`` (since when) are by location, ``offerings`` the shared breakers
    that may concern it; ``None`` where they are too many for a message, and it has to ask.
    """

    pool_id: str
    tick: str
    at: datetime | None = None
    not_before: Mapping[Location, datetime] = field(default_factory=dict)
    stale: Mapping[Location, datetime] = field(default_factory=dict)
    offerings: Mapping[str, Breaker] | None = field(default_factory=dict)

    @property
    def dedup(self) -> str:
        """FIFO deduplication id: the same tick of the same pool is one message."""
        return event_id("provision", self.pool_id, self.tick)

    def to_json(self) -> dict[str, Any]:
        """The message body."""
        return {
            "pool": self.pool_id,
            "tick": self.tick,
            "at": to_wire(self.at) if self.at else None,
            "notBefore": _texts(self.not_before),
            "stale": _texts(self.stale),
            "offerings": None
            if self.offerings is None
            else {key: breaker.to_json() for key, breaker in self.offerings.items()},
        }

    @classmethod
    def from_json(cls, body: Json) -> ProvisionPool:
        """From a message body."""
        offerings = body.get("offerings", {})
        return cls(
            pool_id=body["pool"],
            tick=body["tick"],
            at=from_wire(body["at"]) if body.get("at") else None,
            not_before=_moments(body.get("notBefore", {})),
            stale=_moments(body.get("stale", {})),
            offerings=None
            if offerings is None
            else {key: Breaker.from_json(stored) for key, stored in offerings.items()},
        )


def pool_changed(pool_id: str, version: int, *, changed: datetime) -> ProvisionPool:
    """Look at a pool at once because its definition changed; never stale.

    ``changed`` is when it did: a pool that was deleted and made anew begins at version 1 again,
    and its changes must not be taken for those of the first.
    """
    return ProvisionPool(pool_id, f"{to_wire(changed)}#change-{version}")


def look_again(pool_id: str, at: datetime, why: str) -> ProvisionPool:
    """Look at a pool at once because something happened at ``at``; never stale.

    ``why`` is the id of what happened: the same once more is the same message.
    """
    return ProvisionPool(pool_id, f"{to_wire(at)}#again-{why[:22]}")


@dataclass(frozen=True, slots=True)
class ScanPool:
    """Settle one pool's workers in one location against a complete list.

    ``listed_at`` is when the list began, and judges rows; ``complete_at`` when it was read to its
    end, and tells how old the message is: a long list is not a stale one.  ``strays_reported``
    tells that an earlier list had found strays there and that they were not too many to believe.
    """

    pool_id: str
    location: Location
    tick: str
    listed_at: datetime
    sightings: tuple[Sighting, ...] = ()
    strays_reported: bool = False
    complete_at: datetime | None = None

    @property
    def group(self) -> str:
        """FIFO group."""
        return f"{self.pool_id}@{self.location}"

    @property
    def dedup(self) -> str:
        """FIFO deduplication id."""
        return event_id("scan", self.pool_id, self.location, self.tick)

    def to_json(self) -> dict[str, Any]:
        """The message body."""
        return {
            "pool": self.pool_id,
            "location": self.location,
            "tick": self.tick,
            "listedAt": to_wire(self.listed_at),
            "completeAt": to_wire(self.complete_at) if self.complete_at else None,
            "strays": self.strays_reported,
            "sightings": [_sighting_json(sighting) for sighting in self.sightings],
        }

    @classmethod
    def from_json(cls, body: Json) -> ScanPool:
        """From a message body."""
        location = Location(body["location"])
        return cls(
            pool_id=body["pool"],
            location=location,
            tick=body["tick"],
            listed_at=from_wire(body["listedAt"]),
            complete_at=from_wire(body["completeAt"]) if body.get("completeAt") else None,
            strays_reported=body["strays"],
            sightings=tuple(
                _sighting(body["pool"], location, given) for given in body["sightings"]
            ),
        )


def _sighting_json(sighting: Sighting) -> list[Any]:
    return [
        sighting.key.group,
        sighting.key.worker_id,
        sighting.status.value,
        sighting.launch_config_id,
        sighting.order_id,
        to_wire(sighting.launched) if sighting.launched else None,
        *([dict(sighting.identity)] if sighting.identity else []),
    ]


def _sighting(pool_id: str, location: Location, given: list[Any]) -> Sighting:
    group, worker_id, status, launch_config_id, order_id, launched, *identity = given
    return Sighting(
        key=WorkerKey(pool_id, group, worker_id),
        location=location,
        status=MachineStatus(status),
        launch_config_id=launch_config_id,
        order_id=order_id,
        launched=from_wire(launched) if launched else None,
        identity=identity[0] if identity else {},
    )


@dataclass(frozen=True, slots=True)
class Terminate:
    """Delete the machine of a worker whose row says ``stopping``."""

    key: WorkerKey

    def to_json(self) -> dict[str, Any]:
        """The message body."""
        return {
            "kind": "terminate",
            "pool": self.key.pool_id,
            "group": self.key.group,
            "worker": self.key.worker_id,
        }


@dataclass(frozen=True, slots=True)
class Resume:
    """Look at a pool again: an order of it was refused with a time to wait."""

    pool_id: str
    tick: str

    @classmethod
    def after(cls, pool_id: str, tick: str, moment: datetime) -> Resume:
        """Look again after ``moment``, because an order of the plan of ``tick`` has to wait.

        The name is that of the tick it began with, however often it had to wait since.
        """
        first = tick.partition(RESUME)[2] or tick
        return cls(pool_id, f"{to_wire(moment)}{RESUME}{first}")

    def to_json(self) -> dict[str, Any]:
        """The message body."""
        return {"kind": "resume", "pool": self.pool_id, "tick": self.tick}


@dataclass(frozen=True, slots=True)
class Follow:
    """Look at how the creation of an order's machines goes on, in one location.

    ``since`` is when that began.
    """

    location: Location
    keys: tuple[WorkerKey, ...]
    order_id: str
    since: datetime

    def to_json(self) -> dict[str, Any]:
        """The message body; the pool is that of the first worker, as an order has one."""
        return {
            "kind": "follow",
            "pool": self.keys[0].pool_id,
            "location": self.location,
            "order": self.order_id,
            "since": to_wire(self.since),
            "workers": [[key.group, key.worker_id] for key in self.keys],
        }

    @classmethod
    def from_json(cls, body: Json) -> Follow:
        """From a message body."""
        return cls(
            location=Location(body["location"]),
            keys=tuple(WorkerKey(body["pool"], group, name) for group, name in body["workers"]),
            order_id=body["order"],
            since=from_wire(body["since"]),
        )


@dataclass(frozen=True, slots=True)
class Act:
    """Do what a run of an action asks for, if it is still to be done."""

    run_id: str

    def to_json(self) -> dict[str, Any]:
        """The message body."""
        return {"kind": "act", "run": self.run_id}

    @classmethod
    def from_json(cls, body: Json) -> Act:
        """From a message body; ``ValueError`` for another kind."""
        if body["kind"] != "act":
            raise ValueError(f"unknown kind of message {body['kind']!r}")
        return cls(body["run"])


@dataclass(frozen=True, slots=True)
class Reboot:
    """Reboot the machine of a worker, as a run of an action asks for.

    Whoever has the run sends itself the ``lease_id``, and ``not_before`` when to go on.
    """

    key: WorkerKey
    run_id: str
    lease_id: str | None = None
    not_before: datetime | None = None

    def to_json(self) -> dict[str, Any]:
        """The message body."""
        return {
            "kind": "reboot",
            "pool": self.key.pool_id,
            "group": self.key.group,
            "worker": self.key.worker_id,
            "run": self.run_id,
            "lease": self.lease_id,
            "notBefore": to_wire(self.not_before) if self.not_before else None,
        }

    @classmethod
    def from_json(cls, body: Json) -> Reboot:
        """From a message body."""
        not_before = body.get("notBefore")
        return cls(
            key=WorkerKey(body["pool"], body["group"], body["worker"]),
            run_id=body["run"],
            lease_id=body.get("lease"),
            not_before=from_wire(not_before) if not_before else None,
        )


Advance = Terminate | Resume | Follow | Reboot
"""What an ``advance`` queue may ask for."""


def advance_from_json(body: Json) -> Advance:
    """A message of an ``advance`` queue; ``ValueError`` for a kind nobody knows."""
    match body["kind"]:
        case "terminate":
            return Terminate(WorkerKey(body["pool"], body["group"], body["worker"]))
        case "resume":
            return Resume(body["pool"], body["tick"])
        case "follow":
            return Follow.from_json(body)
        case "reboot":
            return Reboot.from_json(body)
        case kind:
            raise ValueError(f"unknown kind of message {kind!r}")
