"""Machines in a rack on the deployed system, with the agent beside them as a process of its own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from infra.local.hardware import Hardware
from infra.local.mishaps import Mishaps
from infra.settings import STAGES
from tests.journeys.world import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infra.local.stage import LocalStage

pytestmark = pytest.mark.journey

POOL = "journey-rack/machines"
MISSING_SECONDS = 10
"""Over HTTP nobody may say less than a minute."""


@pytest.fixture
def hardware(stage: LocalStage) -> Iterator[Hardware]:
    hardware = Hardware(stage, POOL)
    try:
        hardware.set_up(agent_poll_seconds=0.5)
        change_policy(stage, "missing", MISSING_SECONDS)
        yield hardware
    finally:
        hardware.stop()


def change_policy(stage: LocalStage, threshold: str, value: float) -> None:
    table = STAGES["local"].resource_name("registry")
    client = stage.client("dynamodb")
    key = {"pk": {"S": "machine-policies"}, "sk": {"S": POOL}}
    item = client.get_item(TableName=table, Key=key)["Item"]
    body: dict[str, Any] = json.loads(item["body"]["S"])
    body["thresholds"][threshold] = value
    client.put_item(TableName=table, Item=item | {"body": {"S": json.dumps(body)}})


def test_one_hangs_and_is_brought_back_one_is_put_aside_and_one_is_found_flaky(
    stage: LocalStage, hardware: Hardware
) -> None:
    mishaps = Mishaps(stage, hardware, tick_seconds=1.0, held_seconds=5.0)

    def is_over() -> bool:
        mishaps.go_on()
        return mishaps.is_over

    until(is_over, seconds=120, every=0.3)
    assert mishaps.judge() == []
    cast = mishaps.cast
    assert cast is not None

    [run] = hardware.registry.listTaskQueueActionRuns(POOL)["runs"]
    assert run["target"]["workerId"] == cast.hung
    assert (run["requestedBy"], run["holder"]) == ("worker-manager", "local")
    assert "the worker was seen again" in run["message"]
    health = hardware.registry.machineHealth(query={"taskQueueId": POOL})
    assert {one["workerId"]: one["verdict"] for one in health["machines"]} == {cast.flaky: "flaky"}
    assert health["held"] == []
    path = hardware.path_of(cast.flaky)
    [aside] = hardware.registry.listQuarantines(*path)["quarantines"]
    assert aside["quarantineInfo"].startswith("auto: flaky: Its last")
    assert hardware.registry.listWorkerActionRuns(*path)["runs"] == []
