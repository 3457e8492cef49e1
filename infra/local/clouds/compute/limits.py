"""Why an insert finds no room: stock-outs by zone, and the project's quotas by region and metric.

Shapes follow "Troubleshooting resource availability errors" and "Allocation quotas" of the Compute
Engine documentation.  Read next: ``cloud``, which asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from infra.local.clouds.compute.errors import Failure
from infra.local.clouds.compute.instances import Instance, vcpus_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from infra.local.clouds.capacity import Capacity

_HELP = {
    "help": {
        "links": [
            {
                "description": "Troubleshooting documentation",
                "url": "https://cloud.google.com/compute/docs/resource-error",
            }
        ]
    }
}


class Limits:
    """Settable limits; unlimited where nothing is set.  The cloud's lock guards it."""

    def __init__(self, capacity: Capacity) -> None:
        self.capacity = capacity
        self.quotas: dict[tuple[str, str], int] = {}
        """By region and metric (``usage_of``), as ``CPUS``."""

    def refuse(
        self, live: Callable[[], Sequence[Instance]], *, project: str, asked: Instance
    ) -> Failure | None:
        """Why there is no room for one more machine; ``live`` are those of its region."""
        for metric, need in usage_of(asked).items():
            limit = self.quotas.get((asked.region, metric))
            if limit is None:
                continue
            if sum(usage_of(machine).get(metric, 0) for machine in live()) + need > limit:
                return _over_quota(metric, limit=limit, region=asked.region)
        room = self.capacity.room(
            live,
            region=asked.region,
            zone=asked.zone,
            instance_type=asked.instance_type,
            spot=asked.spot,
        )
        return _exhausted(project, asked) if room < 1 else None


def usage_of(instance: Instance) -> dict[str, int]:
    """What an instance takes of the quotas, by metric."""
    vcpus = vcpus_of(instance.instance_type)
    usage = {"INSTANCES": 1, "DISKS_TOTAL_GB": sum(a.disk.size_gb for a in instance.disks)}
    if instance.spot:
        usage["PREEMPTIBLE_CPUS"] = vcpus
    else:
        family = instance.instance_type.partition("-")[0].upper()
        usage["CPUS"] = usage[f"{family}_CPUS"] = vcpus
    interfaces = instance.body.get("networkInterfaces") or ()
    if addresses := sum(1 for interface in interfaces if interface.get("accessConfigs")):
        usage["IN_USE_ADDRESSES"] = addresses
    return usage


def _over_quota(metric: str, *, limit: int, region: str) -> Failure:
    quota = {
        "quotaInfo": {
            "metricName": f"compute.googleapis.com/{metric.lower()}",
            "limitName": f"{metric.replace('_', '-')}-per-project-region",
            "dimensions": {"region": region},
            "limit": float(limit),
        }
    }
    return Failure(
        code="QUOTA_EXCEEDED",
        message=f"Quota '{metric}' exceeded.  Limit: {float(limit)} in region {region}.",
        status=403,
        reason="FORBIDDEN",
        details=(quota,),
    )


def _exhausted(project: str, asked: Instance) -> Failure:
    told = {
        "localizedMessage": {
            "locale": "en-US",
            "message": f"A {asked.instance_type} VM instance is currently unavailable in the "
            f"{asked.zone} zone. Alternatively, you can try your request again with a different "
            "VM hardware configuration or at a later time.",
        }
    }
    info = {
        "errorInfo": {
            "reason": "resource_availability",
            "domain": "compute.googleapis.com",
            "metadatas": {
                "vmType": asked.instance_type,
                "zone": asked.zone,
                "attachment": "",
                "zonesAvailable": "",
            },
        }
    }
    return Failure(
        code="ZONE_RESOURCE_POOL_EXHAUSTED",
        message=f"The zone 'projects/{project}/zones/{asked.zone}' does not have enough "
        "resources available to fulfill the request.  Try a different zone, or try again later.",
        status=503,
        reason="SERVICE UNAVAILABLE",
        details=(_HELP, told, info),
    )
