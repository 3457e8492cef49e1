"""Workers in a cloud are rebooted because somebody asks for it, once, and go on working."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
import requests
import taskcluster  # type: ignore[import-untyped]
from taskcluster.client import createApiClient  # type: ignore[import-untyped]

from infra.local.machines.worker import Outcome
from infra.local.samples import create_tasks, launch_config
from tests.journeys.world import FORGETFUL, a_pool, until

if TYPE_CHECKING:
    from infra.local.machines import MachineFleet
    from tests.journeys.world import World

pytestmark = pytest.mark.journey

POOLS = {"journey/reboots": "lc-reboots", "journey/forgetful": FORGETFUL}
"""With the launch configs of their workers: these keep their credentials, those register again."""


def registry(world: World) -> Any:
    """A client made of the reference that is served."""
    url = f"{world.stage.root_url}/references/worker-registry/v1/api.json"
    reference = requests.get(url, timeout=60).json()
    return world.client(createApiClient("WorkerRegistry", {"reference": reference}))


def test_workers_are_rebooted_once_and_their_runs_end_when_they_are_seen_again(
    world: World, fleet: MachineFleet
) -> None:
    for pool_id, config in POOLS.items():
        configs = [launch_config(config, "us-west-2")]
        world.manager.createWorkerPool(pool_id, a_pool(configs, minimum=1, maximum=1))

    def running() -> list[dict[str, Any]]:
        world.tick()
        found = [one for pool_id in POOLS for one in world.workers(pool_id, "running")]
        return found if len(found) == len(POOLS) else []

    workers = until(running, every=1)
    before = Counter(fleet.outcomes)
    client = registry(world)
    run_ids = []
    for worker in workers:
        place = (worker["workerGroup"], worker["workerId"])
        asked = {"requestId": taskcluster.slugId(), "reason": "it is slow"}
        name = (*worker["workerPoolId"].split("/"), *place, "reboot")
        first, again = (client.runWorkerAction(*name, asked) for _ in range(2))
        assert first["runId"] == again["runId"] == asked["requestId"]
        run_ids.append(first["runId"])

    def over() -> list[dict[str, Any]]:
        runs = [client.actionRun(run_id) for run_id in run_ids]
        return [] if {run["state"] for run in runs} & {"queued", "claimed", "running"} else runs

    for run in until(over, every=0.5):
        assert (run["state"], run["message"]) == ("succeeded", "the worker was seen again")
        assert [(one["method"], one["result"]) for one in run["attempts"]] == [("reboot", "ok")]
    assert fleet.outcomes[Outcome.REBOOTED] == before[Outcome.REBOOTED] + 2
    assert fleet.outcomes[Outcome.REGISTERED] == before[Outcome.REGISTERED] + 1
    assert fleet.outcomes[Outcome.REFUSED] == before[Outcome.REFUSED]
    powered = {one["instance_id"]: one["reboots"] for one in world.cloud("/_machines")}
    assert [powered[worker["workerId"]] for worker in workers] == [1, 1]

    tasks = [create_tasks(world.queue, pool_id, 1, seconds=0.5)[0] for pool_id in POOLS]

    def are_done() -> bool:
        return all(world.queue.status(one)["status"]["state"] == "completed" for one in tasks)

    until(are_done, every=0.5)
    world.tick()
    left = [one["workerId"] for pool_id in POOLS for one in world.workers(pool_id, "running")]
    assert left == [worker["workerId"] for worker in workers]
