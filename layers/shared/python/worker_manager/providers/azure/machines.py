"""From one of Azure's virtual machines to a sighting.

A machine has two states: how far Resource Manager is with it (``provisioningState``), and whether
it runs (``PowerState`` among the statuses of its instance view).  The first alone does not tell
whether it works: one whose operating system was slow to report is called failed while it runs.
Where to read next: ``listing`` (all of them), ``reading`` (a few).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from worker_manager.core.model import Location, MachineStatus, Sighting
from worker_manager.core.moments import from_wire
from worker_manager.providers.azure.arm import resource_group_of
from worker_manager.providers.azure.errors import failure
from worker_manager.providers.azure.tags import (
    LAUNCH_CONFIG_TAG,
    ORDER_TAG,
    is_tolerated,
    tags_of,
)

if TYPE_CHECKING:
    from datetime import datetime

    from worker_manager.core.errors import CloudError
    from worker_manager.core.model import Json, WorkerKey

FAILED = frozenset({"failed", "canceled"})
"""Provisioning states of a machine that was given up, though it may run."""

_POWERED_OFF = frozenset({"stopping", "stopped", "deallocating", "deallocated"})
_RESTARTING = frozenset({("updating", "stopping"), ("updating", "stopped")})
"""What may be a restart under way; one that is switched off shows as such when Azure is done."""
_POWERED_ON = frozenset({"starting", "running"})


@dataclass(frozen=True, slots=True)
class RunTime:
    """What an instance view tells: ``power`` is empty while there is none.

    ``failed`` is the code of a provisioning that failed, ``message`` why.
    """

    power: str = ""
    failed: str = ""
    message: str = ""

    @property
    def is_on(self) -> bool:
        """Whether the machine runs, whatever became of its provisioning."""
        return self.power in _POWERED_ON


def run_time(view: Json) -> RunTime:
    """What an instance view tells of a machine ("States and billing of Azure virtual machines")."""
    power = failed = message = ""
    for one in view.get("statuses") or ():
        about, _, value = one.get("code", "").partition("/")
        if about == "PowerState":
            power = value.lower()
        elif about == "ProvisioningState" and value.lower().startswith("failed"):
            failed = value.partition("/")[2]
            message = one.get("message") or one.get("displayStatus") or ""
    return RunTime(power, failed, message)


def provisioning_state(vm: Json) -> str:
    """How far Resource Manager is with a machine, in lower case."""
    return str(vm["properties"].get("provisioningState", "")).lower()


def sighting(vm: Json, *, key: WorkerKey, location: Location, seen: RunTime) -> Sighting:
    """One virtual machine in our words."""
    tags = tags_of(vm)
    return Sighting(
        key=key,
        location=location,
        status=status(vm, seen),
        launch_config_id=tags.get(LAUNCH_CONFIG_TAG),
        order_id=tags.get(ORDER_TAG),
        launched=moment(vm["properties"].get("timeCreated")),
        identity=identity(resource_group_of(vm["id"]), vm),
    )


def identity(resource_group: str, vm: Json) -> dict[str, Any]:
    """What later calls and the proof of identity need of a machine that exists."""
    vm_id = vm["properties"].get("vmId")
    return {"resourceGroup": resource_group, **({"vmId": vm_id} if vm_id else {})}


def status(vm: Json, seen: RunTime) -> MachineStatus:
    """Whether it works.

    One that was given up, of which nothing tells whether it runs, is pending: nobody acts on that,
    and a worker that registered goes on (B32).
    """
    state = provisioning_state(vm)
    if state == "deleting":
        return MachineStatus.STOPPING
    if seen.power in _POWERED_OFF and (state, seen.power) not in _RESTARTING:
        return MachineStatus.STOPPED
    if state == "creating" or (state in FAILED and not _may_work(vm, seen)):
        return MachineStatus.PENDING
    return MachineStatus.RUNNING


def why_failed(vm: Json, seen: RunTime) -> CloudError | None:
    """Why a machine that nobody registered is not going to work; ``None`` if it may."""
    if provisioning_state(vm) not in FAILED or _may_work(vm, seen):
        return None
    return failure({"code": seen.failed or "ProvisioningFailed", "message": seen.message})


def _may_work(vm: Json, seen: RunTime) -> bool:
    """Whether a machine that was given up runs, or its launch config tolerates the reason."""
    return seen.is_on or is_tolerated(seen.failed, tags_of(vm))


def moment(text: str | None) -> datetime | None:
    """The time that Azure wrote; ``None`` if it wrote none."""
    if not text:
        return None
    try:
        return from_wire(text)
    except ValueError:
        return None
