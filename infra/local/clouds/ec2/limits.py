"""What EC2 grants: capacity, and within it the account's quotas.

A launch may be granted in part (RunInstances, ``MinCount`` and ``MaxCount``).  Read next:
``launches``, which asks for grants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from typing import TYPE_CHECKING

from infra.local.clouds.ec2.errors import Ec2Error
from infra.local.clouds.ec2.instances import Instance, vcpus_of

if TYPE_CHECKING:
    from infra.local.clouds.capacity import Capacity

Live = Callable[[], Sequence[Instance]]
"""The instances of a region that hold capacity: neither stopped nor terminated."""


class Quota(StrEnum):
    """The account's limits per region."""

    ON_DEMAND = "on_demand"
    """Count of on-demand instances: InstanceLimitExceeded."""
    SPOT = "spot"
    """Count of spot instances: MaxSpotInstanceCountExceeded."""
    VCPUS = "vcpus"
    """Virtual processors of on-demand instances: VcpuLimitExceeded."""


@dataclass(frozen=True, slots=True)
class Grant:
    """Permission to launch ``count`` machines in ``zone``."""

    zone: str
    count: int


class Limits:
    """Settable limits; unlimited where nothing is set.  The cloud's lock guards it."""

    def __init__(self, capacity: Capacity) -> None:
        self.capacity = capacity
        self.quotas: dict[tuple[str, Quota], int] = {}

    def grant(
        self,
        zones: Sequence[str],
        live: Live,
        *,
        region: str,
        instance_type: str,
        spot: bool,
        minimum: int,
        maximum: int,
    ) -> Grant:
        """As many machines as there is room for, in the zone (all in one) with the most room.

        Raises ``Ec2Error`` when that is fewer than ``minimum``: a quota's when the quota is in
        the way, else InsufficientInstanceCapacity.
        """
        allowed, refusal = self._allowed(
            live, region=region, instance_type=instance_type, spot=spot
        )
        if allowed < minimum and refusal is not None:
            raise refusal
        rooms = [
            self.capacity.room(
                live, region=region, zone=zone, instance_type=instance_type, spot=spot
            )
            for zone in zones
        ]
        best = max(range(len(zones)), key=rooms.__getitem__)
        if rooms[best] < minimum:
            raise _insufficient(instance_type, zones[best], zones)
        return Grant(zones[best], int(min(maximum, allowed, rooms[best])))

    def _allowed(
        self, live: Live, *, region: str, instance_type: str, spot: bool
    ) -> tuple[float, Ec2Error | None]:
        allowed, refusal = inf, None
        for quota in (Quota.SPOT,) if spot else (Quota.ON_DEMAND, Quota.VCPUS):
            limit = self.quotas.get((region, quota))
            if limit is None:
                continue
            each = vcpus_of(instance_type) if quota is Quota.VCPUS else 1
            left = max(0, limit - _used(quota, live())) // each
            if left < allowed:
                allowed, refusal = left, _over(quota, limit)
        return allowed, refusal


def _used(quota: Quota, live: Iterable[Instance]) -> int:
    if quota is Quota.VCPUS:
        return sum(vcpus_of(i.instance_type) for i in live if not i.spot)
    return sum(1 for i in live if i.spot is (quota is Quota.SPOT))


def _insufficient(instance_type: str, zone: str, zones: Sequence[str]) -> Ec2Error:
    others = ", ".join(other for other in zones if other != zone)
    hint = f" You can currently get capacity by choosing {others}." if others else ""
    return Ec2Error(
        "InsufficientInstanceCapacity",
        f"We currently do not have sufficient {instance_type} capacity in the Availability Zone "
        f"you requested ({zone}). Our system will be working on provisioning additional "
        f"capacity.{hint}",
    )


def _over(quota: Quota, limit: int) -> Ec2Error:
    match quota:
        case Quota.SPOT:
            return Ec2Error("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded")
        case Quota.VCPUS:
            return Ec2Error(
                "VcpuLimitExceeded",
                "You have requested more vCPU capacity than your current vCPU limit of "
                f"{limit} allows for the instance bucket that the specified instance type "
                "belongs to.",
            )
        case Quota.ON_DEMAND:
            return Ec2Error(
                "InstanceLimitExceeded",
                "You have requested more instances than your current instance limit of "
                f"{limit} allows for the specified instance type.",
            )
