"""Azure Resource Manager's throttling: token buckets of a subscription, off until asked for.

The figures are those of "Understand how Azure Resource Manager throttles requests" (token buckets
per subscription and region).  Buckets of resource providers are not published as rates; any action
may be given one by its name (``virtualMachines.put``).  Read next: ``service``, which takes the
tokens.
"""

from __future__ import annotations

from math import ceil, isinf
from typing import TYPE_CHECKING

from infra.local.clouds.arm.errors import ArmError
from infra.local.clouds.buckets import Rate

if TYPE_CHECKING:
    from infra.local.clouds.buckets import Buckets

RATES = {"reads": Rate(250, 25), "writes": Rate(200, 10), "deletes": Rate(200, 10)}
_UNLIMITED = Rate(1e12, 1e12)
_LONGEST_SECONDS = 3600
_COMPUTE_POLICIES = {
    "GET": "Microsoft.Compute/HighCostGet3Min",
    "PUT": "Microsoft.Compute/PutVM3Min",
    "PATCH": "Microsoft.Compute/PutVM3Min",
    "DELETE": "Microsoft.Compute/DeleteVM3Min",
}


def bucket_of(method: str) -> str:
    """The bucket of the subscription that a method draws on."""
    if method in ("GET", "HEAD"):
        return "reads"
    return "deletes" if method == "DELETE" else "writes"


def take_request(buckets: Buckets, method: str, action: str, *, now: float) -> None:
    """Pay for one call.  Raises ``ArmError`` 429 with Retry-After when a bucket is empty."""
    name = bucket_of(method)
    wait = buckets.take(name, RATES[name], place="subscription", now=now)
    if wait:
        message = f"Number of requests for subscription exceeded the limit for {name}."
        raise ArmError(
            "SubscriptionRequestsThrottled",
            message,
            headers={
                "Retry-After": _seconds(wait),
                f"x-ms-ratelimit-remaining-subscription-{name}": "0",
            },
        )
    wait = buckets.take(action, _UNLIMITED, place="subscription", now=now)
    if wait:
        policy = _COMPUTE_POLICIES.get(method, _COMPUTE_POLICIES["PUT"])
        raise ArmError(
            "OperationNotAllowed",
            "The server rejected the request because too many requests have been received for "
            "this subscription.",
            status=429,
            details=[{"code": "TooManyRequests", "message": f"{policy}: limit exceeded"}],
            headers={
                "Retry-After": _seconds(wait),
                "x-ms-ratelimit-remaining-resource": f"{policy};0",
            },
        )


def remaining(method: str, *, is_compute: bool) -> dict[str, str]:
    """The headers that tell what is left; as long as nothing is short they are full."""
    name = bucket_of(method)
    headers = {f"x-ms-ratelimit-remaining-subscription-{name}": str(int(RATES[name].size) - 1)}
    policy = _COMPUTE_POLICIES.get(method)
    if is_compute and policy:
        headers["x-ms-ratelimit-remaining-resource"] = f"{policy};239"
    return headers


def _seconds(wait: float) -> str:
    return str(_LONGEST_SECONDS if isinf(wait) else ceil(wait))
