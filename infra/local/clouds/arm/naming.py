"""Resource ids: written and read.  Azure does not know case in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from infra.local.clouds.arm.errors import invalid

if TYPE_CHECKING:
    from infra.local.clouds.arm.resources import Resource


class ResourceName(NamedTuple):
    """What an id of a resource in a resource group says."""

    type: str
    """As it was written: ``Microsoft.Network/networkInterfaces``."""
    group: str
    name: str


def group_id(subscription: str, group: str) -> str:
    """The id of a resource group."""
    return f"/subscriptions/{subscription}/resourceGroups/{group}"


def id_of(subscription: str, resource: Resource) -> str:
    """The id of a resource."""
    home = group_id(subscription, resource.group)
    return f"{home}/providers/{resource.kind.type}/{resource.name}"


def read_id(resource_id: str) -> ResourceName:
    """Take an id apart.  Raises ``ArmError`` for what is none."""
    parts = resource_id.split("/")
    if len(parts) < 9 or parts[1].lower() != "subscriptions" or parts[5].lower() != "providers":
        raise invalid(f"'{resource_id}' is not a valid resource id.", "id")
    return ResourceName(f"{parts[6]}/{parts[7]}", parts[4], parts[8])
