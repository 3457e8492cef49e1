"""A worker in a cloud is rebooted because somebody asks for it, once, and goes on working."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import requests
import taskcluster  # type: ignore[import-untyped]
from taskcluster.client import createApiClient  # type: ignore[import-untyped]

from infra.local.machines.worker import Outcome
from infra.local.samples import create_tasks, launch_config
from tests.journeys.world import a_pool, until

if TYPE_CHECKING:
    from infra.local.machines import MachineFleet
    from tests.journeys.world import World

pytestmark = pytest.mark.journey

POOL = "journey/reboots"


def registry(world: World) -> Any:
    """A client made of the reference that is served."""
    url = f"{world.stage.root_url}/references/worker-registry/v1/api.json"
    reference = requests.get(url, timeout=60).json()
    return world.client(createApiClient("WorkerRegistry", {"reference": reference}))


def test_a_worker_is_rebooted_once_and_the_run_ends_when_it_is_seen_again(
    world: World, fleet: MachineFleet
) -> None:
    configs = [launch_config("lc-reboots", "us-west-2")]
    world.manager.createWorkerPool(POOL, a_pool(configs, minimum=1, maximum=1))

    def running() -> list[dict[str, Any]]:
        world.tick()
        return world.workers(POOL, "running")

    [worker] = until(running, every=1)
    before = fleet.outcomes[Outcome.REBOOTED]
    name = ("journey", "reboots", worker["workerGroup"], worker["workerId"])
    client = registry(world)
    asked = {"requestId": taskcluster.slugId(), "reason": "it is slow"}
    first, again = (client.runWorkerAction(*name, "reboot", asked) for _ in range(2))
    assert first["runId"] == again["runId"] == asked["requestId"]

    def over() -> dict[str, Any]:
        run: dict[str, Any] = client.actionRun(asked["requestId"])
        return {} if run["state"] in ("queued", "claimed", "running") else run

    run = until(over, every=0.5)
    assert (run["state"], run["message"]) == ("succeeded", "the worker was seen again")
    assert [(one["method"], one["result"]) for one in run["attempts"]] == [("reboot", "ok")]
    assert fleet.outcomes[Outcome.REBOOTED] == before + 1
    powered = {one["instance_id"]: one["reboots"] for one in world.cloud("/_machines")}
    assert powered[worker["workerId"]] == 1

    [task_id] = create_tasks(world.queue, POOL, 1, seconds=0.5)
    until(lambda: world.queue.status(task_id)["status"]["state"] == "completed", every=0.5)
    world.tick()
    assert [one["workerId"] for one in world.workers(POOL, "running")] == [worker["workerId"]]
