"""Letting machines boot anew: one request each, submitted at once; the rest is Azure's affair.

The same machine goes on, on the same host, with its disks and addresses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker_manager.core.errors import CloudError
from worker_manager.providers.answers import failures, gone
from worker_manager.providers.azure import reading
from worker_manager.providers.azure.errors import unless_missing
from worker_manager.providers.protocol import Rebooted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker_manager.core.model import Worker, WorkerKey
    from worker_manager.providers.azure.arm import Arm
    from worker_manager.providers.visit import Visit


def reboot(arm: Arm, visit: Visit, workers: Sequence[Worker]) -> Rebooted:
    """Restart the machines of these workers.

    Workers that do not know their resource group are looked for in one list.
    """
    asked, homeless = reading.by_address(workers)
    failed: dict[WorkerKey, CloudError] = {}
    try:
        found = reading.find(arm, visit, homeless)
    except CloudError as error:
        failed = {worker.key: error for worker in homeless}
    else:
        known = {worker.key for worker in found}
        missing = (worker.key for worker in homeless if worker.key not in known)
        failed = {key: gone(key.worker_id) for key in missing}
        asked += found
    failed |= failures(
        (worker.key for worker in asked),
        visit.each(lambda worker: restart_machine(arm, visit, worker), asked),
    )
    return Rebooted(frozenset({worker.key for worker in workers} - failed.keys()), failed)


def restart_machine(arm: Arm, visit: Visit, worker: Worker) -> None:
    """Begin to restart a machine.  Raises ``MachineGoneError`` if it does not exist."""
    begun = unless_missing(
        lambda: arm.compute.virtual_machines.begin_restart(
            worker.identity["resourceGroup"],
            worker.key.worker_id,
            polling=False,
            read_timeout=visit.timeout().total_seconds(),
        )
    )
    if begun is None:
        raise gone(worker.key.worker_id)
