"""Reading a request for a machine: everything that can be judged without knowing the cloud's state.

Properties and constraints follow "Virtual Machines - Create Or Update" in the Azure REST API
reference (Compute) and "Naming rules and restrictions for Azure resources".  Read next:
``lifecycle``, which fulfils the request.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from typing import Any

from infra.local.clouds.arm.errors import ArmError, invalid, missing

Json = dict[str, Any]
MAX_CUSTOM_DATA_BYTES = 65_535
MAX_TAGS = 50
_SECRETS = ("adminPassword", "customData")
_FIXED = (("osProfile", "adminUsername"), ("osProfile", "computerName"))
_VM_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9_])?")


@dataclass(frozen=True, slots=True)
class AddressRequest:
    """A public address to be made with a NIC."""

    name: str
    tags: dict[str, str]
    properties: Json
    envelope: Json
    deleted_with_holder: bool


@dataclass(frozen=True, slots=True)
class NicRequest:
    """A NIC to be made with the machine, or an existing one where ``resource_id`` is given."""

    resource_id: str
    name: str
    tags: dict[str, str]
    properties: Json
    deleted_with_holder: bool
    address: AddressRequest | None = None


@dataclass(frozen=True, slots=True)
class DiskRequest:
    """A disk to be made with the machine, or an existing one where ``resource_id`` is given."""

    resource_id: str
    name: str
    properties: Json
    deleted_with_holder: bool


@dataclass(frozen=True, slots=True)
class MachineRequest:
    """A well-formed request for a machine."""

    name: str
    location: str
    tags: dict[str, str]
    size: str
    spot: bool
    zone: str
    properties: Json
    envelope: Json
    secrets: Json
    nics: tuple[NicRequest, ...]
    disks: tuple[DiskRequest, ...]

    def fixed(self) -> Json:
        """What cannot be changed once the machine exists, by the names that refusals use."""
        found = {".".join(path): _at(self.properties, *path) for path in _FIXED}
        image = _at(self.properties, "storageProfile", "imageReference")
        return (
            found
            | {"imageReference": image}
            | {f"osProfile.{k}": self.secrets[k] for k in self.secrets}
        )


def read_machine(name: str, body: Json) -> MachineRequest:
    """Check and read the request; raises ``ArmError`` as Azure refuses it."""
    if not _VM_NAME.fullmatch(name):
        raise invalid(
            f"The entity name 'name' is invalid according to its validation rule: {name}", "name"
        )
    properties = body.get("properties") or {}
    size = str(_at(properties, "hardwareProfile", "vmSize") or "")
    if not size:
        raise missing("vmSize")
    os_profile, secrets = _read_os(properties)
    storage = properties.get("storageProfile") or {}
    kept = {k: v for k, v in properties.items() if k not in ("networkProfile", "osProfile")}
    return MachineRequest(
        name=name,
        location=read_location(body),
        tags=read_tags(body),
        size=size,
        spot=str(properties.get("priority", "Regular")) in ("Spot", "Low"),
        zone=str((body.get("zones") or [""])[0]),
        properties=kept | ({"osProfile": os_profile} if os_profile else {}),
        envelope={k: body[k] for k in ("zones", "identity", "plan") if k in body},
        secrets=secrets,
        nics=_read_nics(properties.get("networkProfile") or {}),
        disks=_read_disks(storage),
    )


def read_location(body: Json) -> str:
    """Where a resource shall be, as Azure writes it: lower case, no blanks."""
    location = str(body.get("location") or "")
    if not location:
        raise ArmError("LocationRequired", "The location property is required for this definition.")
    return location.lower().replace(" ", "")


def read_tags(body: Json) -> dict[str, str]:
    """The tags of a resource, checked ("Use tags to organize your Azure resources")."""
    tags = body.get("tags") or {}
    if len(tags) > MAX_TAGS:
        raise ArmError("InvalidTagCount", f"The number of tags exceeds {MAX_TAGS}.")
    for key, value in tags.items():
        if not isinstance(value, str) or len(key) > 512 or len(value) > 256:
            raise ArmError("InvalidTagNameOrValue", f"The tag '{key}' is too long, or no text.")
        if set(key) & set("<>%&\\?/"):
            raise ArmError(
                "InvalidTagNameCharacters", f"The tag name '{key}' has reserved letters."
            )
    return dict(tags)


def _read_os(properties: Json) -> tuple[Json, Json]:
    """The operating system's profile as it is shown again, and what is not."""
    profile = dict(properties.get("osProfile") or {})
    computer = str(profile.get("computerName", ""))
    disk_system = _at(properties, "storageProfile", "osDisk", "osType")
    is_windows = "windowsConfiguration" in profile or disk_system == "Windows"
    if len(computer) > (15 if is_windows else 64):
        raise invalid(
            f"'{computer}' is not a valid computer name: it is too long.", "osProfile.computerName"
        )
    custom_data = str(profile.get("customData") or "")
    try:
        raw = base64.b64decode(custom_data, validate=True)
    except binascii.Error:
        raise invalid(
            "Custom data in OSProfile must be in Base64 encoding.", "customData"
        ) from None
    if len(raw) > MAX_CUSTOM_DATA_BYTES:
        raise invalid("Custom data in OSProfile must be at most 64 KB.", "customData")
    secrets = {key: profile.pop(key) for key in _SECRETS if key in profile}
    return profile, secrets


def _read_nics(profile: Json) -> tuple[NicRequest, ...]:
    references = profile.get("networkInterfaces") or []
    inline = profile.get("networkInterfaceConfigurations") or []
    if references and inline:
        raise invalid("NIC references and NIC configurations exclude each other.", "networkProfile")
    if not references and not inline:
        raise invalid("Virtual machine must have at least one network interface.", "networkProfile")
    if inline and not profile.get("networkApiVersion"):
        raise missing("networkProfile.networkApiVersion")
    return tuple(_reference(one) for one in references) + tuple(_inline(one) for one in inline)


def _reference(reference: Json) -> NicRequest:
    return NicRequest(
        resource_id=str(reference.get("id") or ""),
        name="",
        tags={},
        properties={},
        deleted_with_holder=_deletes(reference.get("properties")),
    )


def _inline(entry: Json) -> NicRequest:
    properties = entry.get("properties") or {}
    configurations = properties.get("ipConfigurations") or []
    if not entry.get("name") or not configurations:
        raise missing("networkInterfaceConfigurations.name or ipConfigurations")
    for one in configurations:
        if not _at(one, "properties", "subnet", "id"):
            raise missing("ipConfigurations.properties.subnet.id")
    address = _at(configurations[0], "properties", "publicIPAddressConfiguration")
    return NicRequest(
        resource_id="",
        name=str(entry["name"]),
        tags=read_tags(entry),
        properties={"ipConfigurations": [_without_address(one) for one in configurations]},
        deleted_with_holder=_deletes(properties),
        address=_address(address) if address else None,
    )


def _without_address(configuration: Json) -> Json:
    kept = dict(configuration.get("properties") or {})
    kept.pop("publicIPAddressConfiguration", None)
    return {"name": configuration.get("name", "ipconfig"), "properties": kept}


def _address(entry: Json) -> AddressRequest:
    properties = dict(entry.get("properties") or {})
    return AddressRequest(
        name=str(entry.get("name") or ""),
        tags=read_tags(entry),
        envelope={"sku": entry["sku"]} if "sku" in entry else {},
        deleted_with_holder=_deletes(properties),
        properties={k: v for k, v in properties.items() if k != "deleteOption"},
    )


def _read_disks(storage: Json) -> tuple[DiskRequest, ...]:
    entries = [storage.get("osDisk") or {"createOption": "FromImage"}]
    return tuple(_disk(one) for one in [*entries, *(storage.get("dataDisks") or [])])


def _disk(entry: Json) -> DiskRequest:
    if not entry.get("createOption"):
        raise missing("createOption")
    managed = entry.get("managedDisk") or {}
    attach = entry["createOption"] == "Attach"
    is_local = _at(entry, "diffDiskSettings", "option") == "Local"
    return DiskRequest(
        resource_id=str(managed.get("id", "")) if attach else "",
        name=str(entry.get("name") or ""),
        properties=dict(entry),
        deleted_with_holder=is_local or _deletes(entry),
    )


def _deletes(properties: Any) -> bool:
    return (properties or {}).get("deleteOption") == "Delete"


def _at(value: Any, *path: str) -> Any:
    for key in path:
        value = (value or {}).get(key)
    return value
