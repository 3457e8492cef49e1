"""Refusals of the Compute Engine API, and failures of operations that it had accepted.

Shapes follow "Error responses" in the Compute Engine documentation.  Read next: ``service``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from infra.local.clouds.errors import RefusalError

if TYPE_CHECKING:
    from collections.abc import Mapping

_STATUS = {
    "authError": 401,
    "forbidden": 403,
    "quotaExceeded": 403,
    "rateLimitExceeded": 403,
    "notFound": 404,
    "alreadyExists": 409,
    "conditionNotMet": 412,
    "internalError": 500,
    "backendError": 503,
    "ZONE_RESOURCE_POOL_EXHAUSTED": 503,
}
_DOMAINS = {"rateLimitExceeded": "usageLimits", "quotaExceeded": "usageLimits"}


class ComputeError(RefusalError):
    """A refusal: ``code`` is the API's ``reason``."""

    def __init__(
        self, code: str, message: str, *, status: int = 0, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(code, message, status=status or _STATUS.get(code, 400))
        self.headers = dict(headers or {})

    def body(self) -> str:
        """The JSON of the answer."""
        reason = {
            "message": self.message,
            "domain": _DOMAINS.get(self.code, "global"),
            "reason": self.code,
        }
        error = {"code": self.status, "message": self.message, "errors": [reason]}
        return json.dumps({"error": error})


@dataclass(frozen=True, slots=True)
class Failure:
    """How an accepted operation ends badly.  Without a ``code`` it has no list of errors."""

    code: str
    message: str
    status: int
    """``httpErrorStatusCode``."""
    reason: str
    """``httpErrorMessage``, as ``FORBIDDEN``."""
    details: tuple[Mapping[str, Any], ...] = ()

    def fields(self) -> dict[str, Any]:
        """What the operation tells of it."""
        told: dict[str, Any] = {
            "httpErrorStatusCode": self.status,
            "httpErrorMessage": self.reason,
        }
        if self.code:
            error: dict[str, Any] = {"code": self.code, "message": self.message}
            if self.details:
                error["errorDetails"] = list(self.details)
            told["error"] = {"errors": [error]}
        return told

    def at_once(self) -> ComputeError:
        """The same as a refusal of the call."""
        reason = "quotaExceeded" if self.code == "QUOTA_EXCEEDED" else self.code
        return ComputeError(reason, self.message, status=self.status)


def invalid(field: str, value: object, why: str) -> ComputeError:
    """The refusal of a field of the request's body."""
    return ComputeError("invalid", f"Invalid value for field '{field}': '{value}'. {why}")


def not_found(path: str) -> ComputeError:
    """The refusal of a call about something that is not there; ``path`` as in its link."""
    return ComputeError("notFound", f"The resource '{path}' was not found")
