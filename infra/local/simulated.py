"""The simulated clouds of a local stage: what they are told, and what the stage is told of them.

Read next: ``stage``, which starts them; each is a package below ``infra.local.clouds``.
"""

from __future__ import annotations

import urllib.request
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from infra.settings import STAGES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra.settings import ProviderSettings, ProviderType

CLOUDS = ("ec2", "compute", "arm")
"""Their names: of the package, the process and its log."""

CREDENTIALS = "{}"
"""What a provider's secret holds whose cloud is on loopback, and asks nobody for a key."""


def control_document(cloud: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """What a cloud is started with: the account of the local stage's provider, and ``given``."""
    account = _account_of(cloud)
    settings = {**account, **given.get("settings", {})}
    return {**given, **({"settings": settings} if settings else {})}


def _account_of(cloud: str) -> dict[str, Any]:
    if cloud == "compute":
        google = _local_provider("google")
        return {"project": google.project, "service_account_id": google.service_account_id}
    if cloud == "arm":
        azure = _local_provider("azure")
        return {
            "subscription_id": azure.subscription,
            "resource_groups": [azure.resource_group],
        }
    return {}


def _local_provider(provider_type: ProviderType) -> ProviderSettings:
    [found] = [one for one in STAGES["local"].providers if one.provider_type == provider_type]
    return found


def template_parameters(urls: Mapping[str, str]) -> dict[str, str]:
    """Where the clouds are, and whom they sign in the name of, as the template asks for it."""
    return {
        "TrustedEc2Keys": _text(f"{urls['ec2']}/_control/public-key"),
        "GoogleEndpoint": urls["compute"],
        "GoogleCertificatesUrl": f"{urls['compute']}/oauth2/v1/certs",
        "AzureEndpoint": urls["arm"],
        "TrustedAzureRoots": _text(f"{urls['arm']}/_control/root-certificate"),
        "AzureIssuerHosts": urlsplit(urls["arm"]).netloc,
    }


def _text(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return str(answer.read().decode())
