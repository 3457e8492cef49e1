"""Where Azure's errors stop: one context manager.

The innermost code that a rule knows wins over what wraps it.  What no rule knows is logged and
taken as the cloud's own trouble: tried again, blamed on no launch config.

Messages are shown to pool owners and kept in the table of errors: nothing that was sent is
repeated in them.  Where to read next: ``codes`` (what they mean), ``telling`` (how an error is
taken apart).
"""

from __future__ import annotations

import json
import logging
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from azure.core import exceptions as sdk

from worker_manager.core.errors import (
    BadCredentialsError,
    CloudError,
    CloudUnavailableError,
    InvalidLaunchConfigError,
    NoRoomError,
    NotReachedError,
    ThrottledError,
)
from worker_manager.providers.azure.codes import (
    FULL_CODE,
    MISSING,
    SAYS_LITTLE,
    classify,
    of_status,
)
from worker_manager.providers.azure.telling import Told, told

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

logger = logging.getLogger(__name__)

_Answer = TypeVar("_Answer")

DEFAULT_RETRY_AFTER = timedelta(seconds=10)
"""Azure nearly always says how long to wait; its buckets refill within seconds."""

FULL_RETRY_AFTER = timedelta(seconds=30)
"""Until deployment records have been deleted where there is no room for more."""

MAX_RETRY_AFTER = timedelta(minutes=5)
MAX_MESSAGE_CHARS = 1_000
MAX_TEXT_CHARS = 10_000
"""Of an error that several resources share, each with a message."""


@contextmanager
def cloud_errors(*, launching: bool = False, hide: Sequence[str] = ()) -> Iterator[None]:
    """Turn whatever is raised inside into a ``CloudError``.

    ``launching`` says that a launch config was sent and may be to blame: a list or a delete that
    Azure calls invalid is nobody's launch config.  ``hide`` is cut out of every message.
    What nobody foresaw leaves open what Azure did, and is logged: one machine's trouble must not
    end the others'.
    """
    try:
        yield
    except CloudError:
        raise
    except sdk.HttpResponseError as error:
        raise _from_answer(error, launching=launching, hide=hide) from None
    except sdk.AzureError as error:
        raise _from_sdk(error, hide=hide) from None
    except Exception as error:
        code = type(error).__name__
        logger.exception("an unforeseen error", extra={"code": code})
        raise CloudUnavailableError(f"{code}: an unforeseen error", code=code) from None


def has_code(error: sdk.HttpResponseError, code: str) -> bool:
    """Whether Azure's answer says so, anywhere in it."""
    return any(one.code == code for one in told(_body(error.response)))


def is_missing(error: sdk.HttpResponseError) -> bool:
    """Whether Azure says that a thing itself does not exist, or the resource group it was in."""
    return error.status_code == 404 and any(has_code(error, code) for code in MISSING)


def unless_missing(call: Callable[[], _Answer]) -> _Answer | None:
    """What a call answers; ``None`` for what does not exist.

    Raises a ``CloudError`` for any other refusal.
    """
    with cloud_errors():
        try:
            return call()
        except sdk.HttpResponseError as error:
            if not is_missing(error):
                raise
            return None


def failure(answer: Any) -> CloudError:
    """Our error for one that Azure tells of afterwards: in a record, a status, an operation."""
    return _error(list(told(answer)), status=0, launching=True, hide=())


def says_little(answer: Any) -> bool:
    """Whether no code of an error is telling."""
    return all(one.code in SAYS_LITTLE for one in told(answer))


def words(answer: Any) -> str:
    """What an error of Azure says, in one line."""
    return _words(list(told(answer)), hide=())


def _from_answer(
    error: sdk.HttpResponseError, *, launching: bool, hide: Sequence[str]
) -> CloudError:
    """Our error for one that Azure answered with, or Microsoft Entra when asked for a token."""
    response = error.response
    if response is None:
        return _from_sdk(error, hide=hide)
    status = int(response.status_code or 0)
    found = list(told(_body(response)))
    return _error(
        found or [Told(f"HTTP{status}", str(getattr(response, "reason", "") or ""))],
        status=status,
        launching=launching,
        hide=hide,
        retry_after=_retry_after(response),
    )


def _from_sdk(error: sdk.AzureError, *, hide: Sequence[str]) -> CloudError:
    """Our error for one that the SDK raised without an answer from Azure, or with a garbled one."""
    code = type(error).__name__
    if isinstance(error, sdk.DecodeError):
        return CloudUnavailableError(f"{code}: Azure's answer could not be read", code=code)
    text = f"{code}: {_clean(str(error.message), hide=hide)}"
    if isinstance(error, sdk.ClientAuthenticationError):
        return BadCredentialsError(text, code=code)
    if isinstance(error, sdk.ServiceRequestError):
        return NotReachedError(text, code=code)
    return CloudUnavailableError(text, code=code)


def _error(
    found: list[Told],
    *,
    status: int,
    launching: bool,
    hide: Sequence[str],
    retry_after: timedelta | None = None,
) -> CloudError:
    """Our error for the most telling of these codes."""
    said, kind = _most_telling(found, status)
    if kind is None:
        logger.warning("unknown Azure error code", extra={"code": said.code})
        kind = CloudUnavailableError
    if kind is InvalidLaunchConfigError and not launching:
        kind = CloudUnavailableError
    text = _words([said, *found], hide=hide)
    if kind is ThrottledError:
        if said.code == FULL_CODE:
            return NoRoomError(text, code=said.code, retry_after=retry_after or FULL_RETRY_AFTER)
        return ThrottledError(text, code=said.code, retry_after=retry_after or DEFAULT_RETRY_AFTER)
    return kind(text, code=said.code)


def _most_telling(found: list[Told], status: int) -> tuple[Told, type[CloudError] | None]:
    """The innermost code that a rule knows, else one that says little, else what the status says.

    Azure answers 429 with codes of many names; there the status says it all.
    """
    if status == 429:
        return next(iter(found), Told("TooManyRequests", "")), ThrottledError
    telling = [one for one in found if one.code not in SAYS_LITTLE]
    for one in (*telling, *found):
        kind = classify(one.code, one.message)
        if kind is not None:
            return one, kind
    return next(iter(found), Told("unknown", "no reason was given")), of_status(status)


def _words(found: list[Told], *, hide: Sequence[str]) -> str:
    """The telling codes with their messages, each once, in their order; the first if none tells."""
    telling = [one for one in found if one.code not in SAYS_LITTLE] or found[:1]
    each = dict.fromkeys(f"{one.code}: {_clean(one.message, hide=hide)}" for one in telling)
    return "; ".join(each)[:MAX_TEXT_CHARS]


def _body(response: Any) -> Any:
    """The JSON of an answer, or ``None`` if it is none."""
    try:
        return json.loads(response.text())
    except (ValueError, sdk.AzureError):
        return None


def _retry_after(response: Any) -> timedelta | None:
    """How long Azure asks us to wait, at most five minutes; ``None`` when it does not say."""
    given = str(response.headers.get("Retry-After", ""))
    if not given.isdecimal() or not int(given):
        return None
    return min(timedelta(seconds=min(int(given), 86_400)), MAX_RETRY_AFTER)


def _clean(message: str, *, hide: Sequence[str]) -> str:
    """Azure's words without ours, on one line, of bounded length."""
    for secret in hide:
        message = message.replace(secret, "[hidden]") if secret else message
    return " ".join(message.split())[:MAX_MESSAGE_CHARS]
