"""The function that looks after machines, under its own role: it finds, writes, tells and asks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from tests.events import a_scheduled_event
from worker_manager.core.ids import derived_slugid
from worker_manager.core.moments import to_wire

if TYPE_CHECKING:
    from tests.functions.running import RunningStage

REGISTRY = "/api/worker-registry/v1"
POOL = "proj-x%2Fpool-1"
W = "/provisioners/proj-x/worker-types/pool-1"
REBOOT = {
    "name": "reboot",
    "title": "Reboot",
    "description": "by the agent",
    "context": "worker",
    "kind": "agent",
    "agentId": "dc1",
    "operation": "reboot",
}


def test_machines_are_judged_and_helped_as_their_pool_wants(running: RunningStage) -> None:
    now = datetime.now(UTC)

    def ask(method: str, path: str, body: Any = None) -> Any:
        return running.ask("registry-api", method, f"{REGISTRY}{path}", body)

    def at(**ago: float) -> str:
        return to_wire(now - timedelta(**ago))

    running.define_pool()
    ask("PUT", W, {"hardware": True, "actions": [REBOOT]})
    ask("PUT", f"/hardware/pools/{POOL}/policy", {"reboot": True, "quarantine": True})
    silent = {"m-0": at(hours=3), "m-1": at(hours=30)}
    everybody = [f"m-{number}" for number in range(20)]
    seen = [{"workerId": name, "kind": "idle", "at": silent.get(name, at())} for name in everybody]
    for name, state in (("m-2", "failed"), ("m-3", "completed")):
        for number in range(12):
            run: dict[str, Any] = {
                "workerId": name,
                "taskId": derived_slugid(name, number),
                "runId": 0,
            }
            seen += [
                {**run, "kind": "claim", "at": at(minutes=30 - number)},
                {**run, "kind": "resolve", "at": at(minutes=30 - number), "state": state},
            ]
    of_all = {"taskQueueId": "proj-x/pool-1", "workerGroup": "rack-1"}
    ask("POST", "/observations", {"observations": [{**of_all, **one} for one in seen]})

    # Whoever is put aside counts no more.
    for bad in (3, 2):
        report = running.deployed.call("examine", a_scheduled_event(now))
        assert (report["failed"], report["left"], report["bad"]) == (0, 0, bad)

    machines = ask("GET", "/hardware/health")["machines"]
    assert {one["workerId"]: one["verdict"] for one in machines} == {
        "m-0": "missing",
        "m-1": "dead",
        "m-2": "flaky",
    }
    [asked] = ask("GET", f"/task-queues/{POOL}/action-runs")["runs"]
    assert (asked["target"]["workerId"], asked["requestedBy"]) == ("m-0", "worker-manager")
    details = ask("GET", f"/workers/{POOL}/rack-1/m-2")
    assert details["quarantine"]["quarantineInfo"].startswith("auto: flaky: ")
    assert details["verdict"]["verdict"] == "flaky"
    errors = running.ask("workers-api", "GET", f"/api/worker-manager/v1/worker-pool-errors/{POOL}")
    assert [one["kind"] for one in errors["workerPoolErrors"]] == ["machine-dead"]
