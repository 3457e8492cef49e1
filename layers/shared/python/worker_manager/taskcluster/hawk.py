"""Hawk signatures, as stock Taskcluster clients make them: the header and the bewit.

Reading a request's claim and proving it are two steps, because the key depends on what is
claimed (``auth`` finds it in between).  Parsing and the MAC are ``mohawk``'s; ours are the clock as
an argument, the bewit (its parser knows neither URL-safe text nor missing padding) and the payload
hash (its own renders the whole body for a debug message: 80 ms a megabyte).

Where to read next: ``resources`` (what a client may have signed), ``auth`` (whose key it is),
``remote_auth`` (where only a Taskcluster auth service knows the key).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal

from mohawk.exc import HawkFail  # type: ignore[import-untyped]
from mohawk.util import calculate_mac, parse_authorization_header  # type: ignore[import-untyped]

from worker_manager.core.errors import AuthenticationFailedError

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_LENGTH = 4096
"""Longest accepted header or bewit, in characters."""
MAX_SKEW = timedelta(seconds=900)
"""How far a client's clock may be from ours, either way; Hawk's own 60 s are too few here."""

_REQUIRED = frozenset({"id", "ts", "nonce", "mac"})
_ALLOWED = _REQUIRED | {"hash", "ext", "app", "dlg"}
_SECONDS = re.compile(r"[0-9]{1,12}")


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """A request, as far as a signature speaks of it.

    ``resources`` are all that the client may have sent as path and query, without any ``bewit``
    (see ``resource_candidates``).  Host and port are those of the configured root URL, never of a
    header.  ``body`` is the raw bytes, before any parsing.
    """

    method: str
    resources: Sequence[str]
    host: str
    port: int
    authorization: str | None = field(default=None, repr=False)
    bewit: str | None = field(default=None, repr=False)
    content_type: str = ""
    body: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Claim:
    """What a request says about its sender; nothing of it is proven yet.

    ``timestamp`` is the text that was signed: seconds since 1970, of a header when it was made,
    of a bewit when it ends.
    """

    kind: Literal["header", "bewit"]
    client_id: str
    timestamp: str
    mac: str
    nonce: str = ""
    content_hash: str = ""
    ext: str = ""
    app: str = ""
    dlg: str = ""


@dataclass(frozen=True, slots=True)
class _Resource:
    """The shape in which ``mohawk`` wants what goes into a MAC."""

    credentials: dict[str, str]
    timestamp: str
    nonce: str
    method: str
    name: str
    host: str
    port: str
    ext: str
    app: str
    dlg: str


def read_claim(request: SignedRequest) -> Claim | None:
    """What the request claims, or ``None`` if it is not signed.

    Raises ``AuthenticationFailedError`` for anything malformed, for a header and a bewit at once,
    and for a bewit with a method that changes something.
    """
    if request.authorization is not None and request.bewit is not None:
        raise AuthenticationFailedError("Authorization header and bewit must not come together")
    if request.authorization is not None:
        return _read_header(request.authorization)
    if request.bewit is not None:
        if request.method.upper() not in ("GET", "HEAD"):
            raise AuthenticationFailedError("A bewit is good for GET and HEAD only")
        return _read_bewit(request.bewit)
    return None


def verify_claim(claim: Claim, request: SignedRequest, *, key: str, now: datetime) -> None:
    """Return if ``claim`` was made with ``key``, for this request, and holds at ``now``.

    Raises ``AuthenticationFailedError`` otherwise.  There is no store of nonces: every call is
    safe to repeat.
    """
    if signed_resource(claim, request, key=key) is None:
        raise AuthenticationFailedError("Bad mac")
    seconds = int(claim.timestamp)
    if claim.kind == "bewit":
        if seconds <= now.timestamp():
            raise AuthenticationFailedError("Access expired")
        return
    if abs(seconds - now.timestamp()) > MAX_SKEW.total_seconds():
        raise AuthenticationFailedError("Stale timestamp")
    verify_payload(claim, request)


def verify_payload(claim: Claim, request: SignedRequest) -> None:
    """Return if the body is the one that ``claim`` speaks of, or it speaks of none.

    Raises ``AuthenticationFailedError`` otherwise.
    """
    if claim.content_hash:
        ours = payload_hash(request.body, request.content_type)
        if not hmac.compare_digest(ours, claim.content_hash):
            raise AuthenticationFailedError("Bad payload hash")


def signed_resource(claim: Claim, request: SignedRequest, *, key: str) -> str | None:
    """The one of the request's resources that was signed with ``key``; ``None`` if none was."""
    theirs = claim.mac.encode()
    for resource in request.resources:
        if hmac.compare_digest(_mac(claim, request, resource, key), theirs):
            return resource
    return None


def payload_hash(body: bytes, content_type: str) -> str:
    """Base64 of the SHA-256 over type and body; parameters of the type do not count."""
    bare_type = content_type.partition(";")[0].strip().lower()
    digest = hashlib.sha256(b"hawk.1.payload\n" + bare_type.encode(errors="replace") + b"\n")
    digest.update(body)
    digest.update(b"\n")
    return base64.b64encode(digest.digest()).decode()


def decode_base64(text: str) -> bytes:
    """Decode either alphabet, with or without padding; raises ``ValueError`` for anything else."""
    standard = text.translate(str.maketrans("-_", "+/")).rstrip("=")
    return base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)


def _read_header(header: str) -> Claim:
    _refuse_odd_text(header, "Authorization header")
    if header.partition(" ")[0].lower() != "hawk":
        raise AuthenticationFailedError("Authorization scheme must be Hawk")
    try:
        given: dict[str, str] = parse_authorization_header(header)
    except (HawkFail, ValueError) as error:
        raise AuthenticationFailedError("Bad header format") from error
    if not _REQUIRED <= given.keys() <= _ALLOWED:
        raise AuthenticationFailedError("Header has missing or unknown attributes")
    return Claim(
        kind="header",
        client_id=given["id"],
        timestamp=_seconds(given["ts"]),
        mac=given["mac"],
        nonce=given["nonce"],
        content_hash=given.get("hash", ""),
        ext=given.get("ext", ""),
        app=given.get("app", ""),
        dlg=given.get("dlg", ""),
    )


def _read_bewit(bewit: str) -> Claim:
    _refuse_odd_text(bewit, "bewit")
    try:
        parts = decode_base64(bewit).decode("ascii").split("\\")
        client_id, expires, mac, ext = parts
    except ValueError as error:
        raise AuthenticationFailedError("Invalid bewit encoding") from error
    if not (client_id and mac and all(part.isprintable() for part in parts)):
        raise AuthenticationFailedError("Invalid bewit structure")
    return Claim(kind="bewit", client_id=client_id, timestamp=_seconds(expires), mac=mac, ext=ext)


def _refuse_odd_text(text: str, what: str) -> None:
    if len(text) > MAX_LENGTH:
        raise AuthenticationFailedError(f"{what} is longer than {MAX_LENGTH} characters")
    if not (text.isascii() and text.isprintable()):
        raise AuthenticationFailedError(f"{what} contains characters that are not printable")


def _seconds(text: str) -> str:
    if _SECONDS.fullmatch(text) is None:
        raise AuthenticationFailedError("Timestamp is not a whole number of seconds")
    return text


def _mac(claim: Claim, request: SignedRequest, resource: str, key: str) -> bytes:
    signed = _Resource(
        credentials={"key": key, "algorithm": "sha256"},
        timestamp=claim.timestamp,
        nonce=claim.nonce,
        method="GET" if claim.kind == "bewit" else request.method.upper(),
        name=resource,
        host=request.host.lower(),
        port=str(request.port),
        ext=claim.ext,
        app=claim.app,
        dlg=claim.dlg,
    )
    mac: bytes = calculate_mac(claim.kind, signed, claim.content_hash)
    return mac
