"""Network interfaces, addresses and disks: made alone or with a machine, found, expected.

Read next: ``building``, which makes machines of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from infra.local.clouds.arm.errors import ArmError
from infra.local.clouds.arm.machines import (
    DiskRequest,
    NicRequest,
    read_location,
    read_tags,
)
from infra.local.clouds.arm.naming import id_of, read_id
from infra.local.clouds.arm.resources import Kind, Machine, Provisioning, Resource

if TYPE_CHECKING:
    from collections.abc import Callable

    from infra.local.clouds.arm.estate import Estate
    from infra.local.clouds.arm.lifecycle import Lifecycle
    from infra.local.clouds.arm.operations import Operation
    from infra.local.clouds.arm.settings import Settings

Json = dict[str, Any]


class Begun(NamedTuple):
    """What an accepted request made or found, and the operation that it began."""

    resource: Resource
    operation: Operation
    is_new: bool


class Parts:
    """Makes and finds what machines hold.  Not thread-safe: the cloud's lock guards it."""

    def __init__(
        self, estate: Estate, lifecycle: Lifecycle, *, settings: Callable[[], Settings]
    ) -> None:
        self._estate = estate
        self._lifecycle = lifecycle
        self._settings = settings

    def nic(self, group: str, nic: NicRequest, location: str) -> Resource | None:
        """The existing NIC that is asked for; ``None`` where one is to be made."""
        if not nic.resource_id:
            return None
        found = self._referred(Kind.NIC, nic.resource_id)
        if found.location != location:
            message = f"NIC '{nic.resource_id}' is not in the location {location} of the machine."
            raise ArmError("InvalidResourceReference", message)
        if found.holder is not None:
            raise self.in_use(found, found.holder)
        return found

    def disk(self, group: str, disk: DiskRequest) -> Resource | None:
        """The existing disk that is asked for; ``None`` where one is to be made."""
        if disk.resource_id:
            found = self._referred(Kind.DISK, disk.resource_id)
            if found.holder is not None:
                raise self.in_use(found, found.holder)
            return found
        if disk.name and self._estate.find(Kind.DISK, group, disk.name) is not None:
            raise ArmError(
                "ConflictingUserInput",
                f"Disk '{disk.name}' already exists in resource group '{group.upper()}'. Only "
                "CreateOption.Attach is supported.",
            )
        return None

    def make_nic(self, group: str, nic: NicRequest, location: str, now: float) -> Resource:
        """A NIC made by Compute: under the configured name with something behind it."""
        made = self._lifecycle.make(
            Kind.NIC,
            group,
            f"{nic.name}-{self._lifecycle.suffix()}",
            location=location,
            now=now,
            tags=nic.tags,
            properties=nic.properties,
        )
        self._lifecycle.create(made, now)
        if (address := nic.address) is not None:
            ip = self._lifecycle.make(
                Kind.IP,
                group,
                f"{address.name}-{self._lifecycle.suffix()}",
                location=location,
                now=now,
                tags=address.tags,
                properties=address.properties,
                envelope=address.envelope,
            )
            self._lifecycle.create(ip, now)
            self._lifecycle.attach(ip, made, deleted_with_holder=address.deleted_with_holder)
        return made

    def make_disk(self, machine: Machine, disk: DiskRequest, index: int, now: float) -> Resource:
        """A disk made by Compute; it has the tags that the machine has at this moment."""
        part = "OsDisk_1" if index == 0 else f"disk{index + 1}"
        managed = disk.properties.get("managedDisk") or {}
        made = self._lifecycle.make(
            Kind.DISK,
            machine.group,
            disk.name or f"{machine.name}_{part}_{self._lifecycle.suffix()}",
            location=machine.location,
            now=now,
            tags=machine.tags,
            properties={"diskSizeGB": disk.properties.get("diskSizeGB", 30)},
            envelope={"sku": {"name": managed.get("storageAccountType", "Standard_LRS")}},
        )
        self._lifecycle.create(made, now)
        return made

    def put(self, kind: Kind, group: str, name: str, body: Json, now: float) -> Begun:
        """Make a NIC, address or disk alone, or change the one of that name."""
        location = read_location(body)
        self.expect_location(location)
        found = self._estate.find(kind, group, name)
        if found is not None:
            self.expect_alive(found)
            if found.location != location:
                raise other_location(found)
            found.tags = read_tags(body)
            operation = found.creation if found.state is Provisioning.CREATING else None
            return Begun(found, operation or self._lifecycle.succeed(found, now), is_new=False)
        properties = dict(body.get("properties") or {})
        addresses = self._addresses(properties) if kind is Kind.NIC else []
        made = self._lifecycle.make(
            kind,
            group,
            name,
            location=location,
            now=now,
            tags=read_tags(body),
            properties=properties,
            envelope={k: body[k] for k in ("sku", "zones") if k in body},
        )
        for address, deleted in addresses:
            self._lifecycle.attach(address, made, deleted_with_holder=deleted)
        return Begun(made, self._lifecycle.create(made, now), is_new=True)

    def _addresses(self, properties: Json) -> list[tuple[Resource, bool]]:
        """The public addresses that a NIC shall have, and whether they go with it."""
        found = []
        for configuration in properties.get("ipConfigurations") or []:
            reference = (configuration.get("properties") or {}).get("publicIPAddress")
            if reference:
                address = self._referred(Kind.IP, str(reference.get("id") or ""))
                if address.holder is not None:
                    message = f"Resource {address.name} is already in use by another NIC."
                    raise ArmError("PublicIPAddressInUse", message)
                option = (reference.get("properties") or {}).get("deleteOption")
                found.append((address, option == "Delete"))
        return found

    def _referred(self, kind: Kind, resource_id: str) -> Resource:
        name = read_id(resource_id)
        found = self._estate.find(kind, name.group, name.name)
        if found is None or name.type.lower() != kind.type.lower():
            message = f"Resource {resource_id} referenced by the request was not found."
            raise ArmError("InvalidResourceReference", message)
        return found

    def expect_location(self, location: str) -> None:
        """Raise ``ArmError`` for a location that there is not."""
        if location not in self._settings().locations:
            raise ArmError(
                "LocationNotAvailableForResourceType",
                f"The provided location '{location}' is not available for resource type.",
            )

    def expect_alive(self, resource: Resource) -> None:
        """Raise ``ArmError`` for a resource that is being deleted."""
        if resource.state is not Provisioning.DELETING:
            return
        if resource.kind is Kind.VM:
            raise ArmError(
                "OperationNotAllowed",
                f"Operation is not allowed on VM '{resource.name}' since the VM is marked for "
                "deletion. You can only retry the Delete operation (or wait for an ongoing one to "
                "complete).",
            )
        message = f"Another operation on resource '{resource.name}' is in progress."
        raise ArmError("AnotherOperationInProgress", message)

    def in_use(self, resource: Resource, holder: Resource) -> ArmError:
        """The refusal to delete, or attach, what is held by another."""
        subscription = self._settings().subscription_id
        own, other = id_of(subscription, resource), id_of(subscription, holder)
        if resource.kind is Kind.NIC:
            return ArmError(
                "NicInUse",
                f"Network Interface {own} is used by existing resource {other}. In order to delete "
                "the network interface, it must be dissociated from the resource. To learn more, "
                "see aka.ms/deletenic.",
            )
        if resource.kind is Kind.IP:
            return ArmError(
                "PublicIPAddressCannotBeDeleted",
                f"Public IP address {own} can not be deleted since it is still allocated to "
                f"resource {other}. In order to delete the public IP, disassociate/detach the "
                "Public IP address from the resource.",
            )
        message = f"Disk {resource.name} is attached to VM {other}."
        return ArmError("OperationNotAllowed", message)


def other_location(resource: Resource) -> ArmError:
    """The refusal to make a resource that exists elsewhere."""
    return ArmError(
        "InvalidResourceLocation",
        f"The resource '{resource.name}' already exists in location '{resource.location}'. A "
        "resource with the same name cannot be created in another location. Please select a new "
        "resource name.",
    )
