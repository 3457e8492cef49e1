"""Workers across provisioners, with stock clients: the queue's, the manager's and one of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import requests
import taskcluster  # type: ignore[import-untyped]
from taskcluster.client import createApiClient  # type: ignore[import-untyped]

from infra.local.samples import create_tasks
from tests.journeys.world import in_an_hour, until

if TYPE_CHECKING:
    from tests.journeys.world import World

pytestmark = pytest.mark.journey

POOL = "journey-registry/workers"
PARTS = tuple(POOL.split("/"))
WORKER = {"workerGroup": "rack-9", "workerId": "host-9"}
NAME = (*PARTS, *WORKER.values())


def registry(world: World) -> Any:
    """A client made of the reference that is served, as anybody can make one."""
    url = f"{world.stage.root_url}/references/worker-registry/v1/api.json"
    reference = requests.get(url, timeout=60).json()
    return world.client(createApiClient("WorkerRegistry", {"reference": reference}))


def test_what_called_for_work_is_known_at_every_level(world: World) -> None:
    queue = world.queue
    [task_id] = create_tasks(queue, POOL, 1, seconds=1)
    [claim] = queue.claimWork(POOL, {**WORKER, "tasks": 1})["tasks"]
    queue.reportCompleted(task_id, str(claim["runId"]))

    listed = [one["provisionerId"] for one in queue.listProvisioners()["provisioners"]]
    assert "journey-registry" in listed
    assert queue.getProvisioner("journey-registry")["lastDateActive"]
    [found] = queue.listWorkerTypes("journey-registry")["workerTypes"]
    assert {**found, "actions": []} == queue.getWorkerType(*PARTS)
    queues = [one["taskQueueId"] for one in queue.listTaskQueues()["taskQueues"]]
    assert POOL in queues
    assert queue.getTaskQueue(POOL)["expires"] == found["expires"]
    [worker] = queue.listWorkers(*PARTS)["workers"]
    assert worker["latestTask"] == {"taskId": task_id, "runId": 0}
    [recent] = queue.getWorker(*NAME)["recentTasks"]
    assert recent["state"] == "completed"
    manager = world.client(taskcluster.WorkerManager)
    [merged] = manager.listWorkers(*PARTS)["workers"]
    assert (merged["workerId"], merged["state"]) == ("host-9", "standalone")
    assert manager.getWorker(*NAME)["providerId"] == "none"


def test_what_people_say_of_it_is_kept_apart(world: World) -> None:
    registered = registry(world)
    registered.declareProvisioner("journey-registry", {"description": "ours"})
    registered.declareWorkerType(*PARTS, {"stability": "stable"})
    registered.declareWorker(*NAME, {"capacity": 2})
    registered.putWorkerTypeMetadata(*PARTS, {"documentation": "# Workers"})

    assert world.queue.getProvisioner("journey-registry")["description"] == "ours"
    assert world.queue.getWorkerType(*PARTS)["stability"] == "stable"
    assert registered.workerTypeMetadata(*PARTS)["documentation"] == "# Workers"
    registered.deleteWorkerTypeMetadata(*PARTS)
    with pytest.raises(taskcluster.exceptions.TaskclusterRestFailure):
        registered.workerTypeMetadata(*PARTS)


def test_a_worker_is_put_aside_before_it_ever_called_and_released_by_time(world: World) -> None:
    registered = registry(world)
    create_tasks(world.queue, POOL, 1, seconds=1)
    aside = {"workerGroup": "rack-9", "workerId": "never-seen"}
    name = (*PARTS, *aside.values())
    world.queue.quarantineWorker(
        *name, {"quarantineUntil": in_an_hour(), "quarantineInfo": "arrives broken"}
    )

    assert world.queue.claimWork(POOL, {**aside, "tasks": 1})["tasks"] == []
    [change] = registered.listQuarantines(*name)["quarantines"]
    assert change["quarantineInfo"] == "arrives broken"
    registered.quarantineWorker(*name, {"quarantined": False})
    assert len(world.queue.claimWork(POOL, {**aside, "tasks": 1})["tasks"]) == 1


def test_a_whole_type_takes_a_break(world: World) -> None:
    registered = registry(world)
    create_tasks(world.queue, POOL, 1, seconds=1)
    registered.closeTaskQueue(POOL, {"quarantined": True, "quarantineInfo": "network"})
    asked = {**WORKER, "tasks": 1}
    assert world.queue.claimWork(POOL, asked)["tasks"] == []
    assert "closedUntil" in world.queue.taskQueueCounts(POOL)
    registered.closeTaskQueue(POOL, {"quarantined": False})
    until(lambda: world.queue.claimWork(POOL, asked)["tasks"])
