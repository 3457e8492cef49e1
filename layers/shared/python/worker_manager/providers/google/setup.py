"""Starting the provider of Compute Engine with the key of a service account.

Where to read next: ``provider``.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from google.auth.credentials import AnonymousCredentials
from google.oauth2 import service_account

from worker_manager.core.errors import MalformedSecretError
from worker_manager.providers.endpoint import is_local
from worker_manager.providers.google.clients import MAX_CONNECTIONS, Clients
from worker_manager.providers.google.provider import GoogleProvider
from worker_manager.providers.visit import READ_TIMEOUT, Visits

if TYPE_CHECKING:
    from google.auth.credentials import Credentials

    from worker_manager.providers.protocol import Setup

NEEDED = ("client_email", "private_key", "token_uri")


def start(setup: Setup) -> GoogleProvider:
    """A provider of Compute Engine.

    Its secret is a service account's key, as JSON or as base64 of that; it may be empty where an
    endpoint on this machine stands for the cloud.  Raises ``MalformedSecretError``, ``KeyError``
    for a missing option, ``ValueError`` for an endpoint elsewhere without TLS.
    """
    key = credentials(setup.secret(), optional=is_local(setup.endpoint))
    return GoogleProvider(
        provider_id=setup.provider_id,
        deployment=setup.deployment,
        service_account=setup.options["serviceAccountEmail"],
        clients=Clients(key, endpoint=setup.endpoint),
        visits=Visits(parallel=MAX_CONNECTIONS, read_timeout=setup.read_timeout or READ_TIMEOUT),
    )


def credentials(secret: str, *, optional: bool = False) -> Credentials:
    """Credentials that sign their own tokens, so that no call waits for one.

    ``optional`` takes an empty secret, or one without a key in it, for "nobody".
    """
    key = _key(secret, optional=optional)
    if not key:
        return AnonymousCredentials()  # type: ignore[no-untyped-call]
    missing = [name for name in NEEDED if not key.get(name)]
    if missing:
        raise MalformedSecretError(f"the service account's key has no {', '.join(missing)}")
    try:
        account = service_account.Credentials.from_service_account_info(  # type: ignore[no-untyped-call]
            key
        )
    except ValueError:
        raise MalformedSecretError("the service account's private_key cannot be read") from None
    signing: Credentials = account.with_always_use_jwt_access(True)
    return signing


def _key(secret: str, *, optional: bool) -> dict[str, Any]:
    """The key's JSON; empty only where that is allowed."""
    text = secret.strip()
    if text and not text.startswith("{"):
        try:
            text = base64.b64decode(text, validate=False).decode()
        except ValueError:
            text = "?"
    try:
        key = json.loads(text or "{}")
    except ValueError:
        key = None
    if not isinstance(key, dict) or (not key and not optional):
        raise MalformedSecretError("the secret must be the key of a service account, as JSON")
    return key
