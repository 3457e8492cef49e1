"""What Azure's codes mean: one table.

Azure publishes no complete list of them ("Resolve common Azure deployment errors" and "Error
messages for virtual machines" have the frequent ones), so the table names those whose family would
mislead, then the families.  The first rule that fits wins.  Where to read next: ``errors``.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import NamedTuple

from worker_manager.core.errors import (
    BadCredentialsError,
    CloudError,
    CloudUnavailableError,
    InvalidLaunchConfigError,
    NotAuthorizedError,
    OutOfCapacityError,
    QuotaExceededError,
    ThrottledError,
)

FULL_CODE = "DeploymentQuotaExceeded"
"""A resource group has 800 deployment records."""


class Rule(NamedTuple):
    """``code`` is a shell pattern; ``says``, when given, must occur in Azure's message."""

    code: str
    error: type[CloudError]
    says: str = ""


RULES: tuple[Rule, ...] = (
    # The same code means several things; the message tells which.
    Rule("OperationNotAllowed", QuotaExceededError, says="quota"),
    Rule("OperationNotAllowed", QuotaExceededError, says="Quota"),
    Rule("OperationNotAllowed", ThrottledError, says="throttle"),
    Rule("OperationNotAllowed", ThrottledError, says="too many requests"),
    Rule("OperationNotAllowed", CloudUnavailableError),
    Rule("InvalidTemplateDeployment", QuotaExceededError, says="QuotaExceeded"),
    Rule("InvalidTemplateDeployment", OutOfCapacityError, says="SkuNotAvailable"),
    # Asked too fast, or into a store of records that is full.
    Rule(FULL_CODE, ThrottledError),
    Rule("OperationPreempted", ThrottledError),
    Rule("TooManyRequests*", ThrottledError),
    Rule("*Throttled*", ThrottledError),
    # Our credentials, or our account, may not.
    Rule("AuthorizationFailed", NotAuthorizedError),
    Rule("LinkedAuthorizationFailed", NotAuthorizedError),
    Rule("*AccessDenied", NotAuthorizedError),
    Rule("MissingSubscriptionRegistration", NotAuthorizedError),
    Rule("SubscriptionNotRegistered*", NotAuthorizedError),
    Rule("SubscriptionNotFound", BadCredentialsError),
    Rule("InvalidSubscriptionId", BadCredentialsError),
    Rule("*DisabledSubscription", BadCredentialsError),
    Rule("ExpiredAuthenticationToken", BadCredentialsError),
    Rule("InvalidAuthenticationToken*", BadCredentialsError),
    Rule("AuthenticationFailed*", BadCredentialsError),
    Rule("invalid_client", BadCredentialsError),
    Rule("unauthorized_client", BadCredentialsError),
    Rule("invalid_grant", BadCredentialsError),
    Rule("invalid_request", BadCredentialsError),
    # The place has none now; another may.
    Rule("SkuNotAvailable", OutOfCapacityError),
    Rule("*AllocationFailed", OutOfCapacityError),
    Rule("Overconstrained*AllocationRequest", OutOfCapacityError),
    Rule("*Capacity*", OutOfCapacityError),
    Rule("SpotPriceGreaterThanProvidedMaxPrice", OutOfCapacityError),
    # Our account, or our network, has as many as it may.
    Rule("*QuotaExceeded*", QuotaExceededError),
    Rule("*LimitReached", QuotaExceededError),
    Rule("*LimitExceeded", QuotaExceededError),
    Rule("SubnetIsFull", QuotaExceededError),
    Rule("SubnetsNotEnough*", QuotaExceededError),
    # Something else is going on with it; what, the list will show.
    Rule("AttachDiskWhileBeingDetached", CloudUnavailableError),
    Rule("AnotherOperationInProgress", CloudUnavailableError),
    Rule("DeploymentActive", CloudUnavailableError),
    Rule("PropertyChangeNotAllowed", CloudUnavailableError),
    Rule("ResourceGroupBeingDeleted", CloudUnavailableError),
    Rule("*InUse*", CloudUnavailableError),
    Rule("*CannotBeDeleted", CloudUnavailableError),
    # Azure's own trouble.
    Rule("OSProvisioning*", CloudUnavailableError),
    Rule("VMStartTimedOut", CloudUnavailableError),
    Rule("Internal*", CloudUnavailableError),
    Rule("*InternalError", CloudUnavailableError),
    Rule("*InternalOperationError", CloudUnavailableError),
    Rule("Retryable*", CloudUnavailableError),
    Rule("ServiceUnavailable", CloudUnavailableError),
    Rule("Server*", CloudUnavailableError),
    Rule("BadGateway", CloudUnavailableError),
    Rule("*Timeout", CloudUnavailableError),
    Rule("*TimedOut", CloudUnavailableError),
    Rule("*Canceled", CloudUnavailableError),
    # It will never take this.
    Rule("RequestDisallowedByPolicy", InvalidLaunchConfigError),
    Rule("VMExtension*", InvalidLaunchConfigError),
    Rule("*PurchaseEligibilityFailed", InvalidLaunchConfigError),
    Rule("ResourcePurchaseValidationFailed", InvalidLaunchConfigError),
    Rule("Invalid*", InvalidLaunchConfigError),
    Rule("Missing*", InvalidLaunchConfigError),
    Rule("Parameter*", InvalidLaunchConfigError),
    Rule("LocationNotAvailable*", InvalidLaunchConfigError),
    Rule("*NotFound", InvalidLaunchConfigError),
    Rule("*NotSupported*", InvalidLaunchConfigError),
    Rule("*NotAllowed*", InvalidLaunchConfigError),
    Rule("*Mismatch*", InvalidLaunchConfigError),
    Rule("*Incompatible*", InvalidLaunchConfigError),
    Rule("Unsupported*", InvalidLaunchConfigError),
    Rule("*Invalid", InvalidLaunchConfigError),
)

WRAPPERS: tuple[Rule, ...] = (
    Rule("NotFound", InvalidLaunchConfigError),
    Rule("BadRequest", InvalidLaunchConfigError),
    Rule("InvalidTemplateDeployment", InvalidLaunchConfigError),
    Rule("Conflict", CloudUnavailableError),
    Rule("DeploymentFailed", CloudUnavailableError),
    Rule("ResourceDeploymentFailure", CloudUnavailableError),
    Rule("Forbidden", NotAuthorizedError),
    Rule("Unauthorized", BadCredentialsError),
)
"""Codes that say little; they count only where no other does."""

MISSING = frozenset({"NotFound", "ResourceNotFound", "DeploymentNotFound", "ResourceGroupNotFound"})
"""What a 404 says of a thing that does not exist, or whose resource group does not.

A subscription that is not found proves nothing, nor does a 404 that says something else."""

SAYS_LITTLE = frozenset(rule.code for rule in WRAPPERS)


def classify(code: str, message: str) -> type[CloudError] | None:
    """Our word for Azure's ``code``; ``None`` for one nobody has met."""
    for rule in (*RULES, *WRAPPERS):
        if fnmatchcase(code, rule.code) and rule.says in message:
            return rule.error
    return None


def of_status(status: int) -> type[CloudError] | None:
    """What an HTTP status alone means; ``None`` if nothing."""
    by_status: dict[int, type[CloudError]] = {
        401: BadCredentialsError,
        403: NotAuthorizedError,
        429: ThrottledError,
    }
    return CloudUnavailableError if status >= 500 else by_status.get(status)
