"""Looking for the few machines that a list missed.

A worker that is deployed by a template is missing until Azure gets to its machine: its record is
asked first.  Where to read next: ``reading`` (how it is asked).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from worker_manager.core.model import MachineStatus, Sighting, State
from worker_manager.providers.azure import deployments, reading
from worker_manager.providers.azure.errors import cloud_errors
from worker_manager.providers.azure.machines import run_time, sighting, why_failed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from worker_manager.core.errors import CloudError
    from worker_manager.core.model import Json, Location, Worker, WorkerKey
    from worker_manager.providers.azure.arm import Arm
    from worker_manager.providers.azure.reading import Found
    from worker_manager.providers.visit import Visit


def look_up(
    arm: Arm, visit: Visit, workers: Sequence[Worker], *, location: Location
) -> Mapping[WorkerKey, Sighting | None]:
    """What Azure knows of these workers; ``None`` for one that exists in no way.

    Raises the first ``CloudError`` that left a worker's fate unknown.
    """
    at_home, homeless = reading.by_address(workers)
    at_home += reading.find(arm, visit, homeless)
    unsettled = [worker for worker in at_home if not reading.is_settled(worker)]
    records = _all_sure(reading.records(arm, visit, unsettled))
    in_the_making = {
        key for key, record in records.items() if record and not deployments.has_ended(record)
    }
    rest = [worker for worker in at_home if worker.key not in in_the_making]
    machines = _all_sure(reading.machines(arm, visit, rest))
    found: dict[WorkerKey, Sighting | None] = dict.fromkeys(worker.key for worker in workers)
    for worker in at_home:
        vm, record = machines.get(worker.key), records.get(worker.key)
        if vm is not None:
            found[worker.key] = _seen(worker, vm, location=location)
        elif worker.key in in_the_making:
            found[worker.key] = _without_machine(worker, location, MachineStatus.PENDING)
        elif record is not None and deployments.state_of(record) in deployments.FAILED:
            with cloud_errors():
                error = deployments.why_failed(
                    arm,
                    record,
                    resource_group=worker.identity["resourceGroup"],
                    timeout=visit.timeout,
                )
            found[worker.key] = _without_machine(worker, location, MachineStatus.GONE, error)
    return found


def _all_sure(found: Mapping[WorkerKey, Found]) -> dict[WorkerKey, Json | None]:
    """All that was found; raises the first error in it."""
    return {key: reading.sure(answer) for key, answer in found.items()}


def _seen(worker: Worker, vm: Json, *, location: Location) -> Sighting:
    """The machine of a worker; one that is still awaited may have failed for good."""
    seen = run_time(vm["properties"].get("instanceView") or {})
    found = sighting(vm, key=worker.key, location=location, seen=seen)
    error = why_failed(vm, seen) if worker.state is State.REQUESTED else None
    if error is None:
        return found
    return replace(found, status=MachineStatus.STOPPED, failure=error)


def _without_machine(
    worker: Worker,
    location: Location,
    status: MachineStatus,
    failure: CloudError | None = None,
) -> Sighting:
    """A worker of which there is only a record."""
    return Sighting(
        key=worker.key,
        location=location,
        status=status,
        launch_config_id=worker.launch_config_id,
        order_id=worker.order_id,
        identity=worker.identity,
        failure=failure,
    )
