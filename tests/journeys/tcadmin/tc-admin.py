"""What the journey has tc-admin manage: the pools of the JSON file that ``WORKER_POOLS`` names."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tcadmin.appconfig import AppConfig  # type: ignore[import-untyped]
from tcadmin.resources import Resources, WorkerPool  # type: ignore[import-untyped]
from tcadmin.util import root_url  # type: ignore[import-untyped]

# The tool takes no root URL with a port from its environment; what it has checked, it keeps here.
root_url._root_url = os.environ["TASKCLUSTER_ROOT_URL"]

appconfig = AppConfig()
appconfig.description_prefix = ""


async def worker_pools(resources: Resources) -> None:
    """Manage every pool below the file's own prefixes, and make those that are in it."""
    for definition in json.loads(Path(os.environ["WORKER_POOLS"]).read_text()):
        prefix = definition["workerPoolId"].partition("/")[0]
        resources.manage(f"WorkerPool={prefix}/.*")
        resources.add(WorkerPool(**definition))


appconfig.generators.register(worker_pools)
