"""A simulated Compute Engine that speaks the v1 REST API to the real SDK.

It has what the provider must cope with: operations that take time and fail after acceptance,
idempotency by request id, stock-outs and quotas, preemption, lists that lag or cannot look into a
zone, faults on purpose; and it gives machines the metadata server with signed identity tokens.
``CONTRACT.md`` says what of the real behaviour it keeps, with sources.  Reading order: ``server``,
``service``, ``actions``, ``cloud``, ``estate``; the control side is ``control``.
"""

from infra.local.clouds.buckets import Rate
from infra.local.clouds.capacity import CapacityScope
from infra.local.clouds.compute.cloud import ComputeCloud
from infra.local.clouds.compute.errors import ComputeError
from infra.local.clouds.compute.faults import Fault, FaultKind
from infra.local.clouds.compute.instances import Status
from infra.local.clouds.compute.server import SimulatedCompute
from infra.local.clouds.compute.settings import Settings
from infra.local.clouds.keys import SigningKey

__all__ = [
    "CapacityScope",
    "ComputeCloud",
    "ComputeError",
    "Fault",
    "FaultKind",
    "Rate",
    "Settings",
    "SigningKey",
    "SimulatedCompute",
    "Status",
]
