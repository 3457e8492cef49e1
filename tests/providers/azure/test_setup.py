"""Starting the provider: which secrets it takes, and where it sends a token."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from azure.identity import ClientSecretCredential

from worker_manager.core.errors import MalformedSecretError
from worker_manager.providers.azure.setup import start
from worker_manager.providers.azure.signing_in import SharedToken
from worker_manager.providers.protocol import Names, Setup, Slots, Stepwise, Sweeps

if TYPE_CHECKING:
    from tests.providers.stages_azure import AzureStage

OPTIONS = {"subscription": "00000000-0000-4000-8000-000000000000", "resourceGroup": "rg"}
OURS = {"tenantId": "a-tenant", "clientId": "a-client", "clientSecret": "hush"}
THEIRS = {"domain": "a-tenant", "clientId": "a-client", "secret": "hush", "subscriptionId": "x"}


def setup(secret: Any, **given: Any) -> Setup:
    text = secret if isinstance(secret, str) else json.dumps(secret)
    facts = {"provider_id": "azure", "deployment": "wm-test", "options": OPTIONS, **given}
    return Setup(secret=lambda: text, **facts)


@pytest.mark.parametrize("secret", [OURS, THEIRS])
def test_a_service_principal_may_be_written_as_ours_or_as_the_references(
    secret: dict[str, str],
) -> None:
    arm = start(setup(secret))._arm
    assert isinstance(arm.credential, SharedToken)
    assert isinstance(arm.credential._credential, ClientSecretCredential)
    assert arm.compute._config.base_url == "https://management.azure.com"


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:1", "https://arm.example.com"])
def test_a_principal_that_is_given_is_used_wherever_the_cloud_is(endpoint: str) -> None:
    arm = start(setup(OURS, endpoint=endpoint))._arm
    assert isinstance(arm.credential, SharedToken)
    assert arm.compute._config.base_url == endpoint


@pytest.mark.parametrize("secret", ["hush", '["hush"]', "", {}, {**OURS, "clientSecret": 7}])
def test_a_secret_that_is_none_is_refused_and_never_quoted(secret: Any) -> None:
    with pytest.raises(MalformedSecretError) as caught:
        start(setup(secret))
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("missing", list(OPTIONS))
def test_what_is_missing_in_the_settings_is_named(missing: str) -> None:
    options = {name: value for name, value in OPTIONS.items() if name != missing}
    with pytest.raises(MalformedSecretError, match=missing):
        start(setup(OURS, options=options))


def test_an_endpoint_elsewhere_needs_tls_and_a_principal() -> None:
    with pytest.raises(ValueError, match="loopback"):
        start(setup(OURS, endpoint="http://10.0.0.1"))
    with pytest.raises(MalformedSecretError):
        start(setup("{}", endpoint="https://arm.example.com"))


@pytest.mark.parametrize("secret", ["", "{}"])
def test_a_simulated_azure_asks_for_no_secret(azure: AzureStage, secret: str) -> None:
    provider = start(setup(secret, endpoint=azure.url))
    assert list(provider.instances(azure.location)) == []


def test_half_a_principal_is_refused_on_this_machine_too() -> None:
    with pytest.raises(MalformedSecretError, match="tenantId"):
        start(setup({"clientSecret": "hush"}, endpoint="http://127.0.0.1:1"))


def test_the_provider_can_all_that_azure_needs(azure: AzureStage) -> None:
    assert isinstance(azure.provider, Names)
    assert isinstance(azure.provider, Stepwise)
    assert isinstance(azure.provider, Slots)
    assert isinstance(azure.provider, Sweeps)


def test_nothing_that_shows_a_provider_shows_its_secret() -> None:
    provider = start(setup(OURS))
    assert "hush" not in repr(provider._launcher)
    assert "hush" not in repr(provider._arm)
