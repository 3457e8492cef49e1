"""The older shape of a launch config as one request: a machine with its network and disks in it.

The reference makes an address, an interface and a machine one after the other, and deletes them
so.  Here the interface and the address are declared within the machine
("networkInterfaceConfigurations" of Virtual Machines - Create Or Update), and everything has the
delete option ``Delete``: Azure makes and deletes them together with the machine.
Where to read next: ``launching``, which sends it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from worker_manager.core.model import Json, LaunchOrder
    from worker_manager.providers.azure.naming import MachineNames

NETWORK_API_VERSION = "2022-11-01"
"""The newest one that Azure makes interfaces with inside a machine."""

BESIDE_PROPERTIES = ("zones", "identity", "plan", "extendedLocation", "placement")
"""Fields of a machine that do not stand in its properties."""

NOT_SENT = frozenset(
    {
        *BESIDE_PROPERTIES,
        "location",
        "tags",
        "subnetId",
        "workerConfig",
        "capacityPerInstance",
        "ignoreFailedProvisioningStates",
    }
)
"""Fields of a launch config that are no properties of a machine."""

INTERFACE_FIELDS = (
    "enableAcceleratedNetworking",
    "disableTcpStateTracking",
    "enableFpga",
    "enableIPForwarding",
    "networkSecurityGroup",
    "dnsSettings",
    "dscpConfiguration",
    "auxiliaryMode",
    "auxiliarySku",
)
"""What a launch config may say of its interface; the rest of it is ours."""


def virtual_machine(
    order: LaunchOrder,
    names: MachineNames,
    *,
    tags: Mapping[str, str],
    password: str,
    custom_data: str,
) -> dict[str, Any]:
    """The request that makes one machine of an order.

    A public address comes only with ``workerManager.publicIp``.  Names that the launch config gives
    to disks, and interfaces that it lists, are not used: they could serve one machine at most.
    """
    body = order.body
    return {
        "location": body["location"],
        "tags": dict(tags),
        **{name: body[name] for name in BESIDE_PROPERTIES if name in body},
        "properties": {
            **{name: value for name, value in body.items() if name not in NOT_SENT},
            "osProfile": {
                **_object(body, "osProfile"),
                "computerName": names.computer,
                "adminUsername": names.user,
                "adminPassword": password,
                "customData": custom_data,
            },
            "storageProfile": _storage(_object(body, "storageProfile"), names),
            "networkProfile": {
                "networkApiVersion": NETWORK_API_VERSION,
                "networkInterfaceConfigurations": [
                    _interface(
                        body, names, tags=tags, is_public=order.manager.get("publicIp") is True
                    )
                ],
            },
        },
    }


def _storage(given: Json, names: MachineNames) -> dict[str, Any]:
    """The caller's disks, with our names, deleted with the machine."""
    ours = [_object(given, "osDisk"), *(given.get("dataDisks") or ())]
    os_disk, *data_disks = (
        {**disk, "name": names.disk(number), "deleteOption": "Delete"}
        for number, disk in enumerate(ours)
    )
    return {**given, "osDisk": os_disk, "dataDisks": data_disks}


def _interface(
    body: Json, names: MachineNames, *, tags: Mapping[str, str], is_public: bool
) -> dict[str, Any]:
    """The machine's one interface, in the launch config's subnet."""
    address: dict[str, Any] = {"primary": True, "subnet": {"id": body.get("subnetId")}}
    if is_public:
        address["publicIPAddressConfiguration"] = {
            "name": names.ip,
            "sku": {"name": "Standard"},
            "tags": dict(tags),
            "properties": {"publicIPAllocationMethod": "Static", "deleteOption": "Delete"},
        }
    return {
        "name": names.nic,
        "tags": dict(tags),
        "properties": {
            **_interface_wishes(_object(body, "networkProfile")),
            "primary": True,
            "deleteOption": "Delete",
            "ipConfigurations": [{"name": names.nic, "properties": address}],
        },
    }


def _interface_wishes(profile: Json) -> dict[str, Any]:
    """What the caller wants of the interface, said of the first one, flat or in properties."""
    given = (
        profile.get("networkInterfaceConfigurations") or profile.get("networkInterfaces") or [{}]
    )
    first = {**given[0], **_object(given[0], "properties")}
    return {name: first[name] for name in INTERFACE_FIELDS if name in first}


def _object(within: Json, name: str) -> Json:
    """The object of that name, empty if it is missing."""
    found: Json = within.get(name) or {}
    return found
