"""Taking machines away: one request each, submitted at once; the rest is Azure's affair.

What was made with the machine goes with it (delete option ``Delete``); what a template made
otherwise, and what a cascade forgot, is found by ``leftovers``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from azure.core.exceptions import HttpResponseError

from worker_manager.core.errors import CloudError
from worker_manager.providers.answers import failures
from worker_manager.providers.azure import reading
from worker_manager.providers.azure.arm import deployment_path
from worker_manager.providers.azure.errors import (
    cloud_errors,
    has_code,
    is_missing,
    unless_missing,
)
from worker_manager.providers.protocol import Terminated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker_manager.core.model import Worker, WorkerKey
    from worker_manager.providers.azure.arm import Arm
    from worker_manager.providers.visit import Visit


def terminate(arm: Arm, visit: Visit, workers: Sequence[Worker]) -> Terminated:
    """Delete the machines of these workers, and stop deployments that may still make them.

    Workers that do not know their resource group are looked for in one list.
    """
    asked, homeless = reading.by_address(workers)
    failed: dict[WorkerKey, CloudError] = {}
    try:
        asked += reading.find(arm, visit, homeless)
    except CloudError as error:
        failed = {worker.key: error for worker in homeless}

    def end(worker: Worker) -> None:
        if not reading.is_settled(worker):
            cancel(arm, visit, worker)
        delete_machine(arm, visit, worker)

    failed |= failures((worker.key for worker in asked), visit.each(end, asked))
    return Terminated(frozenset({worker.key for worker in workers} - failed.keys()), failed)


def cancel(arm: Arm, visit: Visit, worker: Worker) -> None:
    """Let a deployment make nothing more; if it is over, delete its record, unless it is kept."""
    group, name = worker.identity["resourceGroup"], worker.identity["deployment"]
    path = f"{deployment_path(group, name)}/cancel"
    with cloud_errors():
        try:
            arm.send("POST", path, timeout=visit.timeout())
        except HttpResponseError as error:
            if error.status_code != 409 and not is_missing(error):
                raise
            if error.status_code == 409 and not worker.identity.get("keepDeployment"):
                delete_record(arm, visit, group, name)


def delete_record(arm: Arm, visit: Visit, resource_group: str, name: str) -> None:
    """Delete the record of a deployment that is over; gone is as good."""
    path = deployment_path(resource_group, name)
    unless_missing(lambda: arm.send("DELETE", path, timeout=visit.timeout()))


def delete_machine(arm: Arm, visit: Visit, worker: Worker) -> None:
    """Delete a machine without waiting for its system; gone, or going, is as good."""

    def delete() -> None:
        try:
            arm.compute.virtual_machines.begin_delete(
                worker.identity["resourceGroup"],
                worker.key.worker_id,
                force_deletion=True,
                polling=False,
                read_timeout=visit.timeout().total_seconds(),
            )
        except HttpResponseError as error:
            if not _is_going(error):
                raise

    unless_missing(delete)


def _is_going(error: HttpResponseError) -> bool:
    """Whether a machine is not deleted because it is being deleted; a lock says no for good."""
    is_marked = "marked for deletion" in str(error.message).lower()
    return error.status_code == 409 and has_code(error, "OperationNotAllowed") and is_marked
