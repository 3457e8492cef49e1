"""A cloud for the simulated day: offerings with capacity, quotas, images that may be broken.

It knows no calls or tokens, only what a day depends on: whether machines are granted, how long
they take, and when they are gone.  Where to read next: ``day_pool`` (who asks), ``day``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING

from worker_manager.core.model import Location, MachineStatus, Sighting, WorkerKey

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from random import Random

    from worker_manager.core.plans import Order

PENDING = timedelta(seconds=20)
"""From the launch until a machine runs."""
STOPPING = timedelta(seconds=60)
"""From the delete until it is gone."""
BOOT_SECONDS = (90.0, 180.0)
"""From the launch until a healthy machine registers, evenly spread."""


@dataclass(slots=True)
class Machine:
    """One machine; ``told`` is when its delete was asked for."""

    key: WorkerKey
    location: Location
    offering: str
    order: Order
    image: str
    launched: datetime
    boots_at: datetime | None
    """When it registers; ``None`` if its image is broken."""
    told: datetime | None = None
    has_asked_for_work: bool = False
    has_worked: bool = False

    def status(self, now: datetime) -> MachineStatus:
        """As a list shows it."""
        if self.told is not None:
            return MachineStatus.STOPPING
        return MachineStatus.PENDING if now - self.launched < PENDING else MachineStatus.RUNNING


@dataclass(slots=True)
class Refusal:
    """A call that got less than it asked for."""

    kind: str
    at: datetime


@dataclass
class DayCloud:
    """What there is, what may be had, and what was refused.

    ``capacity`` is by offering and ``quota`` by location, both in machines; what is not named has
    no limit.
    """

    rng: Random
    capacity: dict[str, int] = field(default_factory=dict)
    quota: dict[Location, int] = field(default_factory=dict)
    broken_images: set[str] = field(default_factory=set)
    machines: dict[WorkerKey, Machine] = field(default_factory=dict)
    ended: list[Machine] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    machine_seconds: float = 0.0
    _numbers: Iterator[int] = field(default_factory=count)

    def launch(
        self, order: Order, *, pool_id: str, image: str, now: datetime
    ) -> tuple[list[Machine], str | None]:
        """As many of an order's machines as there is room for, and why not all of them."""
        room, kind = self._room(order.offering, order.location)
        granted = [self._start(order, pool_id, image, now) for _ in range(min(order.count, room))]
        if len(granted) == order.count:
            return granted, None
        self.refusals.append(Refusal(kind, now))
        return granted, kind

    def terminate(self, key: WorkerKey, now: datetime) -> None:
        """Begin to delete a machine; a repeat does nothing."""
        machine = self.machines.get(key)
        if machine is not None and machine.told is None:
            machine.told = now

    def list(self, location: Location, now: datetime) -> list[Sighting]:
        """All machines of a location that are not gone."""
        self._clear(now)
        return [
            Sighting(
                key=machine.key,
                location=location,
                status=machine.status(now),
                launch_config_id=machine.order.launch_config_id,
                order_id=machine.order.order_id,
            )
            for machine in self.machines.values()
            if machine.location == location
        ]

    def close(self, now: datetime) -> None:
        """The day is over: machines that are left are paid for until now."""
        for machine in self.machines.values():
            self._pay(machine, now)
        self.machines.clear()

    def _room(self, offering: str, location: Location) -> tuple[int, str]:
        here = [machine for machine in self.machines.values() if machine.location == location]
        same = sum(machine.offering == offering for machine in here)
        free = self.capacity.get(offering, 1_000_000) - same
        using = sum(machine.told is None for machine in here)
        allowed = self.quota.get(location, 1_000_000) - using
        if allowed < free:
            return max(0, allowed), "quota-exceeded"
        return max(0, free), "no-capacity"

    def _start(self, order: Order, pool_id: str, image: str, now: datetime) -> Machine:
        key = WorkerKey(pool_id, order.location, f"i-{next(self._numbers):08x}")
        boot = timedelta(seconds=self.rng.uniform(*BOOT_SECONDS))
        machine = Machine(
            key=key,
            location=order.location,
            offering=order.offering,
            order=order,
            image=image,
            launched=now,
            boots_at=None if image in self.broken_images else now + boot,
        )
        self.machines[key] = machine
        return machine

    def _clear(self, now: datetime) -> None:
        gone = [
            m for m in self.machines.values() if m.told is not None and now >= m.told + STOPPING
        ]
        for machine in gone:
            del self.machines[machine.key]
            assert machine.told is not None
            self._pay(machine, machine.told + STOPPING)

    def _pay(self, machine: Machine, until: datetime) -> None:
        self.machine_seconds += (until - machine.launched).total_seconds()
        self.ended.append(machine)
