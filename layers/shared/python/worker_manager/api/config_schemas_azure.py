"""A pool's ``config`` on Azure: machines by a template of yours, or described here.

Both are open where Azure's own objects are: what we do not know here goes through untouched.
Where to read next: ``config_schemas`` (what clouds share), ``configs``.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    ConfigDict,
    Discriminator,
    Field,
    StrictBool,
    StringConstraints,
    Tag,
    model_validator,
)

from worker_manager.api.config_schemas import CloudConfig, LaunchConfigOptions
from worker_manager.api.validation import NO_DISGUISE, PositiveNumber, Wire
from worker_manager.core.ids import matches

_LOCATION = r"^[a-z0-9]{1,38}$"


def _is_short(value: str) -> str:
    if matches(_LOCATION, value):
        return value
    meant = "".join(value.split()).lower()
    example = meant if matches(_LOCATION, meant) else "eastus"
    raise ValueError(f"must be Azure's short name in lower case, such as {example}")


AzureLocation = Annotated[
    str, AfterValidator(_is_short), Field(json_schema_extra={"pattern": _LOCATION})
]
"""Azure's short name, as its lists spell it (``eastus``, not ``East US``); the worker group."""

_ABSENT: Any = None
"""Default of what need not be said: left out, it is; a null is refused."""

_TEMPLATE_SPEC = (
    r"^/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.Resources"
    r"/templateSpecs/[^/]+/versions/[^/]+$"
)


def _differ(values: list[str]) -> list[str]:
    if len(set(values)) < len(values):
        raise ValueError("must not contain a value twice")
    return values


class _Open(Wire):
    """Part of Azure's own object; more may be in it."""

    model_config = ConfigDict(extra="allow")


class AzureOptions(LaunchConfigOptions):
    """``workerManager`` of a launch config on Azure."""

    public_ip: StrictBool = False
    ignore_failed_provisioning_states: Annotated[list[str], AfterValidator(_differ)] = Field(
        default_factory=list, json_schema_extra={"uniqueItems": True}
    )
    keep_deployment: StrictBool = False


class AzureLaunchConfig(_Open):
    """What is said of machines on Azure however they are made."""

    worker_config: dict[str, Any]
    worker_manager: AzureOptions = AzureOptions()
    capacity_per_instance: PositiveNumber = 1
    tags: dict[str, str] = Field(default_factory=dict)


class HardwareProfile(_Open):
    """What machine."""

    vm_size: Annotated[str, StringConstraints(min_length=1)]


class ImageReference(_Open):
    """What is on its disk."""

    id: str = ""


class StorageProfile(_Open):
    """Its disks."""

    os_disk: dict[str, Any]
    data_disks: list[dict[str, Any]] = Field(default_factory=list)
    image_reference: ImageReference = ImageReference()


class BillingProfile(_Open):
    """What it may cost; −1 is whatever it costs."""

    max_price: Annotated[float, NO_DISGUISE] = -1


class NetworkProfile(_Open):
    """Its network beyond one interface in the subnet."""

    network_interfaces: list[dict[str, Any]]


class AzureMachineConfig(AzureLaunchConfig):
    """One way to launch machines, each described as Azure's API takes it."""

    location: AzureLocation
    subnet_id: Annotated[str, StringConstraints(min_length=1)]
    hardware_profile: HardwareProfile
    storage_profile: StorageProfile
    priority: str = "Regular"
    billing_profile: BillingProfile = BillingProfile()
    os_profile: dict[str, Any] = Field(default_factory=dict)
    network_profile: NetworkProfile = _ABSENT
    ignore_failed_provisioning_states: list[str] = Field(default_factory=list)


class TemplateSpec(Wire):
    """A version of a template that Azure keeps."""

    id: Annotated[str, StringConstraints(pattern=_TEMPLATE_SPEC)]


class TemplateAddress(Wire):
    """A template somewhere else."""

    uri: str
    content_version: str = ""
    query_string: str = ""


class KeyVault(Wire):
    """Where secrets are."""

    id: str


class SecretReference(Wire):
    """A secret that Azure reads by itself."""

    key_vault: KeyVault
    secret_name: str
    secret_version: str = ""


class ArmSecret(Wire):
    """A parameter that is a secret."""

    reference: SecretReference


class ArmValue(Wire):
    """A parameter that is said here."""

    value: Any


class ArmLocation(Wire):
    """The parameter that says where."""

    value: AzureLocation


def _is_reference(given: Any) -> str:
    return "<secret>" if isinstance(given, dict) and "reference" in given else "<value>"


ArmParameter = Annotated[
    Annotated[ArmValue, Tag("<value>")] | Annotated[ArmSecret, Tag("<secret>")],
    Discriminator(_is_reference),
]


class ArmParameters(Wire):
    """Parameters of a template; machines' names and the like are set by launching."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, ArmParameter]

    location: ArmLocation


class ParametersAddress(Wire):
    """Parameters somewhere else."""

    uri: str
    content_version: str = ""


class DebugSetting(Wire):
    """What Azure keeps of a deployment."""

    detail_level: Annotated[
        str,
        StringConstraints(
            pattern=r"^(requestContent|responseContent|requestContent,\s*responseContent|none)$"
        ),
    ]


class OnErrorDeployment(Wire):
    """What Azure does instead if a deployment fails."""

    type: Literal["SpecificDeployment"]
    """Not ``LastSuccessful``, which is another machine's: that would be made again."""
    deployment_name: str


class ExpressionEvaluationOptions(Wire):
    """Where a nested template's expressions are evaluated."""

    scope: Literal["Inner", "Outer"]


def _is_template_spec(given: Any) -> str:
    return "<id>" if isinstance(given, dict) and "id" in given else "<uri>"


class ArmDeployment(Wire):
    """A deployment of a template, as Azure's API takes it."""

    mode: Literal["Incremental"]
    """Not ``Complete``, which deletes every other machine of the resource group."""
    parameters: ArmParameters
    template: dict[str, Any] = Field(default_factory=dict)
    template_link: Annotated[
        Annotated[TemplateSpec, Tag("<id>")] | Annotated[TemplateAddress, Tag("<uri>")],
        Discriminator(_is_template_spec),
    ] = _ABSENT
    parameters_link: ParametersAddress = _ABSENT
    debug_setting: DebugSetting = _ABSENT
    on_error_deployment: OnErrorDeployment = _ABSENT
    expression_evaluation_options: ExpressionEvaluationOptions = _ABSENT

    @model_validator(mode="after")
    def _has_one_template(self) -> ArmDeployment:
        if len(self.model_fields_set & {"template", "template_link"}) != 1:
            raise ValueError("must contain either template or templateLink")
        return self


class AzureDeploymentConfig(AzureLaunchConfig):
    """One way to launch machines, each by a deployment of a template."""

    arm_deployment: ArmDeployment
    arm_deployment_resource_group: Annotated[
        str, StringConstraints(pattern=r"^[\w().-]{0,89}[\w()-]$")
    ] = ""

    @model_validator(mode="after")
    def _is_one_or_the_other(self) -> AzureDeploymentConfig:
        extra = self.model_extra or {}
        if found := [name for name in ("hardwareProfile", "storageProfile") if name in extra]:
            raise ValueError(f"must not contain {' or '.join(found)} beside armDeployment")
        return self


def _is_deployment(given: Any) -> str:
    return "<deployment>" if isinstance(given, dict) and "armDeployment" in given else "<machine>"


class AzureConfig(CloudConfig):
    """Config of a pool on Azure."""

    launch_configs: list[
        Annotated[
            Annotated[AzureDeploymentConfig, Tag("<deployment>")]
            | Annotated[AzureMachineConfig, Tag("<machine>")],
            Discriminator(_is_deployment),
        ]
    ]
