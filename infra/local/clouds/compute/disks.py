"""Persistent disks.  Read next: ``estate``, which makes them with their instances."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from infra.local.clouds.compute.links import BASE, dig, timestamp
from infra.local.clouds.compute.masks import EVERYTHING, Mask

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(slots=True, eq=False)
class Disk:
    """One disk of a zone; it may outlive its instance."""

    name: str
    sequence: int
    disk_id: str
    project: str
    zone: str
    size_gb: int
    disk_type: str
    created_at: float
    labels: dict[str, str] = field(default_factory=dict)
    user: str = ""
    """The name of the instance that it is attached to; empty when it is not."""

    @property
    def path(self) -> str:
        """Its partial link, with the project."""
        return f"projects/{self.project}/zones/{self.zone}/disks/{self.name}"

    def settle(self, now: float) -> None:
        """Nothing about a disk moves with time."""

    def look(self, path: Sequence[str]) -> Any:
        """The value of a field by its path, for filters; ``None`` where there is none."""
        return dig(self.resource(), path)

    def text(self, mask: Mask = EVERYTHING) -> str:
        """The JSON of the fields that the mask lets through."""
        return json.dumps(mask.cut(self.resource()))

    def resource(self) -> dict[str, Any]:
        """The disk as the API shows it."""
        scope = f"{BASE}projects/{self.project}/zones/{self.zone}"
        shown: dict[str, Any] = {
            "kind": "compute#disk",
            "id": self.disk_id,
            "name": self.name,
            "creationTimestamp": timestamp(self.created_at),
            "zone": scope,
            "status": "READY",
            "sizeGb": str(self.size_gb),
            "type": f"{scope}/diskTypes/{self.disk_type}",
            "selfLink": f"{BASE}{self.path}",
        }
        if self.labels:
            shown["labels"] = self.labels
        if self.user:
            shown["users"] = [f"{scope}/instances/{self.user}"]
        return shown
