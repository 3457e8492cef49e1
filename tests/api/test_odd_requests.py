"""Requests that are well-formed and still cannot be meant: a 4xx, and nothing is left behind."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from typing import Any

import pytest

from tests.api.world import POOL_PATH, Api, a_definition, a_launch_config
from worker_manager.api.requests import DEEPEST

ERRORS = "worker-pool-errors/proj-x%2Fpool-1"
REPORT = {"workerGroup": "us-east-1", "workerId": "i-1", "kind": "k", "title": "t"}
ABOVE_CONFIGS = 4
"""Containers around ``workerConfig``: body, config, launch configs, one of them."""


def nested(depth: int) -> dict[str, Any]:
    inner: dict[str, Any] = {}
    for _ in range(depth - 1):
        inner = {"a": inner}
    return inner


def a_nested_definition(depth: int, **manager: str) -> dict[str, Any]:
    config = a_launch_config(workerConfig=nested(depth), workerManager=manager)
    return a_definition(config={"launchConfigs": [config]})


@pytest.mark.parametrize("depth", [DEEPEST, 150, 260, 400, 900])
@pytest.mark.parametrize("manager", [{}, {"launchConfigId": "lc-a"}])
def test_a_definition_too_deep_to_be_read_back_is_refused(
    api: Api, depth: int, manager: dict[str, str]
) -> None:
    response = api("PUT", POOL_PATH, a_nested_definition(depth, **manager))
    assert (response.status, response.code) == (400, "MalformedPayload")
    assert api.contents() == []


@pytest.mark.parametrize("manager", [{}, {"launchConfigId": "lc-a"}])
def test_the_deepest_definition_that_is_taken_can_be_read_back(
    api: Api, manager: dict[str, str]
) -> None:
    definition = a_nested_definition(DEEPEST - ABOVE_CONFIGS, **manager)
    config = api.ok("PUT", POOL_PATH, definition)["config"]
    assert api.ok("GET", POOL_PATH)["config"] == config
    assert api.ok("GET", "worker-pools")["workerPools"][0]["config"] == config


def test_a_report_too_deep_to_be_read_back_is_refused(pool: Api) -> None:
    body = {**REPORT, "description": "d", "extra": nested(DEEPEST)}
    assert pool("POST", ERRORS, body).code == "MalformedPayload"
    assert pool.ok("GET", ERRORS) == {"workerPoolErrors": []}


@pytest.mark.parametrize(
    "number",
    ["1e999", "-1E400", "1e-401", "1e-99999999999999999999", "1e99999999999999999999", "0.0e-9999"],
)
def test_a_number_that_cannot_be_written_again_is_refused(api: Api, number: str) -> None:
    definition = a_definition(config={"launchConfigs": [a_launch_config(workerConfig={"n": "@"})]})
    raw = json.dumps(definition).replace('"@"', number).encode()
    assert api("PUT", POOL_PATH, raw=raw).code == "MalformedPayload"


@pytest.mark.parametrize(
    "position",
    [
        "0001-01-01T00:00:00+14:00#abc",
        "9999-12-31T23:59:59-14:00#abc",
        "2026-01-02T03:04:05.000Z#" + "x" * 2_000,
        "2026-01-02T03:04:05.000Z#\0",
        "2026-01-02T03:04:05Z#abc",
    ],
)
def test_a_position_that_is_no_key_of_a_list_is_refused(pool: Api, position: str) -> None:
    token = urlsafe_b64encode(position.encode()).decode().rstrip("=")
    assert pool("GET", ERRORS, query=f"continuationToken={token}").status == 400


@pytest.mark.parametrize("path", ["worker-pools", "workers/proj-x%2Fpool-1", ERRORS, "providers"])
def test_a_token_longer_than_any_key_is_refused(pool: Api, path: str) -> None:
    assert pool("GET", path, query=f"continuationToken={'x' * 2_000}").status == 400
