"""Starting the provider of Azure: with a service principal, or on loopback without.

Where to read next: ``provider``.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from azure.core.credentials import AccessToken

from worker_manager.core.errors import MalformedSecretError
from worker_manager.providers.azure.arm import MAX_CONNECTIONS, Arm
from worker_manager.providers.azure.provider import AzureProvider
from worker_manager.providers.azure.signing_in import SharedToken
from worker_manager.providers.endpoint import is_local
from worker_manager.providers.visit import READ_TIMEOUT, Visits

if TYPE_CHECKING:
    from collections.abc import Callable

    from azure.core.credentials import TokenCredential

    from worker_manager.core.model import Json
    from worker_manager.providers.protocol import Setup

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

    Its secret is a service principal; it may be empty where an endpoint on this machine stands for
    the cloud.  Raises ``MalformedSecretError`` for an incomplete one, or missing options;
    ``ValueError`` for an endpoint elsewhere without TLS.
    """
    principal = read_secret(setup.secret(), may_be_empty=is_local(setup.endpoint))
    read_timeout = setup.read_timeout or READ_TIMEOUT
    arm = Arm(
        subscription=_option(setup, "subscription"),
        credential=SharedToken(_credential(principal)) if principal else _NoCredential(),
        endpoint=setup.endpoint,
        read_timeout=read_timeout,
    )
    return AzureProvider(
        provider_id=setup.provider_id,
        deployment=setup.deployment,
        arm=arm,
        visits=Visits(parallel=MAX_CONNECTIONS, read_timeout=read_timeout),
        resource_group=_option(setup, "resourceGroup"),
        secret=principal.get("clientSecret", "").encode(),
        sleep=sleep,
    )


def read_secret(text: str, *, may_be_empty: bool) -> dict[str, str]:
    """The service principal in a secret, of which nothing is quoted in ``MalformedSecretError``.

    Empty only where that is allowed.
    """
    try:
        given = json.loads(text or "{}")
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise MalformedSecretError("the secret is no JSON object")
    if not given and may_be_empty:
        return {}
    found = {member: _first(given, names) for member, names in NAMES.items()}
    missing = [member for member, value in found.items() if not value]
    if missing:
        raise MalformedSecretError(f"the secret has no {', '.join(missing)}")
    return found


def _first(given: Json, names: tuple[str, ...]) -> str:
    """The first text under one of these names; empty if there is none."""
    texts = (given.get(name) for name in names)
    return next((text for text in texts if isinstance(text, str) and text), "")


def _credential(principal: dict[str, str]) -> TokenCredential:
    """A credential that signs in by two calls, in 16 seconds at the most.

    Imported only where it is needed.
    """
    from azure.identity import ClientSecretCredential  # noqa: PLC0415

    return ClientSecretCredential(
        principal["tenantId"],
        principal["clientId"],
        principal["clientSecret"],
        retry_total=0,
        connection_timeout=3,
        read_timeout=5,
        disable_instance_discovery=True,
    )


def _option(setup: Setup, name: str) -> str:
    """A public fact of the provider."""
    if not setup.options.get(name):
        raise MalformedSecretError(f"the provider's settings have no {name}")
    return setup.options[name]
