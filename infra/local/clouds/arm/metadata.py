"""What simulated machines ask of their cloud: who runs, and each machine's own metadata.

Stands for the instance metadata service ("Azure Instance Metadata Service": instance, attested
document, scheduled events) and for the power switch.  Read next: ``server``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from infra.local.clouds.arm.identity import ISSUER_PATH
from infra.local.clouds.arm.naming import id_of
from infra.local.clouds.arm.resources import Power

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra.local.clouds.arm.cloud import ArmCloud

_POWERED = (Power.STARTING, Power.RUNNING)


def powered(cloud: ArmCloud) -> list[dict[str, Any]]:
    """The machines (but for seeded ones) that are powered, with their power state.

    ``reboots`` counts how often each booted anew.
    """
    return [
        {
            "instance_id": machine.name,
            "state": machine.power.value,
            "reboots": machine.reboots,
        }
        for machine in cloud.machines()
        if not machine.is_seeded and machine.power in _POWERED
    ]


def metadata(cloud: ArmCloud, name: str) -> dict[str, Any]:
    """What the simulated machine itself goes by.

    Raises ``ArmError`` ResourceNotFound when the machine is gone.
    """
    machine = cloud.machine(name)
    return {
        "instance_id": machine.name,
        "vm_id": machine.vm_id,
        "location": machine.location,
        "instance_type": machine.size,
        "spot": machine.spot,
        "tags": machine.tags,
        "custom_data": machine.secrets.get("customData", ""),
    }


def serve(
    cloud: ArmCloud, name: str, path: str, query: Mapping[str, str], *, base: str
) -> dict[str, Any]:
    """Answer a path of the instance metadata service.  Raises ``LookupError`` for others."""
    if not query.get("api-version"):
        raise ValueError("Bad request. api-version was not specified in the request")
    match path:
        case "/metadata/instance":
            return instance(cloud, name)
        case "/metadata/attested/document":
            nonce = query.get("nonce", "")
            signature = cloud.attest(name, nonce=nonce, issuer_url=f"{base}{ISSUER_PATH}")
            return {"encoding": "pkcs7", "signature": signature}
        case "/metadata/scheduledevents":
            return scheduled_events(cloud, name)
    raise LookupError(path)


def instance(cloud: ArmCloud, name: str) -> dict[str, Any]:
    """The ``instance`` document.  Custom data are not in it."""
    machine = cloud.machine(name)
    tags = [{"name": key, "value": value} for key, value in machine.tags.items()]
    profile = machine.properties.get("osProfile") or {}
    return {
        "compute": {
            "location": machine.location,
            "name": machine.name,
            "osProfile": {"computerName": profile.get("computerName", machine.name)},
            "priority": "Spot" if machine.spot else "Regular",
            "resourceGroupName": machine.group,
            "resourceId": id_of(cloud.settings.subscription_id, machine),
            "subscriptionId": cloud.settings.subscription_id,
            "tags": ";".join(f"{key}:{value}" for key, value in machine.tags.items()),
            "tagsList": tags,
            "vmId": machine.vm_id,
            "vmSize": machine.size,
            "zone": machine.zone,
        },
        "network": {"interface": []},
    }


def scheduled_events(cloud: ArmCloud, name: str) -> dict[str, Any]:
    """What is going to be done to the machine: its eviction, if it was warned."""
    machine = cloud.machine(name)
    event = {
        "EventId": machine.vm_id,
        "EventType": "Preempt",
        "ResourceType": "VirtualMachine",
        "Resources": [machine.name],
        "EventStatus": "Scheduled",
        "EventSource": "Platform",
    }
    return {"DocumentIncarnation": 1, "Events": [event] if machine.is_warned else []}
