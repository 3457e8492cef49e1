"""References and schemas from the functions that the front door sends them to."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.events import a_proxy_event

if TYPE_CHECKING:
    from tests.functions.deployed import DeployedStage

API = "/references/worker-manager/v1/api.json"
EXCHANGES = "/references/worker-manager/v1/exchanges.json"
REGISTRY = "/references/worker-registry/v1/api.json"
QUEUE = "/references/queue/v1/api.json"


def read(stage: DeployedStage, function: str, path: str, **changes: str) -> Any:
    answer = stage.call(function, a_proxy_event(path=path), **changes)
    assert answer["statusCode"] == 200, answer["body"]
    assert answer["headers"]["Cache-Control"] == "public, max-age=300"
    return json.loads(answer["body"])


def paths(manifest: Any) -> list[str]:
    return [f"/references{url.partition('/references')[2]}" for url in manifest["references"]]


@pytest.mark.parametrize(
    ("function", "path"),
    [
        ("pools-api", API),
        ("pools-api", EXCHANGES),
        ("pools-api", "/schemas/common/metaschema.json"),
        ("pools-api", "/schemas/worker-manager/v1/worker-pool-full.json"),
        ("pools-api", "/api/worker-manager/v1/openapi.json"),
        ("queue-api", QUEUE),
        ("queue-api", "/schemas/queue/v1/create-task-request.json"),
        ("queue-api", "/api/queue/v1/openapi.json"),
    ],
)
def test_a_function_gives_its_documents(shared: DeployedStage, function: str, path: str) -> None:
    assert read(shared, function, path)


def test_the_manifest_tells_of_the_embedded_queue(shared: DeployedStage) -> None:
    manifest = read(shared, "pools-api", "/references/manifest.json")
    assert paths(manifest) == [API, EXCHANGES, REGISTRY, QUEUE]


def test_the_manifest_does_not_tell_of_somebody_elses_queue(shared: DeployedStage) -> None:
    elsewhere = {"WM_QUEUE_ROOT_URL": "https://tc.example.com"}
    manifest = read(shared, "pools-api", "/references/manifest.json", **elsewhere)
    assert paths(manifest) == [API, EXCHANGES, REGISTRY]
