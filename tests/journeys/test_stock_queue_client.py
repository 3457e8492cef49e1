"""The stock Python client calls every method of the embedded queue."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
import taskcluster  # type: ignore[import-untyped]

from infra.local.samples import create_tasks
from tests.journeys.world import in_an_hour, until
from worker_manager.bus import SOURCE
from worker_manager.core.events import WORKER_STOPPED
from worker_manager.core.moments import to_wire

if TYPE_CHECKING:
    from infra.local.stage import LocalStage
    from tests.journeys.world import World

pytestmark = pytest.mark.journey

WORKER = {"workerGroup": "rack-1", "workerId": "host-1"}


def counts(world: World, pool_id: str) -> tuple[int, int]:
    answer = world.queue.taskQueueCounts(pool_id)
    return answer["pendingTasks"], answer["claimedTasks"]


def claim_one(world: World, pool_id: str) -> dict[str, Any]:
    [claim] = world.queue.claimWork(pool_id, {**WORKER, "tasks": 1})["tasks"]
    found: dict[str, Any] = claim
    return found


def test_it_answers_that_it_lives(world: World) -> None:
    assert world.queue.ping()["alive"] is True
    assert world.queue.heartbeat() == {}
    assert world.queue.lbheartbeat() == {}


def test_a_task_is_created_claimed_reclaimed_and_completed(world: World) -> None:
    pool_id = "journey-queue/tasks"
    [task_id] = create_tasks(world.queue, pool_id, 1, seconds=1)
    assert world.queue.task(task_id)["taskQueueId"] == pool_id
    assert world.queue.status(task_id)["status"]["state"] == "pending"
    assert counts(world, pool_id) == (1, 0)

    claim = claim_one(world, pool_id)
    assert claim["status"]["taskId"] == task_id
    assert counts(world, pool_id) == (0, 1)
    [held] = world.queue.listClaimedTasks(pool_id)["tasks"]
    assert (held["taskId"], held["workerId"]) == (task_id, "host-1")

    run = (task_id, str(claim["runId"]))
    worker = world.client(taskcluster.Queue, credentials=claim["credentials"])
    reclaimed = worker.reclaimTask(*run)
    worker = world.client(taskcluster.Queue, credentials=reclaimed["credentials"])
    assert worker.reportCompleted(*run)["status"]["state"] == "completed"
    assert counts(world, pool_id) == (0, 0)


def test_what_an_ended_worker_claimed_is_pending_again_within_seconds(
    world: World, stage: LocalStage
) -> None:
    """B25: tasks waited up to 20 minutes although their worker was known to be dead."""
    pool_id = "journey-queue/ended"
    [task_id] = create_tasks(world.queue, pool_id, 1, seconds=1)
    claim_one(world, pool_id)
    end = {
        "workerPoolId": pool_id,
        "providerId": "aws",
        **WORKER,
        "timestamp": to_wire(datetime.now(UTC)),
    }
    stage.client("events").put_events(
        Entries=[
            {
                "EventBusName": "wm-local-events",
                "Source": SOURCE,
                "DetailType": WORKER_STOPPED,
                "Detail": json.dumps(end),
            }
        ]
    )

    until(lambda: counts(world, pool_id) == (1, 0))

    first, _ = world.queue.status(task_id)["status"]["runs"]
    assert first["reasonResolved"] == "worker-shutdown"


def test_the_credentials_of_a_run_are_of_no_use_for_another(world: World) -> None:
    pool_id = "journey-queue/foreign"
    create_tasks(world.queue, pool_id, 2, seconds=1)
    mine, other = claim_one(world, pool_id), claim_one(world, pool_id)
    worker = world.client(taskcluster.Queue, credentials=mine["credentials"])
    with pytest.raises(taskcluster.exceptions.TaskclusterRestFailure) as caught:
        worker.reportCompleted(other["status"]["taskId"], str(other["runId"]))
    assert caught.value.status_code == 403


def test_a_run_may_fail_or_end_in_an_exception(world: World) -> None:
    pool_id = "journey-queue/ends"
    create_tasks(world.queue, pool_id, 2, seconds=1)
    failed, excepted = claim_one(world, pool_id), claim_one(world, pool_id)
    run = (failed["status"]["taskId"], str(failed["runId"]))
    assert world.queue.reportFailed(*run)["status"]["state"] == "failed"
    run = (excepted["status"]["taskId"], str(excepted["runId"]))
    reason = {"reason": "malformed-payload"}
    assert world.queue.reportException(*run, reason)["status"]["state"] == "exception"


def test_what_waits_is_listed_claimed_by_name_and_cancelled(world: World) -> None:
    pool_id = "journey-queue/waiting"
    first, second = create_tasks(world.queue, pool_id, 2, seconds=1)
    assert world.queue.pendingTasks(pool_id)["pendingTasks"] == 2
    waiting = world.queue.listPendingTasks(pool_id)["tasks"]
    assert {item["taskId"] for item in waiting} == {first, second}
    assert world.queue.claimTask(first, "0", WORKER)["runId"] == 0
    for task_id in (first, second):
        [run] = world.queue.cancelTask(task_id)["status"]["runs"]
        assert run["reasonResolved"] == "canceled"
    assert counts(world, pool_id) == (0, 0)


def test_who_calls_for_work_is_listed_and_may_be_quarantined(world: World) -> None:
    pool_id = "journey-queue/workers"
    create_tasks(world.queue, pool_id, 2, seconds=1)
    claim_one(world, pool_id)
    name = (*pool_id.split("/"), *WORKER.values())
    [listed] = world.queue.listWorkers(*pool_id.split("/"))["workers"]
    assert (listed["workerGroup"], listed["workerId"]) == ("rack-1", "host-1")
    assert listed["lastDateActive"]
    assert world.queue.getWorker(*name)["workerId"] == "host-1"

    until = in_an_hour()
    world.queue.quarantineWorker(*name, {"quarantineUntil": until, "quarantineInfo": "smoke"})
    assert world.queue.getWorker(*name)["quarantineUntil"] == until
    quarantined = world.queue.listWorkers(*pool_id.split("/"), query={"quarantined": "true"})
    assert len(quarantined["workers"]) == 1
    assert counts(world, pool_id) == (1, 1)
