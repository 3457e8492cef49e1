"""Pools to play with, and tasks for them, through the stock Taskcluster client."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import taskcluster  # type: ignore[import-untyped]

from infra.local.stage import ACCESS_TOKEN, CLIENT_ID

if TYPE_CHECKING:
    from collections.abc import Sequence

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
        "workerConfig": {"capacity": 1},
        "workerManager": {"launchConfigId": launch_config_id, "capacityPerInstance": 1},
    }


def pool(
    launch_configs: Sequence[dict[str, Any]], *, maximum: int, description: str
) -> dict[str, Any]:
    """A definition, as ``createWorkerPool`` takes it."""
    return {
        "providerId": "aws",
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


SAMPLE_POOL = "sample/linux"
WAVE_SECONDS = 60
WAVE_TASKS = 8


class SampleLoad:
    """A sample pool over two regions, and a wave of tasks a minute for it."""

    def __init__(self, root_url: str) -> None:
        options = client_options(root_url)
        self._queue = taskcluster.Queue(options)
        self._next = time.monotonic()
        configs = [launch_config("lc-east", "us-east-1"), launch_config("lc-west", "us-west-2")]
        taskcluster.WorkerManager(options).createWorkerPool(
            SAMPLE_POOL, pool(configs, maximum=6, description="a sample, with a wave of tasks")
        )

    def go_on(self) -> None:
        """Send the next wave when it is due."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + WAVE_SECONDS
        create_tasks(self._queue, SAMPLE_POOL, WAVE_TASKS, seconds=4)
