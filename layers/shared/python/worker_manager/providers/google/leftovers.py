"""Disks of ours that no machine uses.

A boot disk goes with its machine where the launch config says ``autoDelete``; others stay, and so
do those of a machine whose insert failed half-way.  Where to read next: ``provider``.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from google.api_core.exceptions import NotFound

from worker_manager.providers.google.clients import time_left
from worker_manager.providers.google.errors import is_about
from worker_manager.providers.google.labels import only_of, pool_of
from worker_manager.providers.google.listing import list_aggregated, moment, zone_of
from worker_manager.providers.protocol import Leftover

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from worker_manager.core.model import Location
    from worker_manager.providers.google.clients import Clients
    from worker_manager.providers.google.listing import Timeouts
    from worker_manager.providers.visit import Visit

logger = logging.getLogger(__name__)

DISK_FIELDS = ("name", "zone", "status", "users", "labels", "creationTimestamp")


def list_unused(
    clients: Clients, location: Location, *, deployment: str, timeouts: Timeouts
) -> Iterator[Leftover]:
    """Disks of a deployment that are attached to nothing and not yet being deleted."""
    return list_aggregated(
        clients,
        location,
        "disks",
        fields=DISK_FIELDS,
        only=only_of(deployment),
        timeouts=timeouts,
        read=_leftover,
    )


def _leftover(disk: Mapping[str, Any]) -> Leftover | None:
    """One disk; ``None`` for one that is used, going, or of a whole region, which we never make."""
    if disk.get("users") or disk.get("status") == "DELETING":
        return None
    if "zone" not in disk:
        logger.warning("a disk of ours in no zone", extra={"disk": disk["name"]})
        return None
    made = disk.get("creationTimestamp")
    return Leftover(
        kind="disk",
        resource_id=f"zones/{zone_of(disk['zone'])}/disks/{disk['name']}",
        since=moment(made) if made else None,
        pool_id=pool_of(disk.get("labels") or {}),
    )


def remove_disk(clients: Clients, location: Location, resource_id: str, visit: Visit) -> None:
    """Delete one disk; already gone is fine, one that a machine uses after all is refused."""
    _, zone, _, name = resource_id.split("/")
    try:
        clients.disks.delete_unary(
            project=location, zone=zone, disk=name, retry=None, timeout=time_left(visit)
        )
    except NotFound as error:
        if not is_about(error, "disks"):
            raise
