"""One signed request to another service, with no more scopes than it needs, and what came back.

The signature is a stock client's: with our own permanent credentials, and ``authorizedScopes`` that
say what of our scopes it is good for.  Nothing is followed, retried or kept: who asks decides.
Where to read next: ``auth``, how such a signature is verified.
"""

from __future__ import annotations

import base64
import json
import ssl
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import mohawk  # type: ignore[import-untyped]
import requests
from urllib3 import Timeout
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError

from worker_manager.core.errors import WorkerManagerError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from requests import PreparedRequest, Response

PATIENCE = timedelta(seconds=10)
"""For connecting and the head of the answer; and once more for the rest of it."""
MOST_READ = 64 * 1024
"""Bytes of an answer that are read; the rest is left."""
_AT_ONCE = 8 * 1024
_TYPE = "application/json"


class UnreachedError(WorkerManagerError):
    """The service was not reached: nothing was done."""


class UnansweredError(WorkerManagerError):
    """The request may have arrived, and there is no answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a service answered: its status, and the beginning of its body."""

    status: int
    body: bytes


class SignedHttp:
    """Sends requests in the name of one client."""

    def __init__(
        self, credentials: Callable[[], Mapping[str, str]], *, patience: timedelta = PATIENCE
    ) -> None:
        """``credentials`` gives the ``clientId`` and ``accessToken`` of a permanent client."""
        self._credentials = credentials
        self._patience = patience.total_seconds()

    def send(
        self,
        method: str,
        url: str,
        *,
        body: bytes,
        scopes: Sequence[str],
        headers: Mapping[str, str],
        check: Callable[[str], None],
    ) -> Answer:
        """Send ``body`` (JSON, or nothing) once, good for exactly these ``scopes``.

        ``check`` may refuse, by raising, the URL as it is really going to be asked for.  Raises
        ``UnreachedError`` and ``UnansweredError``.
        """
        given = {**headers, "Accept": _TYPE, "Accept-Encoding": "identity"}
        if body:
            given["Content-Type"] = _TYPE
        request = requests.Request(method, url, headers=given, data=body or None).prepare()
        sent_url = str(request.url)
        check(sent_url)
        request.headers["Authorization"] = self._signature(method, sent_url, body, scopes)
        with requests.Session() as session:
            session.trust_env = False  # neither a proxy nor anybody's .netrc
            return self._answer(session, request)

    def _answer(self, session: requests.Session, request: PreparedRequest) -> Answer:
        total: Any = Timeout(total=self._patience)  # a number would count twice
        try:
            response = session.send(
                request,
                timeout=total,
                allow_redirects=False,
                stream=True,
            )
        except requests.ConnectTimeout as error:
            raise UnreachedError(f"it could not be reached: {type(error).__name__}") from error
        except requests.ConnectionError as error:
            raise _of_connection(error) from error
        except requests.RequestException as error:
            raise UnansweredError(type(error).__name__) from error
        with response:
            return Answer(response.status_code, self._beginning(response))

    def _beginning(self, response: Response) -> bytes:
        """What of the body arrives in time; its status has told how it went."""
        ends = time.monotonic() + self._patience
        read = b""
        try:
            while len(read) < MOST_READ and time.monotonic() < ends:
                part = response.raw.read1(_AT_ONCE)
                if not part:
                    break
                read += part
        except (HTTPError, OSError):
            pass
        return read[:MOST_READ]

    def _signature(self, method: str, url: str, body: bytes, scopes: Sequence[str]) -> str:
        try:
            credentials = self._credentials()
        except Exception as error:  # whatever it was, nothing was sent
            raise UnreachedError(
                f"our own credentials are missing: {type(error).__name__}"
            ) from error
        ext = json.dumps({"authorizedScopes": list(scopes)}, separators=(",", ":"))
        sender = mohawk.Sender(
            credentials={
                "id": credentials["clientId"],
                "key": credentials["accessToken"],
                "algorithm": "sha256",
            },
            url=url,
            method=method,
            content=body,
            content_type=_TYPE if body else "",
            ext=base64.b64encode(ext.encode()).decode(),
        )
        return str(sender.request_header)


def _of_connection(error: requests.ConnectionError) -> UnreachedError | UnansweredError:
    """Whether a connection failed before anything could be sent over it."""
    reason = getattr(error.args[0] if error.args else None, "reason", None)
    detail = reason.args[0] if reason is not None and reason.args else None
    is_stranger = isinstance(detail, ssl.SSLCertVerificationError)
    name = type(detail if is_stranger else reason or error).__name__
    if is_stranger or isinstance(reason, NewConnectionError | ConnectTimeoutError):
        return UnreachedError(f"it could not be reached: {name}")
    return UnansweredError(name)
