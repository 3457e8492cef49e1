"""Temporary credentials: the certificate that a caller sends along in Hawk's ``ext``.

A permanent client, the issuer, signs a certificate with its access token; the temporary token is
derived from the same.  Nothing about it is stored anywhere.  Where to read next: ``auth`` (the
order of checks), ``credentials`` (the ones we issue).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from worker_manager.core.errors import AuthenticationFailedError
from worker_manager.core.scopes import AllOf, is_valid_scope, missing_scopes, satisfies
from worker_manager.taskcluster.hawk import decode_base64

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MAX_VALIDITY = timedelta(days=31)
"""Longest time from a certificate's start to its expiry."""
CLOCK_DRIFT = timedelta(minutes=5)
"""How much earlier than its start, and later than its expiry, a certificate still counts."""
CLIENT_ID = re.compile(r"[A-Za-z0-9!@/:.+|_-]+")

_SEED = re.compile(r"[ -~]{44}")


@dataclass(frozen=True, slots=True)
class Certificate:
    """What an issuer signed.  Times are milliseconds since 1970, as signed.

    ``issuer`` is ``None`` for unnamed credentials, whose client id is the issuer's own.
    """

    seed: str
    start: int
    expiry: int
    scopes: tuple[str, ...]
    signature: str
    issuer: str | None = None

    @property
    def expires(self) -> datetime:
        """When the credentials end, without clock drift; only sound once verified."""
        return datetime.fromtimestamp(self.expiry / 1000, tz=UTC)


@dataclass(frozen=True, slots=True)
class Ext:
    """The two things a caller may say in ``ext``: who vouches for it, and what it will not use."""

    certificate: Certificate | None = None
    authorized_scopes: tuple[str, ...] | None = None

    def issuer_behind(self, client_id: str) -> str:
        """The permanent client that answers for ``client_id``: named by it, or itself."""
        if self.certificate is None or self.certificate.issuer is None:
            return client_id
        return self.certificate.issuer


def read_ext(text: str, *, client_id: str) -> Ext:
    """Parse the ``ext`` of a claim made by ``client_id``; nothing in it is proven yet.

    Raises ``AuthenticationFailedError`` for anything malformed.
    """
    if not text:
        return Ext()
    try:
        parsed = json.loads(decode_base64(text))
    except (ValueError, RecursionError) as error:
        raise AuthenticationFailedError("ext is not base64 of JSON") from error
    if not isinstance(parsed, dict):
        raise AuthenticationFailedError("ext is not an object")
    certificate = parsed.get("certificate")
    scopes = parsed.get("authorizedScopes")
    return Ext(
        certificate=None if certificate is None else _read_certificate(certificate, client_id),
        authorized_scopes=None if scopes is None else _read_scopes(scopes, "authorizedScopes"),
    )


def verify_certificate(
    certificate: Certificate,
    *,
    client_id: str,
    issuer_token: str,
    issuer_scopes: Iterable[str],
    now: datetime,
) -> None:
    """Return if the issuer signed this for ``client_id``, may do so, and it holds at ``now``.

    ``issuer_scopes`` are expanded.  Raises ``AuthenticationFailedError`` otherwise.
    """
    _verify_times(certificate, now)
    held = tuple(issuer_scopes)
    if certificate.issuer is not None and not satisfies(held, f"auth:create-client:{client_id}"):
        raise AuthenticationFailedError(
            f"Issuer {certificate.issuer} may not create client {client_id}"
        )
    missing = missing_scopes(held, AllOf(certificate.scopes))
    if missing:
        raise AuthenticationFailedError(
            f"Certificate oversteps its issuer's scopes: {', '.join(missing)}"
        )
    expected = base64.b64encode(_hmac(issuer_token, signed_text(certificate, client_id)))
    if not hmac.compare_digest(expected, certificate.signature.encode()):
        raise AuthenticationFailedError("Certificate signature is not valid")


def signed_text(certificate: Certificate, client_id: str) -> str:
    """The text whose HMAC is the certificate's signature."""
    named = certificate.issuer is not None
    return "\n".join(
        [
            "version:1",
            *([f"clientId:{client_id}", f"issuer:{certificate.issuer}"] if named else []),
            f"seed:{certificate.seed}",
            f"start:{certificate.start}",
            f"expiry:{certificate.expiry}",
            "scopes:",
            *certificate.scopes,
        ]
    )


def temporary_token(issuer_token: str, seed: str) -> str:
    """The access token that belongs to a certificate with this seed."""
    return base64.urlsafe_b64encode(_hmac(issuer_token, seed)).decode().rstrip("=")


def _verify_times(certificate: Certificate, now: datetime) -> None:
    now_ms = int(now.timestamp() * 1000)
    drift_ms = CLOCK_DRIFT // timedelta(milliseconds=1)
    if certificate.start > now_ms + drift_ms:
        raise AuthenticationFailedError("Certificate is not valid yet")
    if certificate.expiry < now_ms - drift_ms:
        raise AuthenticationFailedError("Certificate has expired")
    if certificate.expiry - certificate.start > MAX_VALIDITY // timedelta(milliseconds=1):
        raise AuthenticationFailedError("Certificate is valid for more than 31 days")


def _read_certificate(given: object, client_id: str) -> Certificate:
    match given:
        case {
            "version": 1,
            "seed": str(seed),
            "start": int(start),
            "expiry": int(expiry),
            "scopes": scopes,
            "signature": str(signature),
            **rest,
        } if _SEED.fullmatch(seed) and signature.isascii():
            return Certificate(
                seed=seed,
                start=start,
                expiry=expiry,
                scopes=_read_scopes(scopes, "certificate.scopes"),
                signature=signature,
                issuer=_read_issuer(rest, client_id),
            )
        case _:
            raise AuthenticationFailedError("ext.certificate is malformed")


def _read_issuer(rest: Mapping[object, object], client_id: str) -> str | None:
    if "issuer" not in rest:
        if "clientId" in rest:
            raise AuthenticationFailedError("An unnamed certificate must not have a clientId")
        return None
    issuer = rest["issuer"]
    if not isinstance(issuer, str) or issuer == client_id or not CLIENT_ID.fullmatch(issuer):
        raise AuthenticationFailedError("ext.certificate.issuer must be another client")
    if not CLIENT_ID.fullmatch(client_id):
        raise AuthenticationFailedError("Client id of the temporary credentials is malformed")
    return issuer


def _read_scopes(given: object, where: str) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(is_valid_scope(scope) for scope in given):
        raise AuthenticationFailedError(f"ext.{where} is not a list of scopes")
    return tuple(given)


def _hmac(key: str, text: str) -> bytes:
    return hmac.digest(key.encode(), text.encode(), hashlib.sha256)
