"""Requests signed as clients sign them, with keyword overrides for what a test is about."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import mohawk  # type: ignore[import-untyped]
import mohawk.base  # type: ignore[import-untyped]
import mohawk.bewit  # type: ignore[import-untyped]

from worker_manager.core.roles import Role, Roles
from worker_manager.taskcluster.auth import LocalAuthenticator
from worker_manager.taskcluster.clients import Client
from worker_manager.taskcluster.hawk import SignedRequest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NOW = datetime.fromtimestamp(1_700_000_000, tz=UTC)
KEY = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG"
ISSUER = "test/issuer"
HOST = "tc.example.com"
RESOURCE = "/api/worker-manager/v1/worker-pool/proj-x%2Fpool-1"
SEED = "AAAAAAAAQwCAAAAAAAAAAABBBBBBBBQwCBBBBBBBBBBB"

CERTIFICATE_START = 1_699_999_200_000
CERTIFICATE_EXPIRY = 1_700_085_600_000
ISSUER_GRANTS = ("auth:create-client:test/*", "scope:*")


def a_request(**overrides: Any) -> SignedRequest:
    fields: dict[str, Any] = {"method": "GET", "resources": (RESOURCE,), "host": HOST, "port": 443}
    return SignedRequest(**(fields | overrides))


def a_header(
    *,
    resource: str = RESOURCE,
    method: str = "GET",
    client_id: str = ISSUER,
    key: str = KEY,
    ext: object = None,
    body: str | None = "",
    content_type: str = "",
    at: datetime = NOW,
    app: str | None = None,
    dlg: str | None = None,
) -> str:
    """As the stock Python client makes it; without a ``hash`` if ``body`` is ``None``."""
    payload = {} if body is None else {"content": body, "content_type": content_type}
    sender = mohawk.Sender(
        {"id": client_id, "key": key, "algorithm": "sha256"},
        f"https://{HOST}{resource}",
        method,
        nonce="j4h3g2",
        ext=encoded(ext),
        app=app,
        dlg=dlg,
        always_hash_content=body is not None,
        _timestamp=int(at.timestamp()),
        **payload,
    )
    return str(sender.request_header)


def a_bewit(
    *,
    resource: str = RESOURCE,
    expires: int = 1_700_000_900,
    client_id: str = ISSUER,
    key: str = KEY,
    ext: object = None,
) -> str:
    signed = mohawk.base.Resource(
        credentials={"id": client_id, "key": key, "algorithm": "sha256"},
        method="GET",
        ext=encoded(ext),
        url=f"https://{HOST}{resource}",
        timestamp=expires,
        nonce="",
    )
    return str(mohawk.bewit.get_bewit(signed)).rstrip("=")


def encoded(ext: object) -> str | None:
    """An ``ext`` as the stock Python client writes it; text is taken as it is."""
    if ext is None or isinstance(ext, str):
        return ext
    return base64.urlsafe_b64encode(json.dumps(ext, separators=(",", ":")).encode()).decode()


def a_certificate(*, client_id: str = "test/named", **overrides: Any) -> dict[str, Any]:
    """A certificate with a good signature over whatever it says; ``issuer=None`` is unnamed."""
    fields: dict[str, Any] = {
        "version": 1,
        "scopes": ["scope:a", "scope:b/*"],
        "start": CERTIFICATE_START,
        "expiry": CERTIFICATE_EXPIRY,
        "seed": SEED,
        "issuer": ISSUER,
    } | overrides
    named = fields["issuer"] is not None
    if not named:
        del fields["issuer"]
    text = [
        f"version:{fields['version']}",
        *([f"clientId:{client_id}", f"issuer:{fields['issuer']}"] if named else []),
        *(f"{name}:{fields[name]}" for name in ("seed", "start", "expiry")),
        "scopes:",
        *map(str, fields["scopes"]),
    ]
    digest = hmac.digest(KEY.encode(), "\n".join(text).encode(), hashlib.sha256)
    return {"signature": base64.b64encode(digest).decode()} | fields


def temporary_key(seed: str = SEED, key: str = KEY) -> str:
    digest = hmac.digest(key.encode(), seed.encode(), hashlib.sha256)
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def a_named_header(certificate: Mapping[str, Any], **overrides: Any) -> str:
    """A header made with the temporary credentials that belong to ``certificate``."""
    ext = {"certificate": certificate} | overrides.pop("ext", {})
    fields: dict[str, Any] = {"client_id": "test/named", "key": temporary_key()} | overrides
    return a_header(ext=ext, **fields)


def a_client(**overrides: Any) -> Client:
    fields: dict[str, Any] = {"client_id": ISSUER, "access_token": KEY, "scopes": ISSUER_GRANTS}
    return Client(**(fields | overrides))


def an_authenticator(
    *clients: Client, roles: Sequence[Role] = (), now: datetime = NOW
) -> LocalAuthenticator:
    return LocalAuthenticator(clients or (a_client(),), Roles(tuple(roles)), lambda: now)
