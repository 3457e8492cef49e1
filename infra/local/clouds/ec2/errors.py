"""What the simulated EC2 refuses, in EC2's own words.

Codes, and whether they are the client's or the server's fault, follow "Error codes for the Amazon
EC2 API" in the EC2 Developer Guide.  Read next: ``service``, where an error becomes a response.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from infra.local.clouds.errors import RefusalError

if TYPE_CHECKING:
    from collections.abc import Iterable

_STATUS = {
    "AuthFailure": 401,
    "OptInRequired": 401,
    "UnauthorizedOperation": 403,
    "DryRunOperation": 412,
    "InsufficientInstanceCapacity": 500,
    "InternalError": 500,
    "InternalFailure": 500,
    "RequestLimitExceeded": 503,
    "ServiceUnavailable": 503,
    "Unavailable": 503,
}


class Ec2Error(RefusalError):
    """A refusal of EC2's; the HTTP status is the one that goes with the code."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message, status=_STATUS.get(code, 400))


def unknown_instances(instance_ids: Iterable[str]) -> Ec2Error:
    """The refusal of a whole call because of some ids; it names every one of them."""
    ids = sorted(instance_ids)
    if len(ids) == 1:
        message = f"The instance ID '{ids[0]}' does not exist"
    else:
        message = f"The instance IDs '{', '.join(ids)}' do not exist"
    return Ec2Error("InvalidInstanceID.NotFound", message)


def invalid_value(value: object, parameter: str) -> Ec2Error:
    """The refusal of one parameter's value."""
    return Ec2Error("InvalidParameterValue", f"Invalid value '{value}' for {parameter}.")


def missing(parameter: str) -> Ec2Error:
    """The refusal of a call that lacks a parameter."""
    return Ec2Error("MissingParameter", f"The request must contain the parameter {parameter}")
