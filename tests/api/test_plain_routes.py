"""Signs of life, providers, and the secrets that are not there."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.api.world import BASE

if TYPE_CHECKING:
    from tests.api.world import Api, Clock


def test_ping_tells_for_how_long_we_are_alive(api: Api, clock: Clock) -> None:
    clock.advance(seconds=2.5)
    assert api.ok("GET", "ping", client=None) == {"alive": True, "uptime": 2.5}


@pytest.mark.parametrize("path", ["__lbheartbeat__", "__heartbeat__"])
def test_heartbeats_are_empty(api: Api, path: str) -> None:
    assert api.ok("GET", path, client=None) == {}


def test_the_version_is_the_projects(api: Api) -> None:
    project = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]
    assert api.ok("GET", "__version__", client=None)["version"] == project["version"]


def test_providers_are_listed_in_their_order_without_the_null_provider(api: Api) -> None:
    assert api.ok("GET", "providers") == {
        "providers": [
            {"providerId": "aws", "providerType": "aws", "status": {"state": "ok"}},
            {"providerId": "aws-2", "providerType": "aws", "status": {"state": "ok"}},
            {"providerId": "static", "providerType": "static"},
        ]
    }


def test_providers_are_paged_by_plain_numbers(api: Api) -> None:
    first = api.ok("GET", "providers", query="limit=2")
    assert first["continuationToken"] == "2"
    rest = api.ok("GET", "providers", query="limit=2&continuationToken=2")
    assert [p["providerId"] for p in rest["providers"]] == ["static"]
    assert "continuationToken" not in rest


def test_a_token_of_providers_that_is_no_number_is_refused(api: Api) -> None:
    response = api("GET", "providers", query="continuationToken=x")
    assert response.code == "InvalidRequestArguments"


@pytest.mark.parametrize(
    "name", ["worker-pool:proj-x%2Fpool-1", "worker-type%3Aproj-x%2Fpool-1", "worker-pool:a/b"]
)
def test_a_worker_runner_finds_no_secrets_and_goes_on(api: Api, name: str) -> None:
    response = api("GET", f"/api/secrets/v1/secret/{name}", client=None)
    assert (response.status, response.code) == (404, "ResourceNotFound")
    assert BASE not in response.message
