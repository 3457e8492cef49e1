"""A simulated Azure Resource Manager that speaks ARM's REST protocol to the real SDKs.

It has what emulators lack: machines with NIC, address and disks that come and go together, template
deployments with their records and limits, operations that take time or never end, shortages and
quotas, lists that lag, faults on purpose, attested data.  ``CONTRACT.md`` says what of Azure's
behaviour it keeps, with sources.  Reading order: ``server``, ``service``, ``routes``, ``actions``,
``building``, ``lifecycle``, ``deployments``; the control side is ``control``.
"""

from infra.local.clouds.arm.cloud import ArmCloud
from infra.local.clouds.arm.errors import ArmError
from infra.local.clouds.arm.fates import Fate, Outcome, Step
from infra.local.clouds.arm.faults import ArmFault
from infra.local.clouds.arm.resources import Kind, Machine, Power, Provisioning
from infra.local.clouds.arm.server import SimulatedArm
from infra.local.clouds.arm.settings import Settings

__all__ = [
    "ArmCloud",
    "ArmError",
    "ArmFault",
    "Fate",
    "Kind",
    "Machine",
    "Outcome",
    "Power",
    "Provisioning",
    "Settings",
    "SimulatedArm",
    "Step",
]
