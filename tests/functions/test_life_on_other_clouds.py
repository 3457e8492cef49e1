"""A pool's life on Google Cloud and on Azure, through each function's handler and environment."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from moto import mock_aws

from infra.local.clouds.arm import SimulatedArm
from infra.local.clouds.arm.cloud import ArmCloud
from infra.local.clouds.compute import ComputeCloud, SimulatedCompute
from infra.local.clouds.ec2 import Ec2Cloud
from infra.local.samples import (
    azure_machine_config,
    azure_template_config,
    google_launch_config,
)
from infra.local.simulated import control_document
from infra.local.standing import Standing, look, tell
from tests.events import an_sqs_event
from tests.functions.running import API, POOL_ID, TIMINGS, RunningStage
from tests.http_server import serving
from tests.infra.virtual_clock import VirtualClock
from worker_manager.core.messages import Follow
from worker_manager.core.model import Location, WorkerKey

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LAUNCH_CONFIGS: Mapping[str, Mapping[str, dict[str, Any]]] = {
    "google": {"instance": google_launch_config("lc-a", "us-central1-a")},
    "azure": {
        "template": azure_template_config("lc-a", "eastus"),
        "machine": azure_machine_config("lc-a", "eastus"),
    },
}
LOCATIONS = {
    "google": Location("simulated-project"),
    "azure": Location("00000000-0000-4000-8000-000000000001"),
}


class Abroad:
    """A stage with two more clouds, all with one clock."""

    def __init__(
        self, stage: RunningStage, urls: Mapping[str, str], compute: ComputeCloud, arm: ArmCloud
    ) -> None:
        self.stage = stage
        self.urls = urls
        self._compute, self._arm = compute, arm

    def reboots(self) -> list[int]:
        """How often each machine of both clouds booted anew."""
        counts = [one.reboots for one in self._compute.instances()]
        return counts + [one.reboots for one in self._arm.machines()]

    def standing(self) -> Standing:
        return look(self.urls)

    def follow(self, provider_id: str) -> None:
        """Deliver the message that waits in the queue for its delay to pass."""
        keys = [
            WorkerKey(POOL_ID, worker["workerGroup"], worker["workerId"])
            for worker in self.stage.workers()
        ]
        message = Follow(LOCATIONS[provider_id], tuple(keys), "any", datetime.now(UTC))
        name = f"advance-{provider_id}"
        answer = self.stage.deployed.call(name, an_sqs_event([message.to_json()]))
        assert answer == {"batchItemFailures": []}

    def remove_workers(self, provider_id: str) -> None:
        for worker in self.stage.workers():
            name = f"{worker['workerGroup']}/{worker['workerId']}"
            self.stage.ask("workers-api", "DELETE", f"{API}/workers/proj-x%2Fpool-1/{name}")
        self.stage.deliver(f"advance-{provider_id}", f"advance-{provider_id}")

    def states(self) -> list[str]:
        return [worker["state"] for worker in self.stage.workers()]


@pytest.fixture
def abroad() -> Iterator[Abroad]:
    clock = VirtualClock()
    clock.now = time.time()
    ec2, compute, arm = Ec2Cloud(clock=clock), ComputeCloud(clock=clock), ArmCloud(clock=clock)
    with (
        mock_aws(),
        SimulatedCompute(compute) as compute_server,
        SimulatedArm(arm) as arm_server,
    ):
        urls = {"compute": compute_server.url, "arm": arm_server.url}
        for cloud, url in urls.items():
            tell(url, control_document(cloud, {}))
        parameters = {
            "GoogleEndpoint": compute_server.url,
            "AzureEndpoint": arm_server.url,
            "Timings": json.dumps({**TIMINGS, "leftover_grace": 0}),
        }
        made: list[RunningStage] = []

        def behind(root_url: str) -> RunningStage:
            made.append(RunningStage(root_url, ec2, clock, parameters=parameters))
            return made[0]

        with serving(lambda root_url: behind(root_url).answer):
            yield Abroad(made[0], urls, compute, arm)


@pytest.mark.parametrize(
    ("provider_id", "shape"),
    [(name, shape) for name, shapes in LAUNCH_CONFIGS.items() for shape in shapes],
)
def test_a_pool_grows_is_followed_scanned_and_shrinks_and_nothing_is_left(
    abroad: Abroad, provider_id: str, shape: str
) -> None:
    stage = abroad.stage
    stage.define_pool(provider_id, launchConfigs=[LAUNCH_CONFIGS[provider_id][shape]])
    stage.create_task("one")
    stage.create_task("two")

    stage.provision(provider_id)
    assert stage.deployed.waiting(f"advance-{provider_id}")[1] == 1
    stage.clock.advance(60)
    stage.scan(provider_id)
    abroad.follow(provider_id)
    stage.clock.advance(60)

    assert abroad.states() == ["requested"] * 2
    assert abroad.standing().running == {POOL_ID: 2}
    assert "deployments" not in abroad.standing().in_words()

    abroad.remove_workers(provider_id)
    stage.clock.advance(60)
    stage.scan(provider_id)

    assert abroad.states() == ["stopped"] * 2
    assert abroad.standing().in_words() == ""


@pytest.mark.parametrize("provider_id", LAUNCH_CONFIGS)
def test_a_worker_is_rebooted_when_somebody_asks_for_it(abroad: Abroad, provider_id: str) -> None:
    stage = abroad.stage
    [launch_config, *_] = LAUNCH_CONFIGS[provider_id].values()
    stage.define_pool(provider_id, launchConfigs=[launch_config], minCapacity=1)
    stage.create_task("one")
    stage.provision(provider_id)
    stage.clock.advance(60)
    abroad.follow(provider_id)
    (worker,) = stage.workers()

    run = stage.reboot(worker, provider_id)

    assert (run["state"], run["message"]) == ("succeeded", "the worker was seen again")
    assert [one["result"] for one in run["attempts"]] == ["ok"]
    assert abroad.reboots() == [1]
    stage.scan(provider_id)
    assert abroad.states() == ["requested"]


@pytest.mark.parametrize("provider_id", LAUNCH_CONFIGS)
def test_what_a_machine_deleted_by_hand_leaves_is_swept(abroad: Abroad, provider_id: str) -> None:
    stage = abroad.stage
    [launch_config, *_] = LAUNCH_CONFIGS[provider_id].values()
    stage.define_pool(provider_id, launchConfigs=[launch_config], minCapacity=1)
    stage.provision(provider_id)
    stage.clock.advance(60)
    abroad.follow(provider_id)
    [machine] = abroad.standing().machines

    by_hand: dict[str, Any] = {
        "google": {"forget_machines": [machine.name]},
        "azure": {"forget": {"virtualMachines": [machine.name]}},
    }
    tell(abroad.urls[machine.cloud], by_hand[provider_id])
    stage.scan(provider_id)
    assert abroad.states() == ["stopped"]
    assert abroad.standing().others

    report = stage.deployed.call(f"sweep-{provider_id}", {})
    stage.clock.advance(60)

    assert report["removed"] == report["found"] > 0
    assert abroad.standing().in_words() == ""
