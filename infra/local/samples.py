"""Pools to play with, and tasks for them, through the stock Taskcluster client."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import taskcluster  # type: ignore[import-untyped]

from infra.local.stage import ACCESS_TOKEN, CLIENT_ID
from infra.settings import STAGES

if TYPE_CHECKING:
    from collections.abc import Sequence

[_AZURE] = [one for one in STAGES["local"].providers if one.provider_type == "azure"]

SILENT_IMAGE = "ami-0000000000000bad1"
"""Machines of this image register and never claim a task."""

MACHINE_RULES = {
    "default": {"boot_seconds": [2.0, 4.0], "poll_seconds": 1.0, "idle_seconds": 6.0},
    "rules": [{"image_id": SILENT_IMAGE, "overrides": {"claims": False}}],
}
"""How simulated machines behave (``infra.local.machines.behaviour``)."""


def client_options(root_url: str) -> dict[str, Any]:
    """What a stock client is made with."""
    credentials = {"clientId": CLIENT_ID, "accessToken": ACCESS_TOKEN}
    return {"rootUrl": root_url, "credentials": credentials}


def launch_config(
    launch_config_id: str, region: str, *, image: str = "ami-0123456789abcdef0"
) -> dict[str, Any]:
    """One launch config of the sample pools."""
    return {
        "region": region,
        "launchConfig": {"ImageId": image, "InstanceType": "m5.large"},
        **_options(launch_config_id),
    }


def google_launch_config(
    launch_config_id: str, zone: str, *, model: str = "STANDARD"
) -> dict[str, Any]:
    """One launch config on Google Cloud; ``model`` is Google's provisioning model, maybe SPOT."""
    scheduling = {"provisioningModel": model, "onHostMaintenance": "TERMINATE"}
    if model == "SPOT":
        scheduling["instanceTerminationAction"] = "DELETE"
    return {
        "region": zone.rpartition("-")[0],
        "zone": zone,
        "machineType": f"zones/{zone}/machineTypes/n2-standard-2",
        "disks": [
            {
                "type": "PERSISTENT",
                "boot": True,
                "autoDelete": True,
                "initializeParams": {"sourceImage": "global/images/worker", "diskSizeGb": 50},
            }
        ],
        "networkInterfaces": [{"accessConfigs": [{"type": "ONE_TO_ONE_NAT"}]}],
        "scheduling": scheduling,
        **_options(launch_config_id),
    }


_NETWORK = (
    f"/subscriptions/{_AZURE.subscription}/resourceGroups/network"
    "/providers/Microsoft.Network/virtualNetworks/workers/subnets/default"
)
_TEMPLATE = (
    f"/subscriptions/{_AZURE.subscription}/resourceGroups/templates"
    "/providers/Microsoft.Resources/templateSpecs/worker/versions/1.0"
)


def azure_template_config(
    launch_config_id: str, location: str, *, priority: str = "Spot"
) -> dict[str, Any]:
    """One launch config on Azure, by a template that the subscription has."""
    parameters = {
        "location": location,
        "vmSize": "Standard_D2s_v5",
        "priority": priority,
        "subnetId": _NETWORK,
    }
    return {
        "location": location,
        "armDeployment": {
            "mode": "Incremental",
            "templateLink": {"id": _TEMPLATE},
            "parameters": {name: {"value": value} for name, value in parameters.items()},
        },
        **_options(launch_config_id),
    }


def azure_machine_config(launch_config_id: str, location: str) -> dict[str, Any]:
    """One launch config on Azure that describes the machine itself, in the older shape."""
    image = f"/subscriptions/{_AZURE.subscription}/resourceGroups/images/worker"
    return {
        "location": location,
        "subnetId": _NETWORK,
        "hardwareProfile": {"vmSize": "Standard_D2s_v5"},
        "storageProfile": {
            "imageReference": {"id": image},
            "osDisk": {"createOption": "FromImage", "osType": "Linux"},
        },
        **_options(launch_config_id),
    }


def _options(launch_config_id: str) -> dict[str, Any]:
    return {
        "workerConfig": {"capacity": 1},
        "workerManager": {"launchConfigId": launch_config_id, "capacityPerInstance": 1},
    }


def pool(
    launch_configs: Sequence[dict[str, Any]],
    *,
    maximum: int,
    description: str,
    provider_id: str = "aws",
) -> dict[str, Any]:
    """A definition, as ``createWorkerPool`` takes it."""
    return {
        "providerId": provider_id,
        "description": description,
        "owner": "owner@example.com",
        "emailOnError": False,
        "config": {
            "minCapacity": 0,
            "maxCapacity": maximum,
            "scalingRatio": 1.0,
            "lifecycle": {"registrationTimeout": 60, "queueInactivityTimeout": 20},
            "launchConfigs": list(launch_configs),
        },
    }


def create_tasks(
    queue: Any, pool_id: str, count: int, *, seconds: float, name: str = "sample"
) -> list[str]:
    """Create ``count`` tasks that take ``seconds`` each; their ids."""
    now = datetime.now(UTC)
    ids = []
    for _ in range(count):
        task_id = taskcluster.slugId()
        queue.createTask(
            task_id,
            {
                "taskQueueId": pool_id,
                "created": taskcluster.stringDate(now),
                "deadline": taskcluster.stringDate(now + timedelta(hours=2)),
                "payload": {"seconds": seconds},
                "metadata": {
                    "name": name,
                    "description": "a task that only takes time",
                    "owner": "owner@example.com",
                    "source": "https://example.com/",
                },
            },
        )
        ids.append(task_id)
    return ids


WAVE_SECONDS = 60

SAMPLE_POOLS = {
    "sample/linux": pool(
        [launch_config("lc-east", "us-east-1"), launch_config("lc-west", "us-west-2")],
        maximum=6,
        description="a sample, with a wave of tasks",
    ),
    "sample/google": pool(
        [google_launch_config("lc-central", "us-central1-a", model="SPOT")],
        maximum=3,
        description="the same on Google Cloud",
        provider_id="google",
    ),
    "sample/azure": pool(
        [azure_template_config("lc-east", "eastus")],
        maximum=3,
        description="the same on Azure, by a template",
        provider_id="azure",
    ),
}
SAMPLE_RACK = "sample/rack"
"""A pool of machines in a rack; ``hardware`` sets it up."""
WAVES = {"sample/linux": 8, "sample/google": 3, "sample/azure": 3, SAMPLE_RACK: 3}
"""Tasks for each pool in one wave."""


class SampleLoad:
    """A sample pool on each cloud, and a wave of tasks a minute for them and the rack."""

    def __init__(self, root_url: str) -> None:
        options = client_options(root_url)
        self._queue = taskcluster.Queue(options)
        self._next = time.monotonic()
        manager = taskcluster.WorkerManager(options)
        for pool_id, definition in SAMPLE_POOLS.items():
            manager.createWorkerPool(pool_id, definition)

    def go_on(self) -> None:
        """Send the next wave when it is due."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + WAVE_SECONDS
        for pool_id, count in WAVES.items():
            create_tasks(self._queue, pool_id, count, seconds=4)
