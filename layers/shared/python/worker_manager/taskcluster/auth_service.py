"""A Taskcluster auth service, asked over HTTP: ``authenticateHawk``.

It is told what was signed and with what, never a key, and says who it was and what they may do.
An answer that is not understood is no answer: it is an outage, and never a refusal.

Where to read next: ``remote_auth`` (when it is asked).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import requests
from urllib3 import Timeout

from worker_manager.core.errors import ProofUnavailableError
from worker_manager.core.moments import from_wire
from worker_manager.taskcluster.auth import Identity

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from worker_manager.taskcluster.hawk import SignedRequest


@dataclass(frozen=True, slots=True)
class Granted:
    """Who it was, and until when that may be believed; ``content_hash`` is of the signed body."""

    identity: Identity
    expires: datetime
    content_hash: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """The signature does not hold; ``message`` is for the caller."""

    message: str


class AuthService:
    """The auth service behind a root URL.  Safe to use from threads."""

    def __init__(self, root_url: str) -> None:
        self._url = f"{root_url.rstrip('/')}/api/auth/v1/authenticate-hawk"
        self._session = requests.Session()

    def ask(
        self, request: SignedRequest, resource: str, *, patience: timedelta
    ) -> Granted | Refused:
        """Who signed ``request``, if it was for ``resource``; nobody, if it is not signed.

        Raises ``ProofUnavailableError`` if there is no answer within ``patience``, connecting and
        asking once more included.
        """
        ends = time.monotonic() + patience.total_seconds()
        try:
            answer = self._answer(_question(request, resource), ends)
            _refuse_another_kind(answer, request)
            return answer
        except (requests.RequestException, LookupError, TypeError, ValueError) as error:
            raise ProofUnavailableError(f"the auth service gave no answer: {error}") from error

    def _answer(self, question: dict[str, Any], ends: float) -> Granted | Refused:
        try:
            response = self._send(question, ends)
        except requests.ConnectTimeout:
            raise
        except requests.ConnectionError:
            # As happens to a connection that was kept while a function slept.
            response = self._send(question, ends)
        if response.status_code != HTTPStatus.OK:
            raise ValueError(f"HTTP status {response.status_code}")
        return _understood(response.json())

    def _send(self, question: dict[str, Any], ends: float) -> requests.Response:
        left = ends - time.monotonic()
        if left <= 0:
            raise requests.Timeout("no time is left")
        total: Any = Timeout(total=left)  # a number would count for connecting, and again after it
        return self._session.post(self._url, json=question, timeout=total, allow_redirects=False)


def _question(request: SignedRequest, resource: str) -> dict[str, Any]:
    question: dict[str, Any] = {
        "method": request.method.lower(),
        "resource": resource,
        "host": request.host,
        "port": request.port,
    }
    if request.authorization is not None:
        question["authorization"] = request.authorization
    if request.bewit is not None:
        # Where it stood does not matter: it is taken out before anything is compared.
        bewit = request.bewit.translate(str.maketrans("+/", "-_")).rstrip("=")
        question["resource"] += f"{'&' if '?' in resource else '?'}bewit={bewit}"
    return question


def _understood(answer: Any) -> Granted | Refused:
    """Raises ``LookupError``, ``TypeError`` or ``ValueError`` for what is no answer of it."""
    match answer:
        case {"status": "auth-failed", "message": str(message)}:
            return Refused(message)
        case {"status": "auth-success", "clientId": str(client_id)}:
            return _granted(answer, client_id)
        case {"status": "no-auth"}:
            return _granted(answer, None)
        case _:
            raise ValueError("an answer of another shape")


def _granted(answer: dict[str, Any], client_id: str | None) -> Granted:
    scopes = answer["scopes"]
    if not (isinstance(scopes, list) and all(isinstance(scope, str) for scope in scopes)):
        raise TypeError("scopes are not a list of texts")
    return Granted(
        identity=Identity(client_id=client_id, scopes=tuple(scopes)),
        expires=from_wire(answer["expires"]),
        content_hash=str(answer.get("hash") or ""),
    )


def _refuse_another_kind(answer: Granted | Refused, request: SignedRequest) -> None:
    """Raises ``ValueError`` if who signed is nobody, or the other way round."""
    is_signed = request.authorization is not None or request.bewit is not None
    if isinstance(answer, Granted) and (answer.identity.client_id is not None) != is_signed:
        raise ValueError("it speaks of another request")
