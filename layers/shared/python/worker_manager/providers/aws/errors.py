"""Where EC2's errors stop: one table, one context manager.

EC2 publishes several hundred codes and adds to them ("Error codes for the Amazon EC2 API"), so
the table names those whose family would mislead, then the families.  The first rule that fits
wins.  What no rule knows is logged and taken as the cloud's own trouble: tried again, blamed on
no launch config.

Messages are shown to pool owners and kept in the table of errors: nothing that was sent is
repeated in them.
"""

from __future__ import annotations

import logging
import re
from contextlib import contextmanager
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

from botocore import exceptions as sdk
from botocore.parsers import ResponseParserError

from worker_manager.core.errors import (
    BadCredentialsError,
    CloudError,
    CloudUnavailableError,
    InvalidLaunchConfigError,
    NotAuthorizedError,
    NotReachedError,
    OutOfCapacityError,
    QuotaExceededError,
    ThrottledError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

logger = logging.getLogger(__name__)

DEFAULT_RETRY_AFTER = timedelta(seconds=5)
"""EC2 rarely says how long to wait; its request buckets refill at about two a second."""

MAX_RETRY_AFTER = timedelta(minutes=5)
MAX_MESSAGE_CHARS = 1_000


class Rule(NamedTuple):
    """``code`` is a shell pattern; ``says``, when given, must occur in EC2's message."""

    code: str
    error: type[CloudError]
    says: str = ""


RULES: tuple[Rule, ...] = (
    # The same code means two things; the message tells which.
    Rule("Unsupported", OutOfCapacityError, says="Availability Zone"),
    Rule("AuthFailure", InvalidLaunchConfigError, says="Not authorized for"),
    Rule("OptInRequired", InvalidLaunchConfigError, says="Marketplace"),
    # Asked too fast.
    Rule("RequestLimitExceeded", ThrottledError),
    Rule("BandwidthLimitExceeded", ThrottledError),
    Rule("SlowDown", ThrottledError),
    Rule("TooManyRequests*", ThrottledError),
    Rule("*Throttl*", ThrottledError),
    # Our credentials, or our account, may not.
    Rule("AuthFailure", BadCredentialsError),
    Rule("UnauthorizedOperation", NotAuthorizedError),
    Rule("AccessDenied*", NotAuthorizedError),
    Rule("ExpiredToken*", BadCredentialsError),
    Rule("RequestExpired", BadCredentialsError),
    Rule("InvalidClientTokenId", BadCredentialsError),
    Rule("InvalidAccessKeyId", BadCredentialsError),
    Rule("InvalidToken", BadCredentialsError),
    Rule("UnrecognizedClient*", BadCredentialsError),
    Rule("SignatureDoesNotMatch", BadCredentialsError),
    Rule("IncompleteSignature", BadCredentialsError),
    Rule("MissingAuthenticationToken*", BadCredentialsError),
    Rule("OptInRequired", BadCredentialsError),
    Rule("PendingVerification", BadCredentialsError),
    Rule("Blocked", BadCredentialsError),
    # The place has none now; another may.
    Rule("Insufficient*", OutOfCapacityError),
    Rule("UnfulfillableCapacity", OutOfCapacityError),
    Rule("ReservationCapacityExceeded", OutOfCapacityError),
    Rule("SpotMaxPriceTooLow", OutOfCapacityError),
    # Limits of one request or one machine: more of our patience will not lift them.
    Rule("TagLimitExceeded", InvalidLaunchConfigError),
    Rule("SecurityGroupsPerInstanceLimitExceeded", InvalidLaunchConfigError),
    Rule("AttachmentLimitExceeded", InvalidLaunchConfigError),
    # Our account has as many as it may.
    Rule("*LimitExceeded", QuotaExceededError),
    Rule("*CountExceeded", QuotaExceededError),
    Rule("VolumeIOPSLimit", QuotaExceededError),
    # An earlier request has our token; what it did is for the list to show.
    Rule("IdempotentParameterMismatch", CloudUnavailableError),
    Rule("IdempotentInstanceTerminated", CloudUnavailableError),
    # EC2's own trouble.
    Rule("Internal*", CloudUnavailableError),
    Rule("Unavailable", CloudUnavailableError),
    Rule("ServiceUnavailable*", CloudUnavailableError),
    Rule("RequestTimeout*", CloudUnavailableError),
    Rule("ConcurrentTagAccess", CloudUnavailableError),
    Rule("Incorrect*State", CloudUnavailableError),
    # It will never take this.
    Rule("Invalid*", InvalidLaunchConfigError),
    Rule("Missing*", InvalidLaunchConfigError),
    Rule("Unknown*", InvalidLaunchConfigError),
    Rule("Unsupported*", InvalidLaunchConfigError),
    Rule("Malformed*", InvalidLaunchConfigError),
    Rule("*.NotFound", InvalidLaunchConfigError),
    Rule("*.NotFoundException", InvalidLaunchConfigError),
    Rule("*.Malformed", InvalidLaunchConfigError),
    Rule("*NotSpecified", InvalidLaunchConfigError),
    Rule("*NotAvailableInZone", InvalidLaunchConfigError),
    Rule("ValidationError", InvalidLaunchConfigError),
    Rule("DryRunOperation", InvalidLaunchConfigError),
    Rule("OperationNotPermitted", InvalidLaunchConfigError),
    Rule("ZonesMismatched", InvalidLaunchConfigError),
)

_NOT_CONNECTED = (
    sdk.ConnectTimeoutError,
    sdk.EndpointConnectionError,
    sdk.ProxyConnectionError,
)

_CREDENTIAL_ERRORS = (
    sdk.NoCredentialsError,
    sdk.PartialCredentialsError,
    sdk.CredentialRetrievalError,
    sdk.TokenRetrievalError,
    sdk.NoAuthTokenError,
)


@contextmanager
def cloud_errors(*, launching: bool = False, hide: str = "") -> Iterator[None]:
    """Turn whatever is raised inside into a ``CloudError``.

    ``launching`` says that a launch config was sent and may be to blame: a list or a delete that
    EC2 calls invalid is nobody's launch config.  ``hide`` is cut out of every message.
    What nobody foresaw leaves open what EC2 did, and is logged: one order's or location's trouble
    must not end the others'.
    """
    try:
        yield
    except CloudError:
        raise
    except sdk.ClientError as error:
        raise _from_answer(error, launching=launching, hide=hide) from None
    except (sdk.BotoCoreError, ResponseParserError) as error:
        raise _from_sdk(error, hide=hide) from None
    except Exception as error:
        code = type(error).__name__
        logger.exception("an unforeseen error", extra={"code": code})
        raise CloudUnavailableError(f"{code}: an unforeseen error", code=code) from None


def classify(code: str, message: str, *, status: int) -> type[CloudError] | None:
    """Our word for EC2's ``code``; ``None`` for one that nobody has met.  ``status`` is HTTP's."""
    for rule in RULES:
        if fnmatchcase(code, rule.code) and rule.says in message:
            return rule.error
    if status == 429:
        return ThrottledError
    return CloudUnavailableError if status >= 500 else None


def _from_answer(error: sdk.ClientError, *, launching: bool, hide: str) -> CloudError:
    """Our error for one that EC2 answered with."""
    answer: Mapping[str, Any] = error.response
    meta = answer.get("ResponseMetadata", {})
    code = str(answer.get("Error", {}).get("Code") or "unknown")
    message = str(answer.get("Error", {}).get("Message") or "")
    text = f"{code}: {_clean(message, hide=hide)}"
    found = classify(code, message, status=int(meta.get("HTTPStatusCode", 0)))
    if found is None:
        logger.warning("unknown EC2 error code", extra={"code": code})
        found = CloudUnavailableError
    if found is InvalidLaunchConfigError and not launching:
        found = CloudUnavailableError
    if found is ThrottledError:
        return ThrottledError(text, code=code, retry_after=_retry_after(meta))
    return found(text, code=code)


def _from_sdk(error: Exception, *, hide: str) -> CloudError:
    """Our error for one that boto3 raised without an answer from EC2, or with a garbled one."""
    code = type(error).__name__
    if isinstance(error, ResponseParserError):
        return CloudUnavailableError(f"{code}: EC2's answer could not be read", code=code)
    text = f"{code}: {_clean(str(error), hide=hide)}"
    if isinstance(error, _CREDENTIAL_ERRORS):
        return NotAuthorizedError(text, code=code)
    if isinstance(error, _NOT_CONNECTED):
        return NotReachedError(text, code=code)
    if isinstance(error, sdk.ValidationError | sdk.ParamValidationError):
        return InvalidLaunchConfigError(text, code=code)
    return CloudUnavailableError(text, code=code)


def _retry_after(meta: Mapping[str, Any]) -> timedelta:
    """How long EC2 asks us to wait, at most five minutes; five seconds when it does not say."""
    given = str(meta.get("HTTPHeaders", {}).get("retry-after", ""))
    if not given.isdecimal():
        return DEFAULT_RETRY_AFTER
    return min(timedelta(seconds=min(int(given), 86_400)), MAX_RETRY_AFTER)


def _clean(message: str, *, hide: str) -> str:
    """EC2's words without ours: no sent values, no encoded request, of bounded length."""
    if hide:
        message = message.replace(hide, "[user data]")
    message = message.partition(" Encoded authorization failure message:")[0]
    message = re.sub(r"value: .*?, type:", "value: [hidden], type:", message, flags=re.DOTALL)
    return message[:MAX_MESSAGE_CHARS]
