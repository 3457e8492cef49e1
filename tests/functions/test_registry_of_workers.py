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
