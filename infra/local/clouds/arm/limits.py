"""What Azure has to give: capacity per location and size, and the subscription's core quotas.

Read next: ``cloud``, which asks before it makes a machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from infra.local.clouds.arm.errors import ArmError
from infra.local.clouds.arm.resources import Machine, cores_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from infra.local.clouds.arm.machines import MachineRequest
    from infra.local.clouds.arm.settings import Settings
    from infra.local.clouds.capacity import Capacity

REFUSED_AT_ONCE = "SkuNotAvailable"
"""The one shortage that Azure tells of before it accepts a creation."""
_SHORTAGES = {
    REFUSED_AT_ONCE: (
        "The requested VM size for resource 'Following SKUs have failed for Capacity Restrictions: "
        "{size}' is currently not available in location '{location}'. Please try another size or "
        "deploy to a different location or different zone. See "
        "https://aka.ms/azureskunotavailable for details."
    ),
    "ZonalAllocationFailed": (
        "Allocation failed. We do not have sufficient capacity for the requested VM size {size} in "
        "this zone. Read more about improving likelihood of allocation success at "
        "https://aka.ms/allocation-guidance"
    ),
    "OverconstrainedAllocationRequest": (
        "Allocation failed. VM(s) with the following constraints cannot be allocated, because the "
        "condition is too restrictive: VM Size {size}, Spot or Low priority. Please remove some "
        "constraints and try again."
    ),
}
_ANY_SHORTAGE = (
    "Allocation failed. We do not have sufficient capacity for the requested VM size {size} in "
    "this region. Read more about improving likelihood of allocation success at "
    "https://aka.ms/allocation-guidance"
)


class Quotas(dict[tuple[str, bool], int]):
    """Cores by location, for Spot machines (true) and the others; unlimited where none is set."""

    def refusal(
        self, request: MachineRequest, live: Iterable[Machine], code: str
    ) -> ArmError | None:
        """Why the quota forbids the machine, if it does."""
        if (limit := self.get((request.location, request.spot))) is None:
            return None
        used = sum(
            cores_of(one.size)
            for one in live
            if (one.location, one.spot) == (request.location, request.spot)
        )
        more = cores_of(request.size)
        if used + more <= limit:
            return None
        name = "LowPriorityCores" if request.spot else "Total Regional Cores"
        return ArmError(
            code,
            f"Operation could not be completed as it results in exceeding approved {name} quota. "
            "Additional details - Deployment Model: Resource Manager, Location: "
            f"{request.location}, Current Limit: {limit}, Current Usage: {used}, Additional "
            f"Required: {more}, (Minimum) New Limit Required: {used + more}. Setup Alerts when "
            "Quota reaches threshold.",
        )


def shortage_of(
    request: MachineRequest, capacity: Capacity, live: Iterable[Machine], settings: Settings
) -> ArmError | None:
    """Why there is no room for the machine, if there is none."""
    room = capacity.room(
        lambda: live,
        region=request.location,
        zone=f"{request.location}-{request.zone}",
        instance_type=request.size,
        spot=request.spot,
    )
    if room >= 1:
        return None
    code = settings.no_capacity_code
    words = _SHORTAGES.get(code, _ANY_SHORTAGE)
    return ArmError(code, words.format(size=request.size, location=request.location))
