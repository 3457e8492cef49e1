"""How resources, deployments and operations look on the wire.

Layouts are those of the responses in the Azure REST API reference (Compute, Virtual Networks,
Resources).  Read next: ``actions``, which sends them.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from infra.local.clouds.arm.naming import group_id, id_of
from infra.local.clouds.arm.resources import Kind, Machine, Power, Provisioning, Resource

if TYPE_CHECKING:
    from infra.local.clouds.arm.estate import Group
    from infra.local.clouds.arm.operations import Operation
    from infra.local.clouds.arm.records import Deployment, Work

Json = dict[str, Any]


def moment(seconds: float) -> str:
    """A time as Azure writes it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")


def resource(subscription: str, found: Resource, *, listed: bool = False) -> Json:
    """A resource; ``listed`` is in a list, where Compute writes groups in upper case."""
    body = _named(subscription, found, listed=listed) | {"tags": found.tags} | found.envelope
    if isinstance(found, Machine):
        body["properties"] = _machine(subscription, found)
    elif found.kind is Kind.DISK:
        body["properties"] = _disk(found)
        if found.holder is not None:
            body["managedBy"] = id_of(subscription, found.holder)
    else:
        body["properties"] = _network(subscription, found)
    return body


def status_only(subscription: str, machine: Machine) -> Json:
    """What a list with ``statusOnly=true`` tells of a machine: no tags, no model."""
    body = _named(subscription, machine, listed=True)
    return body | {"properties": {"instanceView": {"statuses": statuses(machine)}}}


def instance_view(machine: Machine) -> Json:
    """The run-time state of a machine."""
    profile = machine.properties.get("osProfile") or {}
    done = {
        "code": "ProvisioningState/succeeded",
        "level": "Info",
        "displayStatus": "Provisioning succeeded",
    }
    return {
        "computerName": profile.get("computerName", machine.name),
        "disks": [{"name": disk.name, "statuses": [done]} for disk in machine.of_kind(Kind.DISK)],
        "statuses": statuses(machine),
    }


def statuses(machine: Machine) -> list[Json]:
    """Provisioning state and, where there is one, power state."""
    found: list[Json] = [_provisioning(machine)]
    if machine.power is not Power.NONE:
        found.append(
            {
                "code": f"PowerState/{machine.power.value}",
                "level": "Info",
                "displayStatus": f"VM {machine.power.value}",
            }
        )
    return found


def group(subscription: str, found: Group) -> Json:
    """A resource group."""
    return {
        "id": group_id(subscription, found.name),
        "name": found.name,
        "type": "Microsoft.Resources/resourceGroups",
        "location": found.location,
        "tags": found.tags,
        "properties": {"provisioningState": "Succeeded"},
    }


def operation(found: Operation) -> Json:
    """The status of an operation."""
    body: Json = {
        "name": found.operation_id,
        "startTime": moment(found.started_at),
        "status": found.status.value,
    }
    if found.ended_at is not None:
        body["endTime"] = moment(found.ended_at)
    if found.error is not None:
        body["error"] = found.error
    return body


def deployment(subscription: str, found: Deployment) -> Json:
    """A deployment's record."""
    properties: Json = {
        key: found.request[key] for key in ("templateLink", "mode") if key in found.request
    }
    properties |= {
        "parameters": found.parameters,
        "provisioningState": found.state.value,
        "timestamp": moment(found.updated_at),
        "duration": f"PT{found.updated_at - found.begun_at:.3f}S",
        "correlationId": found.correlation_id,
        "outputResources": [
            {"id": id_of(subscription, work.resource)}
            for work in found.works
            if work.resource is not None and work.error is None and work.ended_at is not None
        ],
    }
    if found.error is not None:
        properties["error"] = found.error
    return {
        "id": _deployment_id(subscription, found),
        "name": found.name,
        "type": "Microsoft.Resources/deployments",
        "tags": found.tags,
        "properties": properties,
    }


def deployment_operation(subscription: str, found: Deployment, work: Work) -> Json:
    """What a deployment did about one resource."""
    home = group_id(subscription, found.group)
    properties: Json = {
        "provisioningOperation": "Create",
        "provisioningState": work.state.value,
        "timestamp": moment(work.ended_at or work.begun_at),
        "duration": f"PT{(work.ended_at or work.begun_at) - work.begun_at:.3f}S",
        "trackingId": work.work_id,
        "statusCode": _status_code(work),
        "targetResource": {
            "id": f"{home}/providers/{work.planned.type}/{work.planned.name}",
            "resourceType": work.planned.type,
            "resourceName": work.planned.name,
        },
    }
    if work.error is not None:
        properties["statusMessage"] = {"status": "Failed", **work.error.body()}
    return {
        "id": f"{_deployment_id(subscription, found)}/operations/{work.work_id}",
        "operationId": work.work_id,
        "properties": properties,
    }


def _deployment_id(subscription: str, found: Deployment) -> str:
    home = group_id(subscription, found.group)
    return f"{home}/providers/Microsoft.Resources/deployments/{found.name}"


def _status_code(work: Work) -> str:
    if work.ended_at is None:
        return "Accepted"
    if work.error is None:
        return "OK"
    return {400: "BadRequest", 403: "Forbidden"}.get(work.error.status, "Conflict")


def _named(subscription: str, found: Resource, *, listed: bool) -> Json:
    home = found.group.upper() if listed and found.kind.provider.endswith("Compute") else None
    start = group_id(subscription, home or found.group)
    return {
        "name": found.name,
        "id": f"{start}/providers/{found.kind.type}/{found.name}",
        "type": found.kind.type,
        "location": found.location,
    }


def _machine(subscription: str, machine: Machine) -> Json:
    sent = machine.properties
    storage = sent.get("storageProfile") or {}
    disks = machine.of_kind(Kind.DISK)
    entries = [storage.get("osDisk") or {}, *(storage.get("dataDisks") or [])]
    shown = [_attached_disk(subscription, *pair) for pair in zip(entries, disks, strict=False)]
    nics = [
        {
            "id": id_of(subscription, nic),
            "properties": {"primary": index == 0, "deleteOption": _option(nic)},
        }
        for index, nic in enumerate(machine.of_kind(Kind.NIC))
    ]
    return {
        **sent,
        "vmId": machine.vm_id,
        "timeCreated": moment(machine.created_at),
        "provisioningState": machine.state.value,
        "storageProfile": {
            **storage,
            "osDisk": shown[0] if shown else {},
            "dataDisks": shown[1:],
        },
        "networkProfile": {"networkInterfaces": nics},
    }


def _attached_disk(subscription: str, sent: Json, disk: Resource) -> Json:
    managed = {**(sent.get("managedDisk") or {}), "id": id_of(subscription, disk)}
    return {**sent, "name": disk.name, "managedDisk": managed, "deleteOption": _option(disk)}


def _option(held: Resource) -> str:
    return "Delete" if held.deleted_with_holder else "Detach"


def _disk(disk: Resource) -> Json:
    return {
        **disk.properties,
        "timeCreated": moment(disk.created_at),
        "provisioningState": disk.state.value,
        "diskState": "Unattached" if disk.holder is None else "Attached",
    }


def _network(subscription: str, found: Resource) -> Json:
    body = {**found.properties, "provisioningState": found.state.value}
    if found.kind is Kind.IP:
        if found.holder is not None:
            nic = id_of(subscription, found.holder)
            body["ipConfiguration"] = {"id": f"{nic}/ipConfigurations/ipconfig"}
        return body
    if found.holder is not None:
        body["virtualMachine"] = {"id": id_of(subscription, found.holder)}
    addresses = [
        {"id": id_of(subscription, one), "properties": {"deleteOption": _option(one)}}
        for one in found.of_kind(Kind.IP)
    ]
    configurations = []
    for index, sent in enumerate(found.properties.get("ipConfigurations") or []):
        properties = {k: v for k, v in sent["properties"].items() if k != "publicIPAddress"}
        properties["privateIPAddress"] = f"10.0.{found.sequence >> 8 & 255}.{found.sequence & 255}"
        if index < len(addresses):
            properties["publicIPAddress"] = addresses[index]
        configurations.append({"name": sent.get("name", "ipconfig"), "properties": properties})
    return {**body, "ipConfigurations": configurations}


def _provisioning(machine: Machine) -> Json:
    if machine.state is Provisioning.FAILED:
        code, message = machine.failure or ("InternalExecutionError", "An error occurred.")
        return {
            "code": f"ProvisioningState/failed/{code}",
            "level": "Error",
            "displayStatus": "Provisioning failed",
            "message": message,
        }
    return {
        "code": f"ProvisioningState/{machine.state.value.lower()}",
        "level": "Info",
        "displayStatus": f"Provisioning {machine.state.value.lower()}",
    }
