"""The registry's function under its own role: it joins what the queue's and ours have written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.functions.running import RunningStage

REGISTRY = "/api/worker-registry/v1"
CLAIM = "/api/queue/v1/claim-work/proj-x%2Fpool-1"
CALLER = {"workerGroup": "rack-1", "workerId": "m-1", "tasks": 1}


def test_workers_are_found_told_of_counted_and_put_aside(running: RunningStage) -> None:
    running.define_pool(minCapacity=1)
    running.provision()
    running.create_task("one")
    assert len(running.ask("queue-api", "POST", CLAIM, CALLER)["tasks"]) == 1

    def read(path: str) -> Any:
        return running.ask("registry-api", "GET", f"{REGISTRY}{path}")

    found = {one["state"]: one for one in read("/workers")["workers"]}
    assert found.keys() == {"standalone", "requested"}
    ours, theirs = found["requested"], found["standalone"]
    name = f"{ours['workerGroup']}/{ours['workerId']}"
    assert "workerManager" in read(f"/workers/proj-x%2Fpool-1/{name}")
    assert theirs["workerId"] == "m-1"
    assert "observed" in read("/workers/proj-x%2Fpool-1/rack-1/m-1")
    stats = read("/task-queues/proj-x%2Fpool-1/stats")
    assert stats["workers"] == {"total": 1, "idle": 0, "quarantined": 0, "claimed": 1}
    assert (stats["pendingTasks"], stats["claimedTasks"]) == (0, 1)

    asked = {"filter": {"provisionerId": "proj-x", "q": "m-"}, "quarantined": True}
    answer = running.ask("registry-api", "POST", f"{REGISTRY}/quarantines", asked)
    assert [one["changed"] for one in answer["workers"]] == [True]
    running.create_task("two")
    assert running.ask("queue-api", "POST", CLAIM, CALLER)["tasks"] == []


def test_what_waits_in_a_closed_queue_is_told_and_nobody_is_started(running: RunningStage) -> None:
    running.define_pool()
    running.create_task("one")
    queue = f"{REGISTRY}/task-queues/proj-x%2Fpool-1"
    closed = {"quarantined": True, "quarantineInfo": "network down"}
    running.ask("registry-api", "PUT", f"{queue}/quarantine", closed)
    running.provision()

    stats = running.ask("registry-api", "GET", f"{queue}/stats")
    assert (stats["pendingTasks"], stats["closedInfo"]) == (1, "network down")
    pool = "/api/worker-manager/v1/worker-pool/proj-x%2Fpool-1"
    told = running.ask("pools-api", "GET", f"{pool}/explain")
    [decision] = running.ask("pools-api", "GET", f"{pool}/decisions")["decisions"]
    assert (told["limit"], told["facts"]["pending"], decision["orders"]) == ("closed", 1, [])
    assert decision["reasons"] == told["reasons"]
    assert "(network down): nothing is ordered" in told["reasons"][0]
