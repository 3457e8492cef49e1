"""Actions under the roles of who asks for them and who does them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tests.events import a_scheduled_event
from worker_manager.core.ids import derived_slugid

if TYPE_CHECKING:
    from tests.functions.running import RunningStage

REGISTRY = "/api/worker-registry/v1"
TYPE = f"{REGISTRY}/provisioners/proj-x/worker-types/pool-1"


def test_a_worker_is_put_aside_killed_and_told_of_and_what_is_lost_is_found(
    running: RunningStage,
) -> None:
    running.define_pool(minCapacity=1)
    running.provision()

    def read(path: str) -> Any:
        return running.ask("registry-api", "GET", f"{REGISTRY}{path}")

    [worker] = read("/workers")["workers"]
    path = f"{TYPE}/workers/{worker['workerGroup']}/{worker['workerId']}/actions"

    def run(name: str) -> str:
        body = {"requestId": derived_slugid(name), "reason": "noisy"}
        made = running.ask("registry-api", "POST", f"{path}/{name}", body)
        return str(made["runId"])

    def state(run_id: str) -> str:
        return str(read(f"/action-runs/{run_id}")["state"])

    held = run("quarantine")
    for event in running.deployed.drain("actions"):
        assert running.deployed.call("act", event) == {"batchItemFailures": []}
    assert state(held) == "succeeded"

    killed = run("kill")
    [lost] = running.deployed.drain("actions")
    report = running.deployed.call("act", a_scheduled_event(datetime.now(UTC)))
    assert report == {"open": 1, "over": 0, "again": 0}
    running.deployed.call("act", lost)
    assert state(killed) == "succeeded"
    [after] = read("/workers")["workers"]
    assert after["state"] == "stopping"
    [entry, *_] = running.ask(
        "pools-api",
        "GET",
        f"/api/worker-manager/v1/worker-pool/{quote('proj-x/pool-1', safe='')}/audit",
    )["auditHistory"]
    assert (entry["action"], entry["clientId"]) == ("removed", "test/root")
    [terminate] = running.deployed.drain("advance-aws")
    assert '"terminate"' in terminate["Records"][0]["body"]
