"""Carrying out requests to make, change and delete resources.

What a request refers to must exist, what it wants must be there to have; then ``lifecycle`` lets it
happen.  Read next: ``machines`` (the request for a machine), ``parts`` (what machines hold),
``deployments`` (many at once).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from infra.local.clouds.arm.errors import ArmError, invalid
from infra.local.clouds.arm.limits import REFUSED_AT_ONCE, Quotas, shortage_of
from infra.local.clouds.arm.machines import MachineRequest, read_machine, read_tags
from infra.local.clouds.arm.parts import Begun, Parts, other_location
from infra.local.clouds.arm.resources import Kind, Machine, Power, Provisioning, Resource

if TYPE_CHECKING:
    from collections.abc import Callable

    from infra.local.clouds.arm.estate import Estate
    from infra.local.clouds.arm.lifecycle import Lifecycle
    from infra.local.clouds.arm.operations import Operation
    from infra.local.clouds.arm.settings import Settings
    from infra.local.clouds.capacity import Capacity

Json = dict[str, Any]


class Builder:
    """Fulfils requests.  Not thread-safe: the cloud's lock guards it."""

    def __init__(
        self,
        estate: Estate,
        lifecycle: Lifecycle,
        *,
        settings: Callable[[], Settings],
        capacity: Capacity,
    ) -> None:
        self.quotas = Quotas()
        self._estate = estate
        self._lifecycle = lifecycle
        self._settings = settings
        self._capacity = capacity
        self._parts = Parts(estate, lifecycle, settings=settings)

    def put(self, kind: Kind, group: str, name: str, body: Json, *, now: float) -> Begun:
        """Make a resource, or change the one of that name.  Raises ``ArmError``."""
        self._estate.group(group)
        if kind is Kind.VM:
            return self._put_machine(group, read_machine(name, body), now)
        return self._parts.put(kind, group, name, body, now)

    def check(self, name: str, body: Json) -> None:
        """Raise the ``ArmError`` that can be told of a machine before anything is made."""
        request = read_machine(name, body)
        self._parts.expect_location(request.location)
        self._refuse_at_once(request)

    def patch(self, resource: Resource, body: Json, now: float) -> Operation:
        """Replace the tags of a resource.  Raises ``ArmError``."""
        self._parts.expect_alive(resource)
        if "tags" in body:
            resource.tags = read_tags(body)
        return self._lifecycle.succeed(resource, now)

    def delete(
        self, kind: Kind, group: str, name: str, *, now: float, force: bool = False
    ) -> Operation | None:
        """Let a resource be deleted; ``None`` when there is none.  Raises ``ArmError``."""
        self._estate.group(group)
        if (found := self._estate.find(kind, group, name)) is None:
            return None
        if found.holder is not None:
            raise self._parts.in_use(found, found.holder)
        return self._lifecycle.delete(found, now, force=force)

    def _put_machine(self, group: str, request: MachineRequest, now: float) -> Begun:
        self._parts.expect_location(request.location)
        found = self._estate.find(Kind.VM, group, request.name)
        if found is not None:
            assert isinstance(found, Machine)
            return Begun(found, self._repeat(found, request, now), is_new=False)
        self._refuse_at_once(request)
        shortage = self._shortage(request)
        nics = [self._parts.nic(group, one, request.location) for one in request.nics]
        disks = [self._parts.disk(group, one) for one in request.disks]
        machine = self._new_machine(group, request, now)
        for nic, known in zip(request.nics, nics, strict=True):
            made = known or self._parts.make_nic(group, nic, request.location, now)
            self._lifecycle.attach(made, machine, deleted_with_holder=nic.deleted_with_holder)
        for index, (disk, disk_known) in enumerate(zip(request.disks, disks, strict=True)):
            made = disk_known or self._parts.make_disk(machine, disk, index, now)
            self._lifecycle.attach(made, machine, deleted_with_holder=disk.deleted_with_holder)
        operation = self._lifecycle.create(machine, now, refusal=shortage)
        return Begun(machine, operation, is_new=True)

    def _repeat(self, machine: Machine, request: MachineRequest, now: float) -> Operation:
        """The same request again, or a change, or a new attempt after a failure."""
        self._parts.expect_alive(machine)
        if machine.location != request.location:
            raise other_location(machine)
        for name, value in request.fixed().items():
            if machine.fixed.get(name) != value:
                message = f"Changing property '{name}' is not allowed."
                raise ArmError("PropertyChangeNotAllowed", message, target=name)
        if machine.state is Provisioning.CREATING and machine.creation is not None:
            return machine.creation
        machine.tags = dict(request.tags)
        if machine.state is Provisioning.FAILED and machine.power is Power.NONE:
            self._refuse_at_once(request)
            return self._lifecycle.create(machine, now, refusal=self._shortage(request))
        return self._lifecycle.succeed(machine, now)

    def _new_machine(self, group: str, request: MachineRequest, now: float) -> Machine:
        machine = Machine(
            kind=Kind.VM,
            group=self._estate.group(group).name,
            name=request.name,
            location=request.location,
            sequence=next(self._estate.numbers),
            created_at=now,
            visible_at=now + self._settings().list_lag_seconds,
            tags=dict(request.tags),
            properties=request.properties,
            envelope=request.envelope,
            vm_id=self._lifecycle.new_id(),
            size=request.size,
            spot=request.spot,
            zone=request.zone,
            secrets=request.secrets,
            fixed=request.fixed(),
        )
        self._estate.add(machine)
        return machine

    def _refuse_at_once(self, request: MachineRequest) -> None:
        live = [one for one in self._estate.machines() if one.holds_capacity] if self.quotas else []
        refusal = self.quotas.refusal(request, live, self._settings().quota_code)
        refusal = refusal or self._shortage(request)
        if refusal is not None and refusal.code in (REFUSED_AT_ONCE, self._settings().quota_code):
            raise refusal

    def _shortage(self, request: MachineRequest) -> ArmError | None:
        if not self._capacity:
            return None
        live = [one for one in self._estate.machines() if one.holds_capacity]
        return shortage_of(request, self._capacity, live, self._settings())


def as_power(verb: str) -> tuple[Power, Power]:
    """Through which power state a verb leads, and to which.  Raises ``ArmError``."""
    ways = {
        "start": (Power.STARTING, Power.RUNNING),
        "restart": (Power.RUNNING, Power.RUNNING),
        "powerOff": (Power.STOPPING, Power.STOPPED),
        "deallocate": (Power.DEALLOCATING, Power.DEALLOCATED),
    }
    if verb not in ways:
        raise invalid(f"There is no operation '{verb}'.")
    return ways[verb]
