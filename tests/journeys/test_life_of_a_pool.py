"""Machines come for the work and go after it, and everybody who reads along hears why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from infra.local.samples import create_tasks, launch_config
from tests.journeys.world import FULL_REGION, a_pool, key_of, until

if TYPE_CHECKING:
    from tests.journeys.world import World

pytestmark = pytest.mark.journey

MAXIMUM = 4


@pytest.mark.usefixtures("fleet")
def test_a_pool_grows_for_its_tasks_and_shrinks_to_nothing(world: World) -> None:
    pool_id = "journey/life"
    configs = [launch_config("lc-full", FULL_REGION), launch_config("lc-free", "us-west-2")]
    world.manager.createWorkerPool(pool_id, a_pool(configs, maximum=MAXIMUM))
    tasks = create_tasks(world.queue, pool_id, 8, seconds=0.5)
    most = 0

    def all_done() -> bool:
        nonlocal most
        world.tick()
        most = max(most, len(world.instances(pool_id)))
        counts = world.queue.taskQueueCounts(pool_id)
        return not counts["pendingTasks"] and not counts["claimedTasks"]

    until(all_done, every=1)
    for task_id in tasks:
        assert world.queue.status(task_id)["status"]["state"] == "completed"
    assert 0 < most <= MAXIMUM

    def all_gone() -> bool:
        world.tick()
        states = {worker["state"] for worker in world.workers(pool_id)}
        return not world.instances(pool_id) and states == {"stopped"}

    until(all_gone, every=1)
    _everybody_heard(world, pool_id)


def _everybody_heard(world: World, pool_id: str) -> None:
    wanted = {
        "worker-pool-created",
        "launch-config-created",
        "worker-requested",
        "worker-running",
        "worker-removed",
        "worker-stopped",
        "worker-pool-error",
    }
    until(lambda: world.events.names(pool_id) >= wanted)
    for event in world.events.of(pool_id):
        assert event["reason"]
        assert event["eventId"]
    created = world.events.of(pool_id, "launch-config-created")
    assert {event["launchConfigId"] for event in created} == {"lc-full", "lc-free"}
    workers = {worker["workerId"] for worker in world.workers(pool_id)}
    for name in ("worker-requested", "worker-running", "worker-removed", "worker-stopped"):
        told = world.events.of(pool_id, name)
        assert {event["workerId"] for event in told} == workers
        assert {event["launchConfigId"] for event in told} == {"lc-free"}
    for event in world.events.of(pool_id, "worker-pool-error"):
        assert (event["launchConfigId"], event["kind"]) == ("lc-full", "no-capacity")
    listed = world.manager.listWorkerPoolErrors(pool_id)["workerPoolErrors"]
    assert {error["launchConfigId"] for error in listed} == {"lc-full"}


def test_a_removed_worker_is_deleted_in_the_cloud_without_a_scan(
    world: World, machine: dict[str, Any]
) -> None:
    """B08: nobody waits for a scan, and here none would come."""
    pool_id, _, worker_id = key_of(machine)
    world.register(machine)
    world.manager.removeWorker(*key_of(machine))
    until(
        lambda: worker_id not in [i["instance_id"] for i in world.instances(pool_id)],
        every=0.05,
    )
    assert world.manager.worker(*key_of(machine))["state"] == "stopping"
    world.manager.removeWorker(*key_of(machine))
    told = until(lambda: world.events.of(pool_id, "worker-removed"))
    [mine] = [event for event in told if event["workerId"] == worker_id]
    assert mine["launchConfigId"] == "lc-deaf"
    assert "removeWorker" in mine["reason"]


def test_a_machine_that_vanishes_is_noticed_by_the_next_scan(
    world: World, machine: dict[str, Any]
) -> None:
    pool_id, _, worker_id = key_of(machine)
    world.register(machine)
    ec2 = {"interrupt": [worker_id]}
    world.http.post(f"{world.stage.ec2_url}/_control", json=ec2, timeout=60).raise_for_status()

    def stopped() -> bool:
        world.tick()
        return bool(world.manager.worker(*key_of(machine))["state"] == "stopped")

    until(stopped, every=1)
    told = until(lambda: world.events.of(pool_id, "worker-stopped"))
    assert worker_id in [event["workerId"] for event in told]
