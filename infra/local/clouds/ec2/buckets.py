"""EC2's request throttling: a token bucket per region and action.

Names of buckets: ``RunInstances``, ``RunInstances:resources``, ``DescribeInstances``,
``DescribeInstances:unfiltered``.

The figures are those of "Request throttling for the Amazon EC2 API" in the EC2 Developer Guide
(tables "Request token bucket sizes and refill rates" and "Resource token bucket sizes and refill
rates").  Read next: ``service``, which takes the tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from infra.local.clouds.buckets import Buckets, Rate
from infra.local.clouds.ec2.errors import Ec2Error

if TYPE_CHECKING:
    from collections.abc import Mapping


NON_MUTATING = Rate(100, 20)
UNFILTERED = Rate(50, 10)
MUTATING = Rate(50, 5)

REQUEST_RATES: Mapping[str, Rate] = {
    "RunInstances": Rate(5, 2),
    "StartInstances": Rate(5, 2),
    "TerminateInstances": Rate(100, 5),
    "CreateTags": Rate(100, 10),
}
RESOURCE_RATES: Mapping[str, Rate] = {
    "RunInstances": Rate(1000, 2),
    "StartInstances": Rate(1000, 2),
    "TerminateInstances": Rate(1000, 20),
    "StopInstances": Rate(1000, 20),
}
_HAVE_UNFILTERED_BUCKET = frozenset(
    {"DescribeInstances", "DescribeInstanceStatus", "DescribeVolumes"}
)


def take_request(buckets: Buckets, action: str, *, region: str, narrowed: bool, now: float) -> None:
    """Pay for one call; ``narrowed`` says that it has a filter or is paged.

    Raises ``Ec2Error`` RequestLimitExceeded when the bucket is empty.
    """
    name, rate = action, REQUEST_RATES.get(action, MUTATING)
    if action.startswith("Describe"):
        rate = NON_MUTATING
        if action in _HAVE_UNFILTERED_BUCKET and not narrowed:
            name, rate = f"{action}:unfiltered", UNFILTERED
    _take(buckets, name, rate, region=region, count=1, now=now)


def take_resources(buckets: Buckets, action: str, *, region: str, count: int, now: float) -> None:
    """Pay for the instances that a call is about; the call is refused as a whole."""
    if rate := RESOURCE_RATES.get(action):
        _take(buckets, f"{action}:resources", rate, region=region, count=count, now=now)


def _take(buckets: Buckets, name: str, rate: Rate, *, region: str, count: int, now: float) -> None:
    if buckets.take(name, rate, place=region, now=now, count=count) > 0:
        raise Ec2Error("RequestLimitExceeded", "Request limit exceeded.")
