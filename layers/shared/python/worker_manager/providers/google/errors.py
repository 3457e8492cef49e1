"""Where Compute Engine's errors stop: one table, one context manager.

Errors come in three shapes: an HTTP refusal with ``error.errors[].reason``, an operation that
ended with ``error.errors[].code`` long after its call was accepted, and an operation that has only
an HTTP status.  Codes are spelt ``quotaExceeded`` in the first, ``QUOTA_EXCEEDED`` in the second:
rules compare letters and digits alone.  The first rule that fits wins; else the HTTP status tells
if it can.  What is known by neither is logged and taken as the cloud's own trouble: tried again,
blamed on no launch config.

Codes: "Troubleshooting VM creation", "Troubleshoot API errors" and "Rate quotas" of the Compute
Engine documentation, and those that schedulers on Compute Engine report of their own practice.
Messages are shown to pool owners: nothing that was sent is repeated in them.
"""

from __future__ import annotations

import logging
import re
from contextlib import contextmanager
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

import requests
from google.api_core.exceptions import GoogleAPICallError
from google.auth.exceptions import GoogleAuthError, TransportError
from google.protobuf.json_format import ParseError  # type: ignore[import-untyped]
from urllib3.exceptions import NameResolutionError, NewConnectionError

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
    from collections.abc import Iterator, Sequence
    from typing import Any

    from google.cloud.compute_v1.types import Operation

logger = logging.getLogger(__name__)

DEFAULT_RETRY_AFTER = timedelta(seconds=20)
"""Compute Engine seldom says how long to wait; its rate quotas are counted by the minute."""

MAX_RETRY_AFTER = timedelta(minutes=5)
MAX_MESSAGE_CHARS = 1_000


class Rule(NamedTuple):
    """``code`` is a shell pattern over ``plain`` codes; ``says`` must occur in the message."""

    code: str
    error: type[CloudError]
    says: str = ""


RULES: tuple[Rule, ...] = (
    # The same code means several things; the message tells which.
    Rule("*", OutOfCapacityError, says="does not have enough resources available"),
    Rule("unsupportedoperation", OutOfCapacityError, says="preempt"),
    Rule("quotaexceeded", ThrottledError, says=" per minute"),
    # Asked too fast.
    Rule("*ratelimit*", ThrottledError),
    Rule("*rateexceeded", ThrottledError),
    Rule("*operationsquotaexceeded", ThrottledError),
    Rule("toomanyrequests", ThrottledError),
    Rule("dailylimitexceeded*", ThrottledError),
    # Our credentials, or our account, may not.
    Rule("autherror", BadCredentialsError),
    Rule("unauthenticated", BadCredentialsError),
    Rule("accesstoken*", BadCredentialsError),
    Rule("invalidcredentials", BadCredentialsError),
    Rule("invalidgrant", BadCredentialsError),
    Rule("accessnotconfigured", BadCredentialsError),
    Rule("servicedisabled", BadCredentialsError),
    Rule("billing*", BadCredentialsError),
    Rule("consumersuspended", BadCredentialsError),
    Rule("forbidden", NotAuthorizedError),
    Rule("*permission*", NotAuthorizedError),
    Rule("*accessdenied", NotAuthorizedError),
    # The place has none now; another may.
    Rule("*resourcepoolexhausted*", OutOfCapacityError),
    Rule("*stockout*", OutOfCapacityError),
    Rule("insufficientcapacity*", OutOfCapacityError),
    Rule("reservationcapacityexceeded", OutOfCapacityError),
    Rule("reservationnotready", OutOfCapacityError),
    Rule("vmmincountnotreached", OutOfCapacityError),
    Rule("*preempted", OutOfCapacityError),
    # Our project has as many as it may.
    Rule("*quota*", QuotaExceededError),
    Rule("*limitexceeded", QuotaExceededError),
    Rule("ipspaceexhausted*", QuotaExceededError),
    # Compute Engine's own trouble.
    Rule("backenderror", CloudUnavailableError),
    Rule("internal*", CloudUnavailableError),
    Rule("*unavailable", CloudUnavailableError),
    Rule("*timeout", CloudUnavailableError),
    Rule("deadlineexceeded", CloudUnavailableError),
    Rule("aborted", CloudUnavailableError),
    Rule("operationcancel*", CloudUnavailableError),
    Rule("resourcenotready", CloudUnavailableError),
    # It will never take this.
    Rule("invalid*", InvalidLaunchConfigError),
    Rule("required", InvalidLaunchConfigError),
    Rule("badrequest", InvalidLaunchConfigError),
    Rule("parseerror", InvalidLaunchConfigError),
    Rule("unsupported*", InvalidLaunchConfigError),
    Rule("*notsupported", InvalidLaunchConfigError),
    Rule("*notfound", InvalidLaunchConfigError),
    Rule("*alreadyexists", InvalidLaunchConfigError),
    Rule("resourceinuse*", InvalidLaunchConfigError),
    Rule("conditionnotmet", InvalidLaunchConfigError),
    Rule("*policyconstraint", InvalidLaunchConfigError),
    Rule("failedprecondition", InvalidLaunchConfigError),
    Rule("wrong*", InvalidLaunchConfigError),
)

_BY_STATUS: dict[int, type[CloudError]] = {
    401: BadCredentialsError,
    403: NotAuthorizedError,
    429: ThrottledError,
}


class Told(NamedTuple):
    """One of the errors in an answer: Compute Engine's code and words for it."""

    code: str
    message: str


@contextmanager
def cloud_errors(*, launching: bool = False, hide: str = "") -> Iterator[None]:
    """Turn whatever is raised inside into a ``CloudError``.

    ``launching`` says that a launch config was sent and may be to blame: a list or a delete that
    Compute Engine calls invalid is nobody's launch config.  ``hide`` is cut out of every message.
    What nobody foresaw leaves open what the cloud did, and is logged: one machine's or location's
    trouble must not end the others'.
    """
    try:
        yield
    except CloudError:
        raise
    except GoogleAPICallError as error:
        raise _from_answer(error, launching=launching, hide=hide) from None
    except (GoogleAuthError, requests.RequestException, ParseError) as error:
        raise _from_sdk(error) from None
    except Exception as error:
        code = type(error).__name__
        logger.exception("an unforeseen error", extra={"code": code})
        raise CloudUnavailableError(f"{code}: an unforeseen error", code=code) from None


def operation_error(operation: Operation) -> CloudError | None:
    """Why an operation that launches a machine failed; ``None`` if it did not, or not yet."""
    told = [Told(one.code, one.message) for one in operation.error.errors]
    status = operation.http_error_status_code
    if not told and status < 400:
        return None
    told = told or [Told(operation.http_error_message or f"HTTP {status}", "the operation failed")]
    return judge(told, status=status, launching=True)


def judge(
    told: Sequence[Told],
    *,
    status: int,
    launching: bool,
    hide: str = "",
    retry_after: timedelta = DEFAULT_RETRY_AFTER,
) -> CloudError:
    """Our error for what Compute Engine told: the first that says more than "failed" counts.

    ``status`` is HTTP's, 0 if none was given.
    """
    found = [(one, classify(one.code, one.message, status=status)) for one in told]
    clear = [pair for pair in found if pair[1] not in (None, CloudUnavailableError)]
    known = [pair for pair in found if pair[1] is not None]
    (code, _), kind = (clear or known or found)[0]
    kind = kind or _of_status(status)
    if kind is None:
        logger.warning("unknown Compute Engine error code", extra={"code": code, "status": status})
        kind = CloudUnavailableError
    if kind is InvalidLaunchConfigError and not launching:
        kind = CloudUnavailableError
    text = _clean("; ".join(f"{one.code}: {one.message}" for one in told), hide=hide)
    if kind is ThrottledError:
        return ThrottledError(text, code=code, retry_after=retry_after)
    return kind(text, code=code)


def classify(code: str, message: str, *, status: int) -> type[CloudError] | None:
    """Our word for Compute Engine's ``code``; ``None`` for one that nobody has met."""
    if status == 401:
        return BadCredentialsError
    letters = plain(code)
    for rule in RULES:
        if fnmatchcase(letters, rule.code) and rule.says in message:
            return rule.error
    return None


def _of_status(status: int) -> type[CloudError] | None:
    """What an HTTP status alone means; ``None`` if nothing."""
    return CloudUnavailableError if status >= 500 else _BY_STATUS.get(status)


def plain(code: str) -> str:
    """A code however it is spelt: ``quotaExceeded`` and ``QUOTA_EXCEEDED`` are the same."""
    return re.sub(r"[^a-z0-9]", "", code.lower())


def told_by(error: GoogleAPICallError) -> list[Told]:
    """What an HTTP refusal tells: each of its errors, the more exact ``ErrorInfo`` first."""
    # The SDK puts method and URL before the message.
    whole = re.sub(r"^[A-Z]+ \S+: ", "", str(error.message or ""))
    told = [
        Told(str(one.get("reason") or "unknown"), str(one.get("message") or whole))
        for one in error.errors
        if isinstance(one, dict)
    ]
    if error.reason:
        told.insert(0, Told(str(error.reason), told[0].message if told else whole))
    return told or [Told(f"HTTP{error.code}", whole)]


def is_about(error: GoogleAPICallError, collection: str, name: str = "") -> bool:
    """Whether a refusal is about a thing itself: a project not found proves no machine's absence.

    Compute Engine names what it means by its path: ``projects/p/zones/z/instances/name``.
    """
    return any(f"/{collection}/{name}" in one.message for one in told_by(error))


def _from_answer(error: GoogleAPICallError, *, launching: bool, hide: str) -> CloudError:
    """Our error for one that Compute Engine answered with."""
    return judge(
        told_by(error),
        status=int(error.code or 0),
        launching=launching,
        hide=hide,
        retry_after=_retry_after(error.response),
    )


def _from_sdk(error: Exception) -> CloudError:
    """Our error for one that was raised without an answer, or with a garbled one."""
    code = type(error).__name__
    if isinstance(error, ParseError | requests.JSONDecodeError):
        text = f"{code}: Compute Engine's answer could not be read"
        return CloudUnavailableError(text, code=code)
    text = _clean(f"{code}: {error}", hide="")
    if isinstance(error, TransportError) or _was_not_connected(error):
        return NotReachedError(text, code=code)
    if isinstance(error, GoogleAuthError):
        return BadCredentialsError(text, code=code)
    return CloudUnavailableError(text, code=code)


def _was_not_connected(error: Exception) -> bool:
    """Whether no connection came about, so that nothing was sent."""
    if isinstance(error, requests.ConnectTimeout | requests.exceptions.ProxyError):
        return True
    reason = getattr(error.args[0], "reason", None) if error.args else None
    return isinstance(reason, NewConnectionError | NameResolutionError)


def _retry_after(response: Any) -> timedelta:
    """How long the cloud asks us to wait, at most five minutes; else the default."""
    given = str(getattr(response, "headers", {}).get("Retry-After", ""))
    if not given.isdecimal():
        return DEFAULT_RETRY_AFTER
    return min(timedelta(seconds=min(int(given), 86_400)), MAX_RETRY_AFTER)


def _clean(message: str, *, hide: str) -> str:
    """The cloud's words without ours, of bounded length."""
    if hide:
        message = message.replace(hide, "[metadata]")
    return message[:MAX_MESSAGE_CHARS]
