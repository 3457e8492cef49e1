"""How the simulated Azure behaves when nothing goes wrong on purpose.  Read next: ``cloud``."""

from __future__ import annotations

from dataclasses import dataclass

LOCATIONS = (
    "eastus",
    "eastus2",
    "centralus",
    "northcentralus",
    "southcentralus",
    "westus",
    "westus2",
    "westus3",
    "canadacentral",
    "northeurope",
    "westeurope",
    "uksouth",
    "centralindia",
)


@dataclass(frozen=True, slots=True)
class Settings:
    """How the cloud behaves.  Durations are seconds."""

    subscription_id: str = "00000000-0000-4000-8000-000000000000"
    locations: tuple[str, ...] = LOCATIONS
    resource_groups: tuple[str, ...] = ("rg",)
    """Those that exist from the start."""
    page_size: int = 200
    list_lag_seconds: float = 0.0
    """How long lists do not show what was made, and go on showing what is gone."""
    vm_create_seconds: float = 1.0
    vm_boot_seconds: float | None = None
    """When in its creation a machine is powered; ``None`` is at its end."""
    vm_delete_seconds: float = 1.0
    vm_force_delete_seconds: float | None = None
    """With ``forceDeletion``; ``None`` is no faster."""
    vm_power_seconds: float = 0.5
    """How long starting, stopping and deallocating take."""
    nic_create_seconds: float = 0.2
    nic_delete_seconds: float = 0.2
    ip_create_seconds: float = 0.2
    ip_delete_seconds: float = 0.2
    disk_create_seconds: float = 0.2
    disk_delete_seconds: float = 0.2
    deployment_start_seconds: float = 0.1
    """How long a deployment is Accepted before it is Running."""
    deployment_delete_seconds: float = 0.2
    deployment_limit: int = 800
    """Records in a resource group."""
    checks_before_deploying: bool = True
    """Whether a deployment is refused at once for what can be told from its request."""
    template_delete_option: bool = True
    """Whether the built-in template has the machine's NIC, address and disks deleted with it."""
    template_public_ip: bool = False
    no_capacity_code: str = "SkuNotAvailable"
    """This one is refused at once; any other lets the creation fail, later."""
    quota_code: str = "OperationNotAllowed"
    retry_after_seconds: int = 10
    """What accepted calls advise about looking again."""
    attested_seconds: float = 21_600.0
    """How long attested data hold."""
    operation_seconds: float = 86_400.0
    """How long the outcome of an operation is remembered."""
