"""The list of a subscription: all machines of our deployment, with whether they run.

Azure has no list that tells both: the plain one has tags and no power states, the one with
``statusOnly=true`` has power states and no tags ("Virtual Machines - List All").  Both are read
at once and joined by id, which the two may write in different cases.

Reading is most of what a scan costs; what is done here with each machine must stay small beside
the 15 µs that its JSON takes.  Where to read next: ``machines`` (one machine's translation).
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from worker_manager.providers.azure.arm import COMPUTE_API
from worker_manager.providers.azure.errors import cloud_errors
from worker_manager.providers.azure.machines import (
    RunTime,
    provisioning_state,
    run_time,
    sighting,
    status,
)
from worker_manager.providers.azure.tags import DEPLOYMENT_TAG, key_of
from worker_manager.providers.azure.together import Together

if TYPE_CHECKING:
    from collections.abc import Iterator

    from worker_manager.core.model import Json, Location, Sighting
    from worker_manager.providers.azure.arm import Arm
    from worker_manager.providers.visit import TimeLeft

logger = logging.getLogger(__name__)

ALL_MACHINES = "/providers/Microsoft.Compute/virtualMachines"
_RUNNING = RunTime(power="running")
_UNTOLD = RunTime()
_USUAL: Json = {"properties": {"provisioningState": "Succeeded"}}


def list_deployment(arm: Arm, location: Location, *, deployment: str) -> Iterator[Sighting]:
    """All machines of a deployment in a subscription, to the end or a ``CloudError``.

    A machine that came after its list of power states was read is taken for what its provisioning
    says.  One whose pool tag somebody took away or spoilt is left out with a warning.
    """

    def ours(timeout: TimeLeft) -> list[tuple[str, Json | None, Sighting]]:
        return [
            (vm["id"].lower(), vm if _is_unusual(vm) else None, found)
            for vm in list_machines(arm, timeout=timeout)
            if _deployment_of(vm) == deployment
            and (found := _sighting(vm, location=location)) is not None
        ]

    with cloud_errors():
        both = Together(arm.read_timeout)
        listed = both.begin(ours)
        run_times = both.begin(lambda timeout: _unusual_run_times(arm, timeout))
        both.wait()
    unusual = run_times.result()
    for vm_id, vm, found in listed.result():
        seen = unusual.get(vm_id)
        yield found if seen is None else replace(found, status=status(vm or _USUAL, seen))


def list_machines(arm: Arm, *, timeout: TimeLeft, resource_group: str = "") -> Iterator[Json]:
    """All machines of the subscription, or of one resource group, whoever made them."""
    within = f"/resourceGroups/{resource_group}" if resource_group else ""
    for page in arm.pages(f"{within}{ALL_MACHINES}", timeout=timeout, version=COMPUTE_API):
        yield from page


def _deployment_of(vm: Json) -> str | None:
    tags = vm.get("tags")
    return tags.get(DEPLOYMENT_TAG) if tags else None


def _is_unusual(vm: Json) -> bool:
    """Whether a machine is to be looked at again when its run time is known.

    Of a hundred thousand machines, few are; what Azure says of the others is not kept.
    """
    return provisioning_state(vm) != "succeeded"


def _sighting(vm: Json, *, location: Location) -> Sighting | None:
    """A machine as its provisioning shows it; ``None`` for one whose tags somebody spoilt."""
    key = key_of(vm, name=vm["name"])
    if key is None:
        logger.warning("machine of ours without a pool tag", extra={"vm": vm["id"]})
        return None
    return sighting(vm, key=key, location=location, seen=_UNTOLD)


def _unusual_run_times(arm: Arm, timeout: TimeLeft) -> dict[str, RunTime]:
    """What is told of the run time of machines that do not just run, by id in lower case."""
    found: dict[str, RunTime] = {}
    states = {"statusOnly": "true"}
    for page in arm.pages(ALL_MACHINES, timeout=timeout, version=COMPUTE_API, params=states):
        for vm in page:
            seen = run_time(vm["properties"].get("instanceView") or {})
            if seen != _RUNNING:
                found[vm["id"].lower()] = seen
    return found
