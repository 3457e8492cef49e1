"""The deployed template answers, within its roles."""

from __future__ import annotations

import http.client
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from infra.local.stage import LocalStage

pytestmark = pytest.mark.journey


def get(stage: LocalStage, path: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(urlsplit(stage.root_url).netloc, timeout=60)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


@pytest.mark.parametrize("service", ["worker-manager", "worker-registry", "queue"])
def test_the_service_answers_a_ping(stage: LocalStage, service: str) -> None:
    status, body = get(stage, f"/api/{service}/v1/ping")

    assert status == 200
    assert body["alive"] is True


def test_a_worker_runner_that_asks_for_secrets_hears_that_there_are_none(
    stage: LocalStage,
) -> None:
    status, body = get(stage, "/api/secrets/v1/secret/worker-pool%3Aproj%2Fpool")

    assert status == 404
    assert body["code"] == "ResourceNotFound"


def test_a_path_of_nobody_is_a_taskcluster_error(stage: LocalStage) -> None:
    status, body = get(stage, "/api/nobody/v1/ping")

    assert status == 404
    assert set(body) == {"code", "message", "requestInfo"}


@pytest.mark.parametrize("name", ["provision-tick-aws", "scan-tick-aws", "publish", "expire"])
def test_what_the_clock_calls_runs_within_its_role(stage: LocalStage, name: str) -> None:
    stage.tick(name, at=datetime.now(UTC))


def test_every_part_of_the_stage_is_up(stage: LocalStage) -> None:
    assert stage.dead_children() == []
    assert len(stage.table_names) == 8
