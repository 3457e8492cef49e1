"""Public certificates fetched over HTTP, with a deadline that holds whatever the other side does.

Nothing is followed that redirects, nothing is read past a limit, and a server that sends a byte
now and then is cut off like a silent one.  Where to read next: ``google_keys`` and
``azure_downloads``, which decide what is fetched.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from threading import Timer
from urllib.parse import urlsplit

from worker_manager.core.errors import ProofUnavailableError


@dataclass(frozen=True, slots=True)
class Downloaded:
    """A body, and the headers it came with, their names in lower case."""

    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


Fetch = Callable[[str], Downloaded]
"""What fetches a URL, or raises ``ProofUnavailableError``."""


def fetch(url: str, *, seconds: float, most_bytes: int) -> Downloaded:
    """What is at an ``http`` or ``https`` address, within ``seconds`` and ``most_bytes``.

    Half of the time is for the connection, half for the answer.
    Raises ``ProofUnavailableError`` for anything but a plain, complete 200.
    """
    split = urlsplit(url)
    kind = HTTPSConnection if split.scheme == "https" else HTTPConnection
    target = f"{split.path or '/'}?{split.query}" if split.query else split.path or "/"
    connection = kind(split.hostname or "", split.port, timeout=seconds / 2)
    try:
        return _read(connection, target, seconds / 2, most_bytes)
    except (OSError, HTTPException, ValueError) as error:
        raise ProofUnavailableError(f"{url} could not be fetched: {error}") from error
    finally:
        connection.close()


def _read(connection: HTTPConnection, target: str, seconds: float, most_bytes: int) -> Downloaded:
    connection.connect()
    deadline = Timer(seconds, _cut, [connection.sock])
    deadline.daemon = True
    deadline.start()
    try:
        connection.request("GET", target, headers={"Accept": "*/*", "Connection": "close"})
        response = connection.getresponse()
        if response.status != HTTPStatus.OK:
            raise HTTPException(f"it answered {response.status}")
        body = response.read(most_bytes + 1)
        headers = {name.lower(): value for name, value in response.getheaders()}
    finally:
        in_time = deadline.is_alive()
        deadline.cancel()
    if not in_time:
        raise TimeoutError(f"it took longer than {seconds:g} s")
    if len(body) > most_bytes:
        raise HTTPException(f"it is larger than {most_bytes} bytes")
    if len(body) < int(headers.get("content-length", "0")):
        raise HTTPException("it ended early")
    return Downloaded(body, headers)


def _cut(connected: socket.socket) -> None:
    """End a connection under whoever reads from it."""
    with suppress(OSError):
        socket.socket.shutdown(connected, socket.SHUT_RDWR)
