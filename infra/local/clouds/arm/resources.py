"""Resources: machines, network interfaces, addresses, disks, and who holds whom.

Read next: ``estate`` (all of them), ``render`` (how they look on the wire).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from infra.local.clouds.arm.operations import Operation


class Kind(StrEnum):
    """The types of resources that exist here, by the last part of their names."""

    VM = "virtualMachines"
    NIC = "networkInterfaces"
    IP = "publicIPAddresses"
    DISK = "disks"

    @property
    def provider(self) -> str:
        """The resource provider that answers for this type."""
        return "Microsoft.Compute" if self in (Kind.VM, Kind.DISK) else "Microsoft.Network"

    @property
    def type(self) -> str:
        """The full name of the type."""
        return f"{self.provider}/{self.value}"


class Provisioning(StrEnum):
    """Provisioning states."""

    CREATING = "Creating"
    UPDATING = "Updating"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    DELETING = "Deleting"


class Power(StrEnum):
    """Power states of machines; ``NONE`` is shown as no power state at all."""

    NONE = ""
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    DEALLOCATING = "deallocating"
    DEALLOCATED = "deallocated"


@dataclass(slots=True, eq=False)
class Resource:
    """A network interface, an address or a disk.  Times are seconds on the cloud's clock."""

    kind: Kind
    group: str
    name: str
    location: str
    sequence: int
    """Order of creation over all kinds; pages of a list continue by it."""
    created_at: float
    visible_at: float
    """Before this moment lists do not show it."""
    tags: dict[str, str] = field(default_factory=dict)
    properties: dict[str, Any] = field(default_factory=dict)
    """As they were sent, without what other fields tell."""
    envelope: dict[str, Any] = field(default_factory=dict)
    """What was sent beside the properties: sku, zones, identity and the like."""
    state: Provisioning = Provisioning.CREATING
    holder: Resource | None = None
    """The machine a NIC or disk is attached to; the NIC an address is on."""
    deleted_with_holder: bool = False
    attached: list[Resource] = field(default_factory=list)
    """What it holds, in order: the first NIC of a machine is primary, the first disk its
    system's; a NIC holds its addresses."""
    creation: Operation | None = None
    """The creation begun last."""
    deletion: Operation | None = None
    """The deletion begun last."""
    turn: int = 0
    """Counts what was begun with it; what was planned in an earlier turn does not happen."""
    gone_at: float = float("inf")
    listed_until: float = float("inf")

    @property
    def key(self) -> tuple[Kind, str, str]:
        """What is unique; names do not know case."""
        return self.kind, self.group.lower(), self.name.lower()

    @property
    def is_gone(self) -> bool:
        """Whether it exists no more."""
        return self.gone_at != float("inf")

    def of_kind(self, kind: Kind) -> list[Resource]:
        """What it holds of a kind."""
        return [one for one in self.attached if one.kind is kind]

    def is_listed(self, now: float) -> bool:
        """Whether lists show it at ``now``."""
        return self.visible_at <= now < self.listed_until


@dataclass(slots=True, eq=False)
class Machine(Resource):
    """A virtual machine."""

    vm_id: str = ""
    size: str = ""
    spot: bool = False
    zone: str = ""
    power: Power = Power.NONE
    failure: tuple[str, str] | None = None
    """Code and message of a creation that failed."""
    secrets: dict[str, Any] = field(default_factory=dict)
    """What was sent and is not shown again: custom data, password."""
    fixed: dict[str, Any] = field(default_factory=dict)
    """What cannot be changed any more, by the names that refusals use."""
    is_seeded: bool = False
    """Made by the control side in bulk; no simulated machine runs on it."""
    is_warned: bool = False
    reboots: int = 0

    @property
    def region(self) -> str:
        """The location, by the name that ``capacity`` has for it."""
        return self.location

    @property
    def instance_type(self) -> str:
        """The size, by the name that ``capacity`` has for it."""
        return self.size

    @property
    def holds_capacity(self) -> bool:
        """Whether it takes up room: it does until it is deallocated or gone."""
        failed = self.state is Provisioning.FAILED and self.power is Power.NONE
        return not (self.is_gone or failed or self.power is Power.DEALLOCATED)


def cores_of(size: str) -> int:
    """Cores of a size, by the first number in its name (``Standard_D32ads_v5`` has 32)."""
    digits = ""
    for letter in size.partition("_")[2]:
        if letter.isdigit():
            digits += letter
        elif digits:
            break
    return int(digits or 2)
