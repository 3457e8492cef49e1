"""Reading an ``instances.insert``: all that can be judged without knowing the cloud's state.

Fields and constraints follow "Method: instances.insert" of the API's reference and "Requirements
for labels".  Read next: ``cloud``, which fulfils the request.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from infra.local.clouds.compute.errors import ComputeError, invalid
from infra.local.clouds.compute.links import last_part

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_LABELS = 64
MAX_METADATA_VALUE_BYTES = 262_144
MAX_METADATA_BYTES = 524_288
_NAME = r"(?:[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)"
_LABEL_KEY = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_LABEL_VALUE = re.compile(r"[a-z0-9_-]{0,63}")
_MACHINE_TYPE = re.compile(
    r"(?:https://[^/]+/compute/v1/)?(?:projects/[^/]+/)?zones/(?P<zone>[^/]+)"
    r"/machineTypes/(?P<name>[a-z0-9-]+)"
)


@dataclass(frozen=True, slots=True)
class AskedDisk:
    """A disk to make with the instance."""

    name: str
    size_gb: int
    disk_type: str
    labels: Mapping[str, str]
    auto_delete: bool
    image: str


@dataclass(frozen=True, slots=True)
class InsertRequest:
    """A well-formed instances.insert."""

    name: str
    machine_type: str
    body: Mapping[str, Any]
    labels: Mapping[str, str]
    disks: tuple[AskedDisk, ...]
    """Without SCRATCH disks, which are part of the machine."""
    spot: bool

    @property
    def image(self) -> str:
        """The last part of the boot disk's image."""
        return self.disks[0].image


def read_insert(zone: str, body: Mapping[str, Any]) -> InsertRequest:
    """Check and read the body of a call; raises ``ComputeError`` as the API refuses it."""
    name = str(body.get("name", ""))
    if not re.fullmatch(_NAME, name):
        raise invalid("resource.name", name, f"Must be a match of regex '{_NAME}'")
    check_labels("resource.labels", body.get("labels") or {})
    if not body.get("networkInterfaces"):
        raise ComputeError("required", "At least one network interface is required.")
    _check_metadata(body.get("metadata") or {})
    return InsertRequest(
        name=name,
        machine_type=_machine_type(zone, str(body.get("machineType", ""))),
        body=body,
        labels=dict(body.get("labels") or {}),
        disks=_disks(name, body.get("disks") or ()),
        spot=_is_spot(body),
    )


def check_labels(field: str, labels: Mapping[str, str]) -> None:
    """Refuse labels that the API refuses."""
    if len(labels) > MAX_LABELS:
        raise invalid(field, f"{len(labels)} labels", f"At most {MAX_LABELS} labels are allowed.")
    for key, value in labels.items():
        if not _LABEL_KEY.fullmatch(key):
            raise invalid(field, key, f"Label key '{key}' violates format constraints.")
        if not _LABEL_VALUE.fullmatch(value):
            raise invalid(
                f"{field}[{key}]", value, f"Label value '{value}' violates format constraints."
            )


def read_request_id(text: str) -> str:
    """The ``requestId`` in one spelling; empty where none is given."""
    if not text:
        return ""
    try:
        read = uuid.UUID(text)
    except ValueError:
        read = uuid.UUID(int=0)
    if not read.int:
        raise invalid("requestId", text, "Must be a UUID, and not zero.")
    return str(read)


def _machine_type(zone: str, link: str) -> str:
    found = _MACHINE_TYPE.fullmatch(link)
    if found is None:
        raise invalid("resource.machineType", link, "The URL is malformed.")
    if found["zone"] != zone:
        raise invalid("resource.machineType", link, f"It is not in the zone '{zone}'.")
    return found["name"]


def _check_metadata(metadata: Mapping[str, Any]) -> None:
    sizes = {i["key"]: len(str(i.get("value", "")).encode()) for i in metadata.get("items", ())}
    for key, size in sizes.items():
        if size > MAX_METADATA_VALUE_BYTES:
            raise invalid(
                "resource.metadata.items", key, f"Longer than {MAX_METADATA_VALUE_BYTES} bytes."
            )
    if sum(sizes.values()) > MAX_METADATA_BYTES:
        raise invalid("resource.metadata", "", f"Longer than {MAX_METADATA_BYTES} bytes.")


def _is_spot(body: Mapping[str, Any]) -> bool:
    scheduling = body.get("scheduling") or {}
    spot = scheduling.get("provisioningModel") == "SPOT" or bool(scheduling.get("preemptible"))
    if spot and scheduling.get("automaticRestart", True):
        raise invalid(
            "resource.scheduling.automaticRestart",
            True,
            "Scheduling must have automaticRestart be false when preemptible is true.",
        )
    if body.get("guestAccelerators") and scheduling.get("onHostMaintenance") != "TERMINATE":
        raise ComputeError(
            "invalid", "Instances with guest accelerators do not support live migration."
        )
    return spot


def _disks(name: str, asked: Sequence[Mapping[str, Any]]) -> tuple[AskedDisk, ...]:
    persistent = [
        _persistent(disk, field=f"resource.disks[{index}]", number=index, instance=name)
        for index, disk in enumerate(asked)
        if not _is_scratch(disk, f"resource.disks[{index}]")
    ]
    if not persistent or not asked[0].get("boot"):
        raise ComputeError("required", "Boot disk must be specified as the first disk.")
    return tuple(persistent)


def _is_scratch(disk: Mapping[str, Any], field: str) -> bool:
    if disk.get("type", "PERSISTENT") != "SCRATCH":
        return False
    parameters = disk.get("initializeParams") or {}
    if parameters.get("labels"):
        raise invalid(f"{field}.initializeParams.labels", "", "SCRATCH disks cannot have labels.")
    if last_part(str(parameters.get("diskType", ""))) != "local-ssd":
        raise invalid(f"{field}.initializeParams.diskType", "", "Must be local-ssd.")
    return True


def _persistent(disk: Mapping[str, Any], *, field: str, number: int, instance: str) -> AskedDisk:
    parameters = disk.get("initializeParams") or {}
    disk_type = last_part(str(parameters.get("diskType", "pd-standard")))
    if disk_type == "local-ssd":
        raise invalid(
            f"{field}.initializeParams.diskType",
            disk_type,
            "Cannot create local SSD as persistent disk.",
        )
    labels = parameters.get("labels") or {}
    check_labels(f"{field}.initializeParams.labels", labels)
    default_name = instance if number == 0 else f"{instance}-{number}"
    return AskedDisk(
        name=str(parameters.get("diskName", default_name)),
        size_gb=int(parameters.get("diskSizeGb", 10)),
        disk_type=disk_type,
        labels=dict(labels),
        auto_delete=bool(disk.get("autoDelete", False)),
        image=last_part(str(parameters.get("sourceImage", ""))),
    )
