"""What became of an insert after it was accepted: its operation tells, for some days.

Compute Engine says yes to what it may yet find no room for; the error then stands in the operation
alone (report B33), and an instance that never came about is unknown, like one that was deleted.
Where to read next: ``provider``.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from google.api_core.exceptions import NotFound
from google.cloud.compute_v1.types import Operation

from worker_manager.core.errors import CloudUnavailableError
from worker_manager.core.model import MachineStatus, Sighting, State
from worker_manager.providers.answers import gone
from worker_manager.providers.google.clients import time_left
from worker_manager.providers.google.errors import is_about, operation_error
from worker_manager.providers.google.labels import order_of
from worker_manager.providers.google.listing import read_instance, sighting
from worker_manager.providers.protocol import Failed, Made, Pending

if TYPE_CHECKING:
    from google.cloud.compute_v1.types import Instance

    from worker_manager.core.errors import CloudError
    from worker_manager.core.model import LaunchOrder, Location, Worker
    from worker_manager.providers.google.clients import Clients
    from worker_manager.providers.protocol import Step
    from worker_manager.providers.visit import Visit

LOOK_AGAIN_AFTER = timedelta(seconds=20)
"""A look is a read for each machine, of which there are 1,500 a minute."""


def find_instance(
    clients: Clients, location: Location, zone: str, name: str, visit: Visit
) -> Instance | None:
    """The machine with this name or number; ``None`` if Compute Engine knows none."""
    try:
        return clients.instances.get(
            project=location, zone=zone, instance=name, retry=None, timeout=time_left(visit)
        )
    except NotFound as error:
        if is_about(error, "instances"):
            return None
        raise


def find_own(clients: Clients, order: LaunchOrder, name: str, visit: Visit) -> Sighting:
    """The machine of an order that has ``name`` already.

    Raises ``CloudUnavailableError`` where it has vanished since, or carries another order's label.
    """
    instance = find_instance(clients, order.location, order.body["zone"], name, visit)
    if instance is None or order_of(instance.labels) != order.order_id:
        raise CloudUnavailableError(
            f"the name {name} is taken, though not by this order", code="NAME_TAKEN"
        )
    return sighting(read_instance(instance), order.location, pool_id=order.pool_id)


def find_operation(clients: Clients, worker: Worker, visit: Visit) -> Operation | None:
    """The operation that makes a worker's machine; ``None`` if it is over and forgotten."""
    name = worker.identity.get("operation")
    if not name:
        return None
    try:
        return clients.operations.get(
            project=worker.location,
            zone=worker.key.group,
            operation=name,
            retry=None,
            timeout=time_left(visit),
        )
    except NotFound as error:
        if is_about(error, "operations"):
            return None
        raise


def look_up(clients: Clients, worker: Worker, visit: Visit) -> Sighting | None:
    """What Compute Engine knows of a worker, whose machine may be yet to come.

    ``None`` for one that is gone; ``GONE`` with the reason for one that was never made.
    """
    instance = _find_machine(clients, worker, visit)
    if instance is not None:
        return sighting(read_instance(instance), worker.location, pool_id=worker.key.pool_id)
    operation = find_operation(clients, worker, visit)
    if operation is None:
        return None
    if not is_done(operation):
        return _unseen(worker, MachineStatus.PENDING)
    error = operation_error(operation)
    return None if error is None else _unseen(worker, MachineStatus.GONE, error)


def follow_one(clients: Clients, worker: Worker, visit: Visit) -> Step:
    """How far the making of one machine is; one operation read, and the machine if that is lost.

    A worker that registered has a machine, whatever is said of its making (B32).
    """
    name = {key: value for key, value in worker.identity.items() if key != "operation"}
    if worker.state is not State.REQUESTED:
        return Made(name)
    operation = find_operation(clients, worker, visit)
    if operation is None:
        if _find_machine(clients, worker, visit) is not None:
            return Made(name)
        return Failed(
            CloudUnavailableError(
                "neither the machine nor the operation that was to make it is known",
                code="OPERATION_LOST",
            )
        )
    if not is_done(operation):
        return Pending(LOOK_AGAIN_AFTER)
    error = operation_error(operation)
    return Made(name) if error is None else Failed(error)


def is_done(operation: Operation) -> bool:
    """Whether an operation is over, well or badly."""
    return operation.status == Operation.Status.DONE


def _unseen(worker: Worker, status: MachineStatus, failure: CloudError | None = None) -> Sighting:
    """A machine that is known by its operation alone."""
    return Sighting(
        key=worker.key,
        location=worker.location,
        status=status,
        launch_config_id=worker.launch_config_id,
        order_id=worker.order_id,
        identity=worker.identity,
        failure=failure,
    )


def delete_machine(clients: Clients, worker: Worker, visit: Visit) -> None:
    """Delete the machine of a worker; one that is unknown is as good as deleted."""
    try:
        clients.instances.delete_unary(
            project=worker.location,
            zone=worker.key.group,
            instance=worker.key.worker_id,
            retry=None,
            timeout=time_left(visit),
        )
    except NotFound as error:
        if not is_about(error, "instances"):
            raise


def reset_machine(clients: Clients, worker: Worker, visit: Visit) -> None:
    """Let the machine of a worker boot anew, as by its reset button; it stays ``RUNNING``.

    Raises ``MachineGoneError`` if it is unknown.
    """
    try:
        operation = clients.instances.reset_unary(
            project=worker.location,
            zone=worker.key.group,
            instance=worker.key.worker_id,
            retry=None,
            timeout=time_left(visit),
        )
    except NotFound as error:
        if not is_about(error, "instances"):
            raise
        raise gone(worker.key.worker_id) from None
    failure = operation_error(operation)
    if failure is not None:
        raise failure


def _find_machine(clients: Clients, worker: Worker, visit: Visit) -> Instance | None:
    key = worker.key
    return find_instance(clients, worker.location, key.group, key.worker_id, visit)
