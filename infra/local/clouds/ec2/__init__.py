"""A simulated EC2 that speaks the query protocol to the real SDK.

It has what emulators lack: idempotency by client token, capacity and quotas with partial success,
token buckets, states that move with time, lists that lag, faults on purpose.  ``CONTRACT.md`` says
what of EC2's behaviour it keeps, with sources.  Reading order: ``server``, ``service``,
``actions``, ``cloud``, ``estate``; the control side is ``control``.
"""

from infra.local.clouds.buckets import Rate
from infra.local.clouds.capacity import CapacityScope
from infra.local.clouds.ec2.cloud import Ec2Cloud
from infra.local.clouds.ec2.errors import Ec2Error
from infra.local.clouds.ec2.faults import Fault, FaultKind
from infra.local.clouds.ec2.instances import InstanceState
from infra.local.clouds.ec2.limits import Quota
from infra.local.clouds.ec2.server import Ec2Server
from infra.local.clouds.ec2.settings import Settings
from infra.local.clouds.keys import SigningKey

__all__ = [
    "CapacityScope",
    "Ec2Cloud",
    "Ec2Error",
    "Ec2Server",
    "Fault",
    "FaultKind",
    "InstanceState",
    "Quota",
    "Rate",
    "Settings",
    "SigningKey",
]
