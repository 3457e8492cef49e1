"""Answers other than success, in Taskcluster's error body.

Handlers raise a ``Refusal``, or one of ``core.errors``, which ``refusal_for`` understands; what
neither is becomes a 5xx, worth a retry where a table or queue was not available.
"""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from worker_manager.core.errors import (
    AuthenticationFailedError,
    ConflictError,
    DuplicateError,
    InputInvalidError,
    NotFoundError,
    ProofUnavailableError,
    QueueUnavailableError,
)
from worker_manager.core.moments import to_wire
from worker_manager.core.scopes import missing_scopes, required_scopes
from worker_manager.queues import NotSentError
from worker_manager.store.outages import is_outage

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from worker_manager.core.model import Json
    from worker_manager.core.scopes import Expression
    from worker_manager.taskcluster.auth import Identity

STATUS = {
    "MalformedPayload": HTTPStatus.BAD_REQUEST,
    "InvalidRequestArguments": HTTPStatus.BAD_REQUEST,
    "InputValidationError": HTTPStatus.BAD_REQUEST,
    "InputError": HTTPStatus.BAD_REQUEST,
    "AuthenticationFailed": HTTPStatus.UNAUTHORIZED,
    "InsufficientScopes": HTTPStatus.FORBIDDEN,
    "ResourceNotFound": HTTPStatus.NOT_FOUND,
    "RequestConflict": HTTPStatus.CONFLICT,
    "InputTooLarge": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "InternalServerError": HTTPStatus.INTERNAL_SERVER_ERROR,
    "ServiceUnavailable": HTTPStatus.SERVICE_UNAVAILABLE,
}
"""Every error code and the HTTP status it always has."""

RETRY_SECONDS = 5
"""After which a client may try again what failed by a fault of ours."""

LARGEST_ECHO = 100_000
"""Characters of a payload that an error body repeats; a longer one is left out."""

LONGEST_MESSAGE = 20_000
"""Characters of what is said; the rest of a longer one, as of a name that was sent, is left out."""

OMITTED = "(OMITTED)"

_MEANING: Mapping[type[Exception], str] = {
    AuthenticationFailedError: "AuthenticationFailed",
    InputInvalidError: "InputError",
    NotFoundError: "ResourceNotFound",
    DuplicateError: "RequestConflict",
    ConflictError: "RequestConflict",
}

_UNAVAILABLE = (ProofUnavailableError, QueueUnavailableError, NotSentError)


class Refusal(Exception):
    """The answer to a request that is not done; ``message`` is for the caller."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    @property
    def status(self) -> int:
        """The HTTP status of its code."""
        return int(STATUS[self.code])

    def headers(self) -> dict[str, str]:
        """What the caller is told beside the body: how to sign, or when to try again."""
        if self.code == "AuthenticationFailed":
            return {"WWW-Authenticate": "hawk"}
        if self.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return {"Retry-After": str(RETRY_SECONDS)}
        return {}


def refusal_for(error: Exception) -> Refusal | None:
    """What ``error`` means to the caller; ``None`` for what nobody foresaw."""
    if isinstance(error, Refusal):
        return error
    for kind, code in _MEANING.items():
        if isinstance(error, kind):
            return Refusal(code, str(error))
    if isinstance(error, _UNAVAILABLE) or is_outage(error):
        return unavailable()
    return None


def unavailable() -> Refusal:
    """Something that we need did not answer, and nothing is wrong with the request."""
    return Refusal("ServiceUnavailable", "The service cannot do this right now; please try again.")


def not_found(message: str) -> Refusal:
    """What the request is about does not exist."""
    return Refusal("ResourceNotFound", message)


def input_error(message: str) -> Refusal:
    """The request contradicts itself or what is there."""
    return Refusal("InputError", message)


def insufficient(identity: Identity | None, required: Expression) -> Refusal:
    """A caller whose scopes are not enough is told which are missing."""
    client_id, scopes = (identity.client_id, identity.scopes) if identity else (None, ())
    who = f"Client ID {client_id}" if client_id else "An anonymous caller"
    return Refusal(
        "InsufficientScopes",
        f"{who} does not have sufficient scopes and is missing the following scopes:\n\n"
        + "\n".join(f"* {scope}" for scope in missing_scopes(scopes, required))
        + "\n\nThe request needs:\n\n"
        + "\n".join(f"* {scope}" for scope in required_scopes(required)),
    )


def error_body(
    refusal: Refusal, *, method: str, params: Mapping[str, str], payload: Any, now: datetime
) -> Json:
    """Taskcluster's error body; its message ends in a rule and four facts, as people expect."""
    time = to_wire(now)
    said = refusal.message
    if len(said) > LONGEST_MESSAGE:
        said = f"{said[:LONGEST_MESSAGE]}… ({len(said)} characters)"
    facts = (
        f"* method:     {method}\n"
        f"* errorCode:  {refusal.code}\n"
        f"* statusCode: {refusal.status}\n"
        f"* time:       {time}"
    )
    return {
        "code": refusal.code,
        "message": f"{said}\n\n---\n\n{facts}",
        "requestInfo": {
            "method": method,
            "params": dict(params),
            "payload": _echo(payload),
            "time": time,
        },
    }


def _echo(payload: Any) -> Any:
    if len(json.dumps(payload, default=str)) > LARGEST_ECHO:
        return OMITTED
    return payload
