"""One simulated instance: what Compute Engine knows of it, and how its status moves with time.

Statuses follow "Compute Engine instance lifecycle".  Nothing runs in the background: an instance
settles into the status that is due whenever it is looked at.  Read next: ``estate``.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf
from typing import TYPE_CHECKING, Any

from infra.local.clouds.compute.links import BASE, dig, region_of, timestamp
from infra.local.clouds.compute.masks import EVERYTHING, Mask

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from infra.local.clouds.compute.disks import Disk
    from infra.local.clouds.compute.operations import Operation


class Status(StrEnum):
    """The statuses that occur here."""

    PROVISIONING = "PROVISIONING"
    STAGING = "STAGING"
    RUNNING = "RUNNING"
    STOPPING = "STOPPING"
    TERMINATED = "TERMINATED"


@dataclass(frozen=True, slots=True)
class Attachment:
    """A persistent disk on an instance."""

    disk: Disk
    auto_delete: bool


@dataclass(slots=True, eq=False)
class Instance:
    """One machine.  Times are seconds on the cloud's clock."""

    instance_id: str
    """Numeric."""
    sequence: int
    """Order of making over all zones; pages of a list continue by it."""
    project: str
    name: str
    zone: str
    instance_type: str
    spot: bool
    body: Mapping[str, Any]
    """As it was asked for; never changed."""
    private_ip: str
    created_at: float
    visible_at: float
    """Before this moment lists do not show the instance."""
    labels: dict[str, str] = field(default_factory=dict)
    disks: tuple[Attachment, ...] = ()
    status: Status = Status.PROVISIONING
    steps: Sequence[tuple[float, Status]] = ()
    """Statuses to come, and when."""
    gone_at: float = inf
    making: Operation | None = None
    deletion: Operation | None = None
    is_preempted: bool = False
    reboots: int = 0
    is_seeded: bool = False
    """Made by the control side in bulk; no simulated machine runs on it."""
    _shown: tuple[str, str] = ("", "")

    @property
    def region(self) -> str:
        """The region of its zone."""
        return region_of(self.zone)

    @property
    def path(self) -> str:
        """Its partial link, with the project."""
        return f"projects/{self.project}/zones/{self.zone}/instances/{self.name}"

    def settle(self, now: float) -> Status:
        """Take the steps that are due, if any, and tell the status."""
        while self.steps and self.steps[0][0] <= now:
            self.change(self.steps[0][1], self.steps[1:])
        return self.status

    def change(self, status: Status, steps: Sequence[tuple[float, Status]] = ()) -> None:
        """Enter a status now, and others later."""
        self.status, self.steps, self._shown = status, steps, ("", "")

    def look(self, path: Sequence[str]) -> Any:
        """The value of a field by its path, for filters; ``None`` where there is none."""
        if path[0] == "labels":
            return self.labels.get(path[1])
        return dig(self.resource(), path)

    def text(self, mask: Mask = EVERYTHING) -> str:
        """The JSON of the fields that the mask lets through; kept until something changes."""
        if self._shown[0] != mask.text or not self._shown[1]:
            self._shown = (mask.text, json.dumps(mask.cut(self.resource())))
        return self._shown[1]

    def resource(self) -> dict[str, Any]:
        """The settled instance as the API shows it."""
        scope = f"{BASE}projects/{self.project}/zones/{self.zone}"
        return {
            **self.body,
            "kind": "compute#instance",
            "id": self.instance_id,
            "name": self.name,
            "creationTimestamp": timestamp(self.created_at),
            "lastStartTimestamp": timestamp(self.created_at),
            "status": self.status.value,
            "zone": scope,
            "machineType": f"{scope}/machineTypes/{self.instance_type}",
            "labels": self.labels,
            "labelFingerprint": "42WmSpB8rSM=",
            "cpuPlatform": "Unknown CPU Platform",
            "disks": self._disks(),
            "networkInterfaces": self._interfaces(),
            "selfLink": f"{BASE}{self.path}",
        }

    def _disks(self) -> list[dict[str, Any]]:
        return [
            {
                "kind": "compute#attachedDisk",
                "type": "PERSISTENT",
                "mode": "READ_WRITE",
                "source": f"{BASE}{attachment.disk.path}",
                "deviceName": f"persistent-disk-{index}",
                "index": index,
                "boot": index == 0,
                "autoDelete": attachment.auto_delete,
            }
            for index, attachment in enumerate(self.disks)
        ]

    def _interfaces(self) -> list[dict[str, Any]]:
        asked = self.body.get("networkInterfaces") or [{}]
        given = [dict(interface) for interface in asked]
        given[0]["networkIP"] = self.private_ip
        return given


def vcpus_of(machine_type: str) -> int:
    """Virtual processors of a machine type, by the number in its name."""
    if custom := re.search(r"custom-(\d+)-\d+", machine_type):
        return int(custom[1])
    if number := re.search(r"-(\d+)g?(?:-[a-z]+)?$", machine_type):
        return int(number[1])
    return 1 if machine_type.endswith("micro") else 2
