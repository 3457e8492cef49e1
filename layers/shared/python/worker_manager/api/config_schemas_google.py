"""A pool's ``config`` on Compute Engine.

A launch config is the body of an instance as Google's API takes it, and open: what we do not know
here goes through untouched, and a field that Google's SDK does not know is told as an error of the
pool when it is launched.  Where to read next: ``config_schemas`` (what clouds share), ``configs``.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints, model_validator

from worker_manager.api.config_schemas import CloudConfig, LaunchConfigOptions
from worker_manager.api.validation import Identifier, PositiveNumber, Wire
from worker_manager.core.ids import matches

TOLD_TO_WORKERS = "taskcluster"
"""The key of the metadata that tells a machine what it is."""

LARGEST_VALUE = 256 * 1024
"""Bytes of one value of an instance's metadata; source: Compute Engine's page of limits."""

_MACHINE_TYPE = r"^(\S*/)?zones/[^/\s]+/machineTypes/[^/\s]+$"
"""As Compute Engine takes it: relative to the project, or any longer form up to a whole URL."""


def _not_ours(key: str) -> str:
    if key == TOLD_TO_WORKERS:
        raise ValueError(f"must not be {TOLD_TO_WORKERS}, which tells machines what they are")
    return key


def _fits(value: str) -> str:
    if (size := len(value.encode())) > LARGEST_VALUE:
        raise ValueError(f"is {size} bytes; Compute Engine takes at most {LARGEST_VALUE}")
    return value


def _has_a_path(value: str) -> str:
    if not matches(_MACHINE_TYPE, value):
        raise ValueError("must be zones/<zone>/machineTypes/<type>, or the URL that ends in it")
    return value


class _Open(Wire):
    """Part of Google's own object; more may be in it."""

    model_config = ConfigDict(extra="allow")


class MetadataItem(_Open):
    """A text that a machine can read."""

    key: Annotated[
        str,
        AfterValidator(_not_ours),
        Field(json_schema_extra={"not": {"const": TOLD_TO_WORKERS}}),
    ]
    value: Annotated[str, AfterValidator(_fits)] = ""


class InstanceMetadata(_Open):
    """What a machine can read besides what we tell it."""

    items: list[MetadataItem] = Field(default_factory=list)


class InitializeParams(_Open):
    """How a disk is made."""

    labels: dict[str, str] = Field(default_factory=dict)


class GoogleDisk(_Open):
    """A disk; labels that it may have (none on ``SCRATCH``) get ours beside them."""

    type: str = ""
    labels: dict[str, str] = Field(default_factory=dict)
    initialize_params: InitializeParams = InitializeParams()


class GoogleLaunchConfig(_Open):
    """One way to launch machines on Compute Engine.

    ``name``, ``serviceAccounts`` and ``scheduling.automaticRestart`` are set by launching, whatever
    is said here.
    """

    region: Annotated[str, StringConstraints(max_length=128)]
    zone: Identifier
    machine_type: Annotated[
        str,
        StringConstraints(max_length=1024),
        AfterValidator(_has_a_path),
        Field(json_schema_extra={"pattern": _MACHINE_TYPE}),
    ]
    disks: list[GoogleDisk]
    network_interfaces: list[dict[str, Any]]
    scheduling: dict[str, Any]
    worker_config: dict[str, Any]
    worker_manager: LaunchConfigOptions = LaunchConfigOptions()
    capacity_per_instance: PositiveNumber = 1
    labels: dict[str, str] = Field(default_factory=dict)
    metadata: InstanceMetadata = InstanceMetadata()

    @model_validator(mode="after")
    def _is_in_one_zone(self) -> GoogleLaunchConfig:
        zone = self.machine_type.split("/")[-3]
        if zone != self.zone:
            raise ValueError(f"machineType must be of zone {self.zone}, not {zone}")
        return self


class GoogleConfig(CloudConfig):
    """Config of a pool on Compute Engine."""

    launch_configs: list[GoogleLaunchConfig]
