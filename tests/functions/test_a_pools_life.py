"""From an API call to machines and back, through every function's handler and environment."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from infra.local.clouds.ec2 import Fault, FaultKind
from tests.functions.running import API, POOL_PATH, RunningStage
from worker_manager.reconcile import listing

if TYPE_CHECKING:
    from collections.abc import Iterator

CLAIM = "/api/queue/v1/claim-work/proj-x%2Fpool-1"


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
    found = boto3.client("s3").list_objects_v2(Bucket=bucket)
    return "blob" if found.get("KeyCount") else "queue"


def test_the_clock_clears_up_and_publishes_without_a_pool(running: RunningStage) -> None:
    assert running.deployed.call("expire", {}) == {"pools": 0, "failed": 0, "forgotten": 0}
    assert running.deployed.call("publish", {}) == {
        "waiting": 0,
        "sent": 0,
        "mail": {},
        "released": 0,
        "opened": 0,
    }


def test_a_deleted_pool_is_drained_left_and_removed(running: RunningStage) -> None:
    running.define_pool(minCapacity=1)
    running.provision()
    running.clock.advance(60)
    pool = f"{API}/worker-pool/proj-x%2Fpool-1"
    running.ask("pools-api", "DELETE", pool)
    assert running.deployed.call("expire", {})["pools"] == 1
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


def test_a_worker_is_rebooted_when_somebody_asks_for_it(running: RunningStage) -> None:
    running.define_pool(minCapacity=2)
    running.create_task("one")
    running.provision()
    running.clock.advance(60)
    first, _ = running.workers()

    run = running.reboot(first)

    assert (run["state"], run["message"]) == ("succeeded", "the worker was seen again")
    assert [(one["method"], one["result"]) for one in run["attempts"]] == [("reboot", "ok")]
    reboots = {one.instance_id: one.reboots for one in running.ec2.instances()}
    assert reboots.pop(first["workerId"]) == 1
    assert set(reboots.values()) == {0}
    running.scan()
    assert running.machines() == {"running": 2}


def test_a_launch_config_that_the_cloud_refuses_is_told_to_its_owner(
    running: RunningStage,
) -> None:
    running.ec2.bad_images.add("ami-1")
    running.define_pool(minCapacity=1)
    running.provision()

    path = f"{API}/worker-pool-errors/proj-x%2Fpool-1"
    errors = running.ask("workers-api", "GET", path)["workerPoolErrors"]

    assert {error["kind"] for error in errors} == {"invalid-launch-config"}
    assert running.deployed.call("publish", {})["waiting"] == 0


def test_a_throttled_launch_is_resumed_through_advance(running: RunningStage) -> None:
    running.define_pool(minCapacity=1)
    running.ec2.faults.add(
        Fault(FaultKind.ERROR, action="RunInstances", code="RequestLimitExceeded")
    )
    running.deliver("provision-aws.fifo", "provision-pool-aws")
    assert running.machines() == {}

    assert running.deployed.waiting("advance-aws") == (0, 1)


def test_a_machine_that_nobody_ordered_is_looked_up_and_a_lost_one_stops(
    running: RunningStage,
) -> None:
    running.define_pool(minCapacity=1)
    running.provision()
    (worker,) = running.workers()
    running.ec2.terminate("us-east-1", [worker["workerId"]])
    running.clock.advance(10_000)
    assert running.machines() == {}

    running.scan()

    assert [found["state"] for found in running.workers()] == ["stopped"]


def test_a_pool_that_moves_to_racks_is_left_by_its_cloud(running: RunningStage) -> None:
    running.define_pool()
    running.scan()
    moved = {
        "providerId": "static",
        "description": "",
        "owner": "owner@example.com",
        "emailOnError": False,
        "config": {},
    }
    running.ask("pools-api", "POST", POOL_PATH, moved)
    running.deliver("provision-aws.fifo", "provision-pool-aws")
    running.scan()

    running.tick("provision")
    assert running.deployed.drain("provision-aws.fifo") == []


def test_a_worker_in_a_rack_is_entered_changed_and_ended_by_the_clock(
    running: RunningStage,
) -> None:
    body: dict[str, Any] = {
        "providerId": "static",
        "description": "",
        "owner": "owner@example.com",
        "emailOnError": False,
        "config": {},
    }
    running.ask("pools-api", "PUT", POOL_PATH, body)
    path = f"{API}/workers/proj-x%2Fpool-1/racks/rack-1"
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    worker = {"expires": later, "providerInfo": {"staticSecret": "s" * 44}}
    running.ask("workers-api", "PUT", path, worker)
    past = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    running.ask("workers-api", "POST", path, {"expires": past})

    assert running.deployed.call("expire", {})["pools"] == 1

    assert running.ask("workers-api", "GET", path)["state"] == "stopped"


def test_a_worker_in_a_rack_hears_within_a_minute_that_its_launch_config_is_archived(
    running: RunningStage,
) -> None:
    body: dict[str, Any] = {
        "providerId": "static",
        "description": "",
        "owner": "owner@example.com",
        "emailOnError": False,
        "config": {"launchConfigs": [{"workerConfig": {"speed": 1}}]},
    }
    running.ask("pools-api", "PUT", POOL_PATH, body)
    path = f"{API}/workers/proj-x%2Fpool-1/racks/rack-1"
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    worker = {"expires": later, "providerInfo": {"staticSecret": "s" * 44}}
    running.ask("workers-api", "PUT", path, worker)
    registering = {
        "workerPoolId": "proj-x/pool-1",
        "providerId": "static",
        "workerGroup": "racks",
        "workerId": "rack-1",
        "workerIdentityProof": {"staticSecret": "s" * 44},
    }
    given = running.ask("workers-api", "POST", f"{API}/worker/register", registering)
    assert (given["workerConfig"], given["hasCurrentLaunchConfig"]) == ({"speed": 1}, True)
    running.deployed.call("publish", {})
    asked = f"{path}/should-terminate"
    assert running.ask("workers-api", "GET", asked)["terminate"] is False

    body["config"] = {"launchConfigs": [{"workerConfig": {"speed": 2}}]}
    running.ask("pools-api", "POST", POOL_PATH, body)
    running.deployed.call("publish", {})

    told = running.ask("workers-api", "GET", asked)
    assert told == {"terminate": True, "reason": "launch config archived"}
    assert running.ask("workers-api", "GET", path)["hasCurrentLaunchConfig"] is False
    given = running.ask("workers-api", "POST", f"{API}/worker/register", registering)
    assert given["workerConfig"] == {"speed": 2}
    running.deployed.call("publish", {})
    assert running.ask("workers-api", "GET", asked)["terminate"] is False


def test_a_quarantine_outlives_a_removal_in_a_rack(running: RunningStage) -> None:
    """Whoever sets the machine up again need not know why somebody put it aside."""
    body: dict[str, Any] = {
        "providerId": "static",
        "description": "",
        "owner": "owner@example.com",
        "emailOnError": False,
        "config": {},
    }
    running.ask("pools-api", "PUT", POOL_PATH, body)
    path = f"{API}/workers/proj-x%2Fpool-1/racks/rack-1"
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    for secret in ("s" * 44, "t" * 44):
        worker = {"expires": later, "providerInfo": {"staticSecret": secret}}
        assert running.ask("workers-api", "PUT", path, worker)["state"] == "created"
        registry = "/api/worker-registry/v1/provisioners/proj-x/worker-types/pool-1"
        aside = {"quarantined": True, "quarantineInfo": "noisy"}
        if secret == "s" * 44:
            name = f"{registry}/workers/racks/rack-1"
            running.ask("registry-api", "PUT", name, aside)
            running.ask("workers-api", "DELETE", path)
    running.create_task("one")
    caller = {"workerGroup": "racks", "workerId": "rack-1", "tasks": 1}
    claimed = running.ask("queue-api", "POST", CLAIM, caller)
    assert claimed["tasks"] == []


READ = {
    "pools-api": (
        f"{API}/ping",
        f"{API}/providers",
        f"{API}/worker-pools",
        POOL_PATH,
        f"{POOL_PATH}/launch-configs",
    ),
    "workers-api": (
        f"{API}/workers/proj-x%2Fpool-1",
        f"{API}/workers/proj-x%2Fpool-1/us-east-1",
        f"{API}/worker-pool-errors/proj-x%2Fpool-1",
    ),
    "queue-api": (
        "/api/queue/v1/ping",
        "/api/queue/v1/task-queues/proj-x%2Fpool-1/claimed",
    ),
}


def test_what_apis_read_is_allowed_to_them(running: RunningStage) -> None:
    running.define_pool()
    for name, paths in READ.items():
        for path in paths:
            assert running.ask(name, "GET", path) is not None
