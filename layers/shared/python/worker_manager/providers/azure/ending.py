"""Taking machines away: one request each, submitted at once; the rest is Azure's affair.

What was made with the machine goes with it (delete option ``Delete``); what a template made
otherwise, and what a cascade forgot, is found by ``leftovers``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from azure.core.exceptions import HttpResponseError

from worker_manager.core.errors import CloudError
from worker_manager.providers.azure import reading
from worker_manager.providers.azure.arm import deployment_path
from worker_manager.providers.azure.errors import cloud_errors
from worker_manager.providers.protocol import Terminated

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from worker_manager.core.model import Worker, WorkerKey
    from worker_manager.providers.azure.arm import Arm
    from worker_manager.providers.azure.visit import Visit


def terminate(arm: Arm, visit: Visit, workers: Sequence[Worker]) -> Terminated:
    """Delete the machines of these workers, and stop deployments that may still make them.

    Workers that do not know their resource group are looked for in one list.
    """
    homeless = [worker for worker in workers if "resourceGroup" not in worker.identity]
    lost: dict[WorkerKey, CloudError] = {}
    found: Sequence[Worker] = ()
    try:
        found = reading.find(arm, homeless)
    except CloudError as error:
        lost = {worker.key: error for worker in homeless}

    def end(worker: Worker) -> None:
        if not reading.is_settled(worker):
            cancel(arm, worker)
        delete_machine(arm, worker.identity["resourceGroup"], worker.key.worker_id)

    asked = [*found, *(worker for worker in workers if worker not in homeless)]
    answers = zip(asked, visit.each(end, asked), strict=True)
    failed = lost | {worker.key: error for worker, error in answers if error is not None}
    return Terminated(frozenset({worker.key for worker in workers} - failed.keys()), failed)


def cancel(arm: Arm, worker: Worker) -> None:
    """Let a deployment make nothing more; if it is over, delete its record, unless it is kept."""
    group, name = worker.identity["resourceGroup"], worker.identity["deployment"]
    path = f"{deployment_path(group, name)}/cancel"
    was_active = accepted(lambda: arm.send("POST", path), refused=(404, 409))
    if not (was_active or worker.identity.get("keepDeployment")):
        delete_record(arm, group, name)


def delete_record(arm: Arm, resource_group: str, name: str) -> None:
    """Delete the record of a deployment that is over; gone is as good."""
    accepted(lambda: arm.send("DELETE", deployment_path(resource_group, name)), refused=(404,))


def delete_machine(arm: Arm, resource_group: str, name: str) -> None:
    """Delete a machine without waiting for its system; gone, or going, is as good."""

    def call() -> None:
        try:
            arm.compute.virtual_machines.begin_delete(
                resource_group, name, force_deletion=True, polling=False
            )
        except HttpResponseError as error:
            if error.status_code != 409 or "delet" not in str(error.message).lower():
                raise

    accepted(call, refused=(404,))


def accepted(call: Callable[[], object], *, refused: Sequence[int]) -> bool:
    """Whether a call was accepted; not, if Azure refused it with one of these statuses.

    Raises a ``CloudError`` for any other refusal.
    """
    with cloud_errors():
        try:
            call()
        except HttpResponseError as error:
            if error.status_code not in refused:
                raise
            return False
    return True
