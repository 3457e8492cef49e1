"""Starting the provider of Azure: with a service principal, or on loopback without.

Where to read next: ``provider``.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from azure.core.credentials import AccessToken

from worker_manager.core.errors import MalformedSecretError
from worker_manager.providers.azure.arm import READ_TIMEOUT, Arm
from worker_manager.providers.azure.provider import AzureProvider

if TYPE_CHECKING:
    from collections.abc import Callable

    from azure.core.credentials import TokenCredential

    from worker_manager.core.model import Json
    from worker_manager.providers.protocol import Setup

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
NAMES = {
    "tenantId": ("tenantId", "domain"),
    "clientId": ("clientId",),
    "clientSecret": ("clientSecret", "secret"),
}
"""Members of the secret, each with the names that it may have; the second is the reference's."""

FAR_FUTURE = 4_102_444_800
"""When the token for loopback expires: 2100, in seconds since 1970."""


class _NoCredential:
    """Stands in for a credential where nobody checks it."""

    def get_token(self, *scopes: str, **options: Any) -> AccessToken:
        """A token that says nothing."""
        return AccessToken("loopback", FAR_FUTURE)


def start(setup: Setup, *, sleep: Callable[[float], None] = time.sleep) -> AzureProvider:
    """A provider of Azure.

    ``MalformedSecretError`` for an incomplete secret or missing options; ``ValueError`` for an
    endpoint that is not on this machine.
    """
    if setup.endpoint is not None and urlsplit(setup.endpoint).hostname not in LOOPBACK:
        raise ValueError("WM_CLOUD_ENDPOINT must be on loopback: a token is sent there")
    principal = read_secret(setup.secret(), may_be_empty=setup.endpoint is not None)
    arm = Arm(
        subscription=_option(setup, "subscription"),
        credential=_NoCredential() if setup.endpoint is not None else _credential(principal),
        endpoint=setup.endpoint,
        read_timeout=setup.read_timeout or READ_TIMEOUT,
    )
    return AzureProvider(
        provider_id=setup.provider_id,
        deployment=setup.deployment,
        arm=arm,
        resource_group=_option(setup, "resourceGroup"),
        secret=principal.get("clientSecret", "").encode(),
        sleep=sleep,
    )


def read_secret(text: str, *, may_be_empty: bool) -> dict[str, str]:
    """The service principal in a secret; nothing of it is quoted in ``MalformedSecretError``."""
    try:
        given = json.loads(text or "{}")
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise MalformedSecretError("the secret is no JSON object")
    found = {member: _first(given, names) for member, names in NAMES.items()}
    missing = [member for member, value in found.items() if not value]
    if missing and not may_be_empty:
        raise MalformedSecretError(f"the secret has no {', '.join(missing)}")
    return {member: value for member, value in found.items() if value}


def _first(given: Json, names: tuple[str, ...]) -> str:
    """The first text under one of these names; empty if there is none."""
    texts = (given.get(name) for name in names)
    return next((text for text in texts if isinstance(text, str) and text), "")


def _credential(principal: dict[str, str]) -> TokenCredential:
    """A credential that does not wait, either; imported only where it is needed."""
    from azure.identity import ClientSecretCredential  # noqa: PLC0415

    return ClientSecretCredential(
        principal["tenantId"],
        principal["clientId"],
        principal["clientSecret"],
        retry_total=0,
        connection_timeout=3,
        read_timeout=10,
    )


def _option(setup: Setup, name: str) -> str:
    """A public fact of the provider."""
    if not setup.options.get(name):
        raise MalformedSecretError(f"the provider's settings have no {name}")
    return setup.options[name]
