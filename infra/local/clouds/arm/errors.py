"""What the simulated Azure refuses, in Azure's own words.

The envelope is that of "Error response content" in the Azure Resource Manager API guidelines; codes
are those of "Resolve common Azure deployment errors" and "Error messages for virtual machines".
Read next: ``service``, where an error becomes a response.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from infra.local.clouds.errors import RefusalError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_STATUS = {
    "AuthenticationFailed": 401,
    "ExpiredAuthenticationToken": 401,
    "InvalidAuthenticationToken": 401,
    "AuthorizationFailed": 403,
    "LinkedAuthorizationFailed": 403,
    "ReadOnlyDisabledSubscription": 403,
    "ResourceNotFound": 404,
    "ResourceGroupNotFound": 404,
    "SubscriptionNotFound": 404,
    "DeploymentNotFound": 404,
    "NotFound": 404,
    "AllocationFailed": 409,
    "AnotherOperationInProgress": 409,
    "ConflictingUserInput": 409,
    "Conflict": 409,
    "DeploymentActive": 409,
    "DeploymentCannotBeCancelled": 409,
    "DeploymentQuotaExceeded": 409,
    "InvalidResourceLocation": 409,
    "OperationNotAllowed": 409,
    "OverconstrainedAllocationRequest": 409,
    "PropertyChangeNotAllowed": 409,
    "QuotaExceeded": 409,
    "ResourceGroupBeingDeleted": 409,
    "SkuNotAvailable": 409,
    "ZonalAllocationFailed": 409,
    "OperationPreempted": 409,
    "OSProvisioningClientError": 409,
    "OSProvisioningTimedOut": 409,
    "PreconditionFailed": 412,
    "SubscriptionRequestsThrottled": 429,
    "TooManyRequests": 429,
    "InternalServerError": 500,
    "InternalExecutionError": 500,
    "NetworkingInternalOperationError": 500,
    "BadGateway": 502,
    "ServiceUnavailable": 503,
    "ServerTimeout": 503,
    "GatewayTimeout": 504,
}


class ArmError(RefusalError):
    """A refusal; ``details`` are nested errors, ``headers`` go with the response.

    ``status`` follows from the code (400 for an unknown one) unless it is given.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        status: int | None = None,
        details: Sequence[Mapping[str, Any]] = (),
        target: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(code, message, status=status or status_of(code))
        self.details = tuple(details)
        self.target = target
        self.headers = dict(headers or {})

    def content(self) -> dict[str, Any]:
        """The inner object: code, message and what else there is."""
        inner: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.target:
            inner["target"] = self.target
        if self.details:
            inner["details"] = list(self.details)
        return inner

    def body(self) -> dict[str, Any]:
        """The whole error response."""
        return {"error": self.content()}


def status_of(code: str) -> int:
    """The HTTP status that goes with a code."""
    return _STATUS.get(code, 400)


def not_found(resource_type: str, name: str, group: str) -> ArmError:
    """The refusal of a call about a resource that does not exist."""
    return ArmError(
        "ResourceNotFound",
        f"The Resource '{resource_type}/{name}' under resource group '{group}' was not found. For "
        "more details please go to https://aka.ms/ARMResourceNotFoundFix",
    )


def group_not_found(group: str) -> ArmError:
    """The refusal of a call about a resource group that does not exist."""
    return ArmError("ResourceGroupNotFound", f"Resource group '{group}' could not be found.")


def invalid(message: str, target: str = "") -> ArmError:
    """The refusal of a value in a request."""
    return ArmError("InvalidParameter", message, target=target)


def missing(parameter: str) -> ArmError:
    """The refusal of a request that lacks a value."""
    return invalid(f"Required parameter '{parameter}' is missing (null).", parameter)
