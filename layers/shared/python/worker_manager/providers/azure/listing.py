"""The list of a subscription: all machines of our deployment, with whether they run.

Azure has no list that tells both: the plain one has tags and no power states, the one with
``statusOnly=true`` has power states and no tags ("Virtual Machines - List All").  Both are read
at once and joined by id, which the two may write in different cases.

Reading is most of what a scan costs; what is done here with each machine must stay small beside
the 15 µs that its JSON takes.  Where to read next: ``machines`` (one machine's translation).
"""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from worker_manager.providers.azure.arm import COMPUTE_API
from worker_manager.providers.azure.errors import cloud_errors
from worker_manager.providers.azure.machines import RunTime, run_time, sighting
from worker_manager.providers.azure.tags import DEPLOYMENT_TAG, key_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from worker_manager.core.model import Json, Location, Sighting
    from worker_manager.providers.azure.arm import Arm

logger = logging.getLogger(__name__)

ALL_MACHINES = "/providers/Microsoft.Compute/virtualMachines"
_RUNNING = RunTime(power="running")


def list_deployment(arm: Arm, location: Location, *, deployment: str) -> Iterator[Sighting]:
    """All machines of a deployment in a subscription, to the end or a ``CloudError``.

    A machine that came after its list of power states was read is taken for what its provisioning
    says.  One whose pool tag somebody took away or spoilt is left out with a warning.
    """
    with cloud_errors(), ThreadPoolExecutor(1) as beside:
        reading = beside.submit(_run_times, arm)
        ours = [vm for vm in list_machines(arm) if _deployment_of(vm) == deployment]
        run_times = reading.result()
    for vm in ours:
        key = key_of(vm, name=vm["name"])
        if key is None:
            logger.warning("machine of ours without a pool tag", extra={"vm": vm["id"]})
            continue
        yield sighting(vm, key=key, location=location, seen=run_times.get(vm["id"].lower()))


def list_machines(arm: Arm, *, resource_group: str = "") -> Iterator[Json]:
    """All machines of the subscription, or of one resource group, whoever made them."""
    within = f"/resourceGroups/{resource_group}" if resource_group else ""
    for page in arm.pages(f"{within}{ALL_MACHINES}", version=COMPUTE_API):
        yield from page


def _deployment_of(vm: Json) -> str | None:
    tags = vm.get("tags")
    return tags.get(DEPLOYMENT_TAG) if tags else None


def _run_times(arm: Arm) -> dict[str, RunTime]:
    """What is told of the run time of every machine, by its id in lower case."""
    found: dict[str, RunTime] = {}
    for page in arm.pages(ALL_MACHINES, version=COMPUTE_API, params={"statusOnly": "true"}):
        for vm in page:
            seen = run_time(vm["properties"].get("instanceView") or {})
            found[vm["id"].lower()] = _RUNNING if seen == _RUNNING else seen
    return found
