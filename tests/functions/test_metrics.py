"""What the loop's functions tell CloudWatch as they end."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tests.events import a_scheduled_event, an_sqs_event
from tests.functions.running import POOL_ID

if TYPE_CHECKING:
    import pytest

    from tests.functions.deployed import DeployedStage
    from tests.functions.running import RunningStage

WATCHED = {"POWERTOOLS_METRICS_NAMESPACE": "wm-test"}


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """The lines in CloudWatch's embedded format, among all that was printed."""
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [line for line in printed if "_aws" in line]


def test_a_loop_tells_of_ticks_pools_and_lists(
    running: RunningStage, capsys: pytest.CaptureFixture[str]
) -> None:
    running.define_pool(minCapacity=2)
    running.deployed.drain("provision-aws.fifo")
    capsys.readouterr()
    stage = running.deployed

    stage.call("provision-tick-aws", a_scheduled_event(datetime.now(UTC)), **WATCHED)
    for event in stage.drain("provision-aws.fifo"):
        stage.call("provision-pool-aws", event, **WATCHED)
    stage.call("scan-tick-aws", a_scheduled_event(datetime.now(UTC)), **WATCHED)
    for event in stage.drain("scan-aws.fifo"):
        stage.call("scan-pool-aws", event, **WATCHED)

    told = [line for line in lines(capsys) if "Kind" not in line]
    tick, pool, lists, scan = told
    assert all(line["Provider"] == "aws" for line in told)
    assert (tick["ProvisionTicks"], tick["Pools"]) == ([1.0], [1.0])
    assert (pool["pool"], pool["PendingTasks"], pool["InstancesOrdered"]) == (
        POOL_ID,
        [0.0],
        [2.0],
    )
    assert (lists["ScanTicks"], lists["StaleLocations"], lists["Machines"]) == ([1.0], [0.0], [2.0])
    assert (scan["pool"], scan["SeenMachines"]) == (POOL_ID, [2.0])


def test_a_message_that_nobody_can_read_counts_as_a_crash(
    deployed: DeployedStage, capsys: pytest.CaptureFixture[str]
) -> None:
    deployed.call("provision-pool-aws", an_sqs_event(["no JSON"]), **WATCHED)

    [line] = lines(capsys)
    assert line["Crashes"] == [1.0]


def test_a_stage_that_nobody_watches_writes_no_metrics(
    running: RunningStage, capsys: pytest.CaptureFixture[str]
) -> None:
    running.define_pool(minCapacity=1)
    running.provision()
    running.scan()

    assert lines(capsys) == []
