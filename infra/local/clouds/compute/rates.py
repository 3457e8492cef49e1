"""Rate quotas of the API: requests a minute, by group of methods and by region or ``global``.

The figure is the default of the three groups in "API rate quotas" of the Compute Engine
documentation.  Names of buckets: ``default`` (mutations), ``read_requests``, ``list_requests``.
Read next: ``infra.local.clouds.buckets``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from infra.local.clouds.buckets import Buckets, Rate
from infra.local.clouds.compute.errors import ComputeError

if TYPE_CHECKING:
    from collections.abc import Mapping

PER_MINUTE = 1500.0
RATE = Rate(PER_MINUTE, PER_MINUTE / 60)
_GROUPS: Mapping[str, str] = {
    "get": "read_requests",
    "list": "list_requests",
    "aggregatedList": "list_requests",
}


def take_request(buckets: Buckets, action: str, *, place: str, now: float) -> None:
    """Pay for one call; ``action`` as ``instances.insert``.

    Raises ``ComputeError`` rateLimitExceeded (403) when the bucket is empty.
    """
    group = _GROUPS.get(action.partition(".")[2], "default")
    if buckets.take(group, RATE, place=place.rpartition("-")[0] or place, now=now) > 0:
        raise ComputeError(
            "rateLimitExceeded",
            f"Quota exceeded for quota metric 'compute.googleapis.com/{group}' and limit "
            f"'{group} per minute' of service 'compute.googleapis.com'.",
        )
