"""From an API call to machines and back, through every function's handler and environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.functions.running import API, RunningStage
from worker_manager.reconcile import listing

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(params=["queue", "blob"])
def scans_travel_by(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """Whether lists fit into messages."""
    if request.param == "blob":
        monkeypatch.setattr(listing, "LARGEST_MESSAGE", 100)
    yield request.param


def test_a_pool_grows_is_scanned_and_loses_a_removed_worker(
    running: RunningStage, scans_travel_by: str
) -> None:
    running.define_pool()
    running.create_task("one")
    running.create_task("two")

    running.provision()
    running.clock.advance(60)

    assert running.machines() == {"running": 2}
    first, second = running.workers()
    assert {first["state"], second["state"]} == {"requested"}
    assert first["launchConfigId"] == "lc-a"

    running.scan()
    assert scans_travel_by == _way_of_scans(running)
    assert [worker["state"] for worker in running.workers()] == ["requested"] * 2

    path = f"{API}/workers/proj-x%2Fpool-1/us-east-1/{first['workerId']}"
    running.ask("workers-api", "DELETE", path)
    assert running.deliver("advance-aws", "advance-aws") == [{"batchItemFailures": []}]
    running.clock.advance(60)
    running.scan()

    assert running.machines() == {"running": 1, "terminated": 1}
    states = {worker["workerId"]: worker["state"] for worker in running.workers()}
    assert states == {first["workerId"]: "stopped", second["workerId"]: "requested"}


def _way_of_scans(running: RunningStage) -> str:
    """By which way the last list came to its scan."""
    bucket = running.deployed.environment("scan-pool-aws")["WM_BUCKET"]
    import boto3

    found = boto3.client("s3").list_objects_v2(Bucket=bucket)
    return "blob" if found.get("KeyCount") else "queue"


def test_the_clock_clears_up_and_publishes_without_a_pool(running: RunningStage) -> None:
    assert running.deployed.call("expire", {}) == {"pools": 0, "failed": 0}
    assert running.deployed.call("publish", {}) == {"waiting": 0, "sent": 0}


def test_a_deleted_pool_is_drained_left_and_removed(running: RunningStage) -> None:
    running.define_pool(minCapacity=1)
    running.provision()
    running.clock.advance(60)
    pool = f"{API}/worker-pool/proj-x%2Fpool-1"
    running.ask("pools-api", "DELETE", pool)
    assert running.deployed.call("expire", {}) == {"pools": 1, "failed": 0}
    assert running.ask("pools-api", "GET", pool)["providerId"] == "null-provider"

    (worker,) = running.workers()
    path = f"{API}/workers/proj-x%2Fpool-1/us-east-1/{worker['workerId']}"
    running.ask("workers-api", "DELETE", path)
    running.deliver("advance-aws", "advance-aws")
    running.clock.advance(60)
    running.scan()
    running.scan()
    running.deployed.call("expire", {})

    assert running.ask("pools-api", "GET", f"{API}/worker-pools")["workerPools"] == []
