"""What simulated machines ask of their cloud: who runs, and each machine's own metadata.

Stands for the instance metadata service (user data, signed identity document) and for the power
switch.  Read next: ``server``; the machines themselves are in ``infra.local.machines``.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from infra.local.clouds.ec2.instances import InstanceState

if TYPE_CHECKING:
    from infra.local.clouds.ec2.cloud import Ec2Cloud

_POWERED = (InstanceState.PENDING, InstanceState.RUNNING)


def powered(cloud: Ec2Cloud) -> list[dict[str, Any]]:
    """The launched (not seeded) instances that are pending or running, with their state.

    ``reboots`` counts how often each booted anew.
    """
    return [
        {
            "instance_id": instance.instance_id,
            "state": instance.state.value,
            "reboots": instance.reboots,
        }
        for instance in cloud.instances()
        if not instance.is_seeded and instance.state in _POWERED
    ]


def metadata(cloud: Ec2Cloud, instance_id: str) -> dict[str, Any]:
    """One instance's own view of itself; ``user_data`` is decoded text.

    Raises ``Ec2Error`` InvalidInstanceID.NotFound when the instance is gone.
    """
    instance = cloud.instance(instance_id)
    return {
        "instance_id": instance.instance_id,
        "region": instance.region,
        "zone": instance.zone,
        "image_id": instance.image_id,
        "instance_type": instance.instance_type,
        "spot": instance.spot,
        "user_data": base64.b64decode(instance.user_data).decode(errors="replace"),
    }
