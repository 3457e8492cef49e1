"""A pool's ``config``, by provider type: its fields, and what they may not contain.

Where to read next: ``config_schemas_google`` and ``config_schemas_azure`` (its twins), ``configs``,
which also looks at what a config comes to.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from worker_manager.api.validation import (
    LARGEST_NUMBER,
    NO_DISGUISE,
    Identifier,
    PositiveNumber,
    Ratio,
    WholeNumber,
    Wire,
)
from worker_manager.core.model import DEFAULT_QUEUE_INACTIVITY, DEFAULT_REREGISTRATION

MAX_REREGISTRATION = 2_592_000
"""Seconds: 30 days, as credentials can last 31."""

OURS = ("IamInstanceProfile", "UserData", "MinCount", "MaxCount", "ClientToken", "DryRun")
"""Parameters of RunInstances that launching sets itself, or that would hand out our role."""

TOLD_TO_WORKERS = (
    "rootUrl",
    "workerPoolId",
    "providerId",
    "workerGroup",
    "workerConfig",
    "launchConfigId",
)
"""Keys of the user data that no ``additionalUserData`` may displace."""


def _without_ours(value: dict[str, Any]) -> dict[str, Any]:
    if found := [name for name in OURS if name in value]:
        raise ValueError(f"must not contain {', '.join(found)}")
    if not isinstance(value.get("ImageId"), str):
        raise ValueError("ImageId: field required, as a string")
    return value


def _without_told(value: dict[str, Any]) -> dict[str, Any]:
    if found := [name for name in TOLD_TO_WORKERS if name in value]:
        raise ValueError(f"must not contain {', '.join(found)}")
    return value


class LaunchConfigOptions(Wire):
    """``workerManager`` of a launch config: ours, not the cloud's."""

    launch_config_id: Identifier = ""
    capacity_per_instance: PositiveNumber = 1
    initial_weight: Ratio = 1.0
    max_capacity: WholeNumber = LARGEST_NUMBER


_ALLOWED: dict[str, Any] = {
    "required": ["ImageId"],
    "properties": {"ImageId": {"type": "string"}},
    "propertyNames": {"not": {"enum": list(OURS)}},
}
"""What ``_without_ours`` asks for, as a JSON schema says it."""


class AwsLaunchConfig(Wire):
    """One way to launch machines on EC2."""

    region: Annotated[str, Field(pattern=r"^[a-z]{2}(-[a-z0-9]+)+$", max_length=38)]
    launch_config: Annotated[
        dict[str, Any], AfterValidator(_without_ours), Field(json_schema_extra=_ALLOWED)
    ]
    worker_manager: LaunchConfigOptions = LaunchConfigOptions()
    capacity_per_instance: PositiveNumber = 1
    worker_config: dict[str, Any] = Field(default_factory=dict)
    additional_user_data: Annotated[dict[str, Any], AfterValidator(_without_told)] = Field(
        default_factory=dict
    )


class StaticLifecycle(Wire):
    """How long credentials of a pool's workers last, in seconds."""

    reregistration_timeout: Annotated[int, Field(ge=0, le=MAX_REREGISTRATION), NO_DISGUISE] = int(
        DEFAULT_REREGISTRATION.total_seconds()
    )


class CloudLifecycle(StaticLifecycle):
    """A pool's timeouts, in seconds."""

    registration_timeout: WholeNumber = 0
    queue_inactivity_timeout: WholeNumber = int(DEFAULT_QUEUE_INACTIVITY.total_seconds())


class CloudConfig(Wire):
    """What every pool on a cloud says; ``launchConfigs`` come in by the cloud."""

    min_capacity: WholeNumber
    max_capacity: WholeNumber
    scaling_ratio: Ratio = 1.0
    lifecycle: CloudLifecycle = CloudLifecycle()

    @model_validator(mode="after")
    def _is_possible(self) -> CloudConfig:
        if self.min_capacity > self.max_capacity:
            raise ValueError("minCapacity must not be greater than maxCapacity")
        return self


class AwsConfig(CloudConfig):
    """Config of a pool on EC2."""

    launch_configs: list[AwsLaunchConfig]


class StaticLaunchConfigOptions(Wire):
    """``workerManager`` of a static pool's launch config: there is nothing to weigh or to limit."""

    launch_config_id: Identifier = ""


class StaticLaunchConfig(Wire):
    """What the machines of a static pool are to be, under an id that changes with it."""

    worker_config: dict[str, Any] = Field(default_factory=dict)
    worker_manager: StaticLaunchConfigOptions = StaticLaunchConfigOptions()


class StaticConfig(Wire):
    """Config of a pool of machines that nobody launches.

    The ``workerConfig`` stands at the top, as in the reference, or in the one launch config: then
    workers of another one are told that theirs is archived.
    """

    lifecycle: StaticLifecycle = StaticLifecycle()
    worker_config: dict[str, Any] = Field(default_factory=dict)
    launch_configs: list[StaticLaunchConfig] = Field(
        default_factory=list, min_length=1, max_length=1
    )

    @model_validator(mode="after")
    def _says_it_once(self) -> StaticConfig:
        if {"worker_config", "launch_configs"} <= self.model_fields_set:
            raise ValueError("workerConfig must stand in launchConfigs[0] or beside, not both")
        return self


class NullLaunchConfig(Wire):
    """A launch config of whatever cloud it once was for."""

    model_config = ConfigDict(extra="allow")

    worker_manager: LaunchConfigOptions = LaunchConfigOptions()
    capacity_per_instance: PositiveNumber = 1


class NullConfig(Wire):
    """Config of a pool that is being deleted: anything, so long as it can be taken apart."""

    model_config = ConfigDict(extra="allow")

    launch_configs: list[NullLaunchConfig] = Field(default_factory=list)
