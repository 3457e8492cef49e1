"""EC2's request throttling: token buckets per region and action, off until asked for.

The figures are those of "Request throttling for the Amazon EC2 API" in the EC2 Developer Guide
(tables "Request token bucket sizes and refill rates" and "Resource token bucket sizes and refill
rates").  Read next: ``service``, which takes the tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from infra.local.clouds.ec2.errors import Ec2Error

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Rate:
    """A bucket's size in tokens and its refill in tokens a second."""

    size: float
    refill: float


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


@dataclass(slots=True)
class _Bucket:
    rate: Rate
    tokens: float
    updated: float

    def take(self, count: float, now: float) -> bool:
        refilled = self.tokens + (now - self.updated) * self.rate.refill
        self.tokens, self.updated = min(self.rate.size, refilled), now
        if self.tokens < count:
            return False
        self.tokens -= count
        return True


class Buckets:
    """All buckets of one account.  Not thread-safe: the cloud's lock guards it."""

    def __init__(self) -> None:
        self.enabled = False
        self._buckets: dict[tuple[str, str], _Bucket] = {}
        self._overrides: dict[str, Rate] = {}

    def enable(self, overrides: Mapping[str, Rate] | None = None) -> None:
        """Start throttling with full buckets.

        ``overrides`` replace published rates, by bucket name: ``RunInstances``,
        ``RunInstances:resources``, ``DescribeInstances``, ``DescribeInstances:unfiltered``.
        """
        self.enabled = True
        self._buckets = {}
        self._overrides = dict(overrides or {})

    def disable(self) -> None:
        """Stop throttling."""
        self.enabled = False

    def take_request(self, action: str, *, region: str, narrowed: bool, now: float) -> None:
        """Pay for one call; ``narrowed`` says that it has a filter or is paged.

        Raises ``Ec2Error`` RequestLimitExceeded when the bucket is empty.
        """
        name, rate = action, REQUEST_RATES.get(action, MUTATING)
        if action.startswith("Describe"):
            rate = NON_MUTATING
            if action in _HAVE_UNFILTERED_BUCKET and not narrowed:
                name, rate = f"{action}:unfiltered", UNFILTERED
        self._take(name, rate, region=region, count=1, now=now)

    def take_resources(self, action: str, *, region: str, count: int, now: float) -> None:
        """Pay for the instances that a call is about; the call is refused as a whole."""
        if rate := RESOURCE_RATES.get(action):
            self._take(f"{action}:resources", rate, region=region, count=count, now=now)

    def _take(self, name: str, rate: Rate, *, region: str, count: int, now: float) -> None:
        if not self.enabled:
            return
        rate = self._overrides.get(name, rate)
        bucket = self._buckets.get((region, name))
        if bucket is None:
            bucket = self._buckets[region, name] = _Bucket(rate, rate.size, now)
        if not bucket.take(count, now):
            raise Ec2Error("RequestLimitExceeded", "Request limit exceeded.")
