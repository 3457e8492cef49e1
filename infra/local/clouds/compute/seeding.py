"""Fleets put into the simulated Compute Engine at once.  Read next: ``control``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from infra.local.clouds.compute.inserts import AskedDisk, InsertRequest
from infra.local.clouds.compute.instances import Status

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra.local.clouds.compute.cloud import ComputeCloud


def seed(
    cloud: ComputeCloud,
    zone: str,
    number: int,
    *,
    labels: Mapping[str, str],
    disk_labels: Mapping[str, str] | None = None,
    machine_type: str = "n2-standard-4",
    spot: bool = False,
    prefix: str = "seeded",
) -> list[str]:
    """Put many running instances, each with a boot disk, into a zone; their ids."""
    body: dict[str, Any] = {
        "networkInterfaces": [{"network": "global/networks/default"}],
        "scheduling": {"provisioningModel": "SPOT" if spot else "STANDARD"},
    }
    ids = []
    with cloud.lock:
        start = len(cloud.estate.instances)
        for index in range(start, start + number):
            name = f"{prefix}-{index}"
            disk = AskedDisk(
                name=name,
                size_gb=10,
                disk_type="pd-standard",
                labels=disk_labels or {},
                auto_delete=True,
                image="seeded",
            )
            request = InsertRequest(
                name=name,
                machine_type=machine_type,
                body=body,
                labels=labels,
                disks=(disk,),
                spot=spot,
            )
            instance = cloud.estate.plan(zone, request)
            instance.is_seeded, instance.visible_at = True, instance.created_at
            instance.change(Status.RUNNING)
            cloud.estate.keep(instance)
            ids.append(instance.instance_id)
    return ids


def seed_disks(
    cloud: ComputeCloud, zone: str, number: int, *, labels: Mapping[str, str], prefix: str = "left"
) -> list[str]:
    """Put many disks that are attached to nothing into a zone; their names."""
    with cloud.lock:
        start = len(cloud.estate.disks)
        names = [f"{prefix}-{index}" for index in range(start, start + number)]
        for name in names:
            cloud.estate.add_disk(zone, name, labels)
        return names
