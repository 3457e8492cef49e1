"""The machines of a pretend cloud, on a clock of the caller's.

Machines are never forgotten, so that a test can ask what ever existed.  Where to read next:
``fake``, the provider that launches and lists them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from threading import RLock
from typing import TYPE_CHECKING

from worker_manager.core.model import MachineStatus, Sighting, WorkerKey

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from worker_manager.core.model import LaunchOrder, Location

ALIVE = frozenset({MachineStatus.PENDING, MachineStatus.RUNNING, MachineStatus.STOPPED})


@dataclass(slots=True)
class Machine:
    """One machine, from its launch for ever."""

    key: WorkerKey
    location: Location
    deployment: str
    order: LaunchOrder
    launched: datetime
    identity: Mapping[str, str]
    stopped: datetime | None = None
    terminated: datetime | None = None
    gone: datetime | None = None
    protected: bool = False
    reboots: int = 0


@dataclass
class FakeCloud:
    """The machines behind one or several ``FakeProvider``s, and the clock they live by.

    ``boot_time`` passes between launch and running, ``deletion_time`` between terminate and gone.
    A machine younger than ``list_lag`` is in no answer yet.
    """

    clock: Callable[[], datetime]
    boot_time: timedelta = timedelta()
    deletion_time: timedelta = timedelta()
    list_lag: timedelta = timedelta()
    machines: dict[WorkerKey, Machine] = field(default_factory=dict)
    capacity: dict[str, int] = field(default_factory=dict)
    """launch config id → machines that may be alive at once; unlimited where absent"""
    lock: RLock = field(default_factory=RLock)
    """held while a provider acts, so that threads may share the cloud"""

    def status(self, machine: Machine) -> MachineStatus:
        """The machine's state now."""
        now = self.clock()
        if machine.gone is not None and machine.gone <= now:
            return MachineStatus.GONE
        if machine.terminated is not None:
            return MachineStatus.STOPPING
        if machine.stopped is not None:
            return MachineStatus.STOPPED
        booted = machine.launched + self.boot_time <= now
        return MachineStatus.RUNNING if booted else MachineStatus.PENDING

    def alive(self, *, launch_config_id: str | None = None) -> list[Machine]:
        """Machines that nobody has told to go, of one launch config or of all."""
        return [
            machine
            for machine in self.machines.values()
            if self.status(machine) in ALIVE
            and launch_config_id in (None, machine.order.launch_config_id)
        ]

    def ordered(self, order_id: str) -> list[Machine]:
        """Machines that an order ever brought, in the order of their index."""
        return [found for found in self.machines.values() if found.order.order_id == order_id]

    def room(self, launch_config_id: str) -> int | None:
        """How many more machines a launch config may get; ``None`` is any number."""
        if launch_config_id not in self.capacity:
            return None
        used = len(self.alive(launch_config_id=launch_config_id))
        return max(0, self.capacity[launch_config_id] - used)

    def launch(self, order: LaunchOrder) -> list[Machine]:
        """New machines for an order, as many as there is room for."""
        room = self.room(order.launch_config_id)
        count = order.count if room is None else min(order.count, room)
        machines = [self.machine(order, index) for index in range(count)]
        self.machines.update({machine.key: machine for machine in machines})
        return machines

    def machine(self, order: LaunchOrder, index: int) -> Machine:
        """The order's machine with this index: always the same id and address."""
        digest = sha256(f"{order.order_id}/{index}".encode()).digest()
        return Machine(
            key=WorkerKey(order.pool_id, order.location, f"i-{digest.hex()[:17]}"),
            location=order.location,
            deployment=order.inputs["deployment"],
            order=order,
            launched=self.clock(),
            identity={
                "region": order.location,
                "privateIp": ".".join(["10", *map(str, digest[:3])]),
            },
        )

    def stop(self, key: WorkerKey) -> None:
        """Power a machine off from within; it keeps costing."""
        self.machines[key].stopped = self.clock()

    def protect(self, key: WorkerKey) -> None:
        """Forbid a machine's termination, as somebody may in a cloud's console."""
        self.machines[key].protected = True

    def vanish(self, key: WorkerKey) -> None:
        """Take a machine away at once, as a spot market does."""
        machine = self.machines[key]
        machine.terminated = machine.terminated or self.clock()
        machine.gone = self.clock()

    def terminate(self, machine: Machine) -> None:
        """Begin to take a machine away; harmless when repeated."""
        if machine.terminated is None:
            machine.terminated = self.clock()
            machine.gone = machine.terminated + self.deletion_time

    def is_visible(self, machine: Machine) -> bool:
        """Whether answers show the machine already."""
        return machine.launched + self.list_lag <= self.clock()

    def sighting(self, machine: Machine) -> Sighting:
        """The machine as an answer shows it."""
        return Sighting(
            key=machine.key,
            location=machine.location,
            status=self.status(machine),
            launch_config_id=machine.order.launch_config_id,
            order_id=machine.order.order_id,
            launched=machine.launched,
            identity=machine.identity,
        )
