"""The methods of the API: a call in, the JSON of the answer out.

Each follows its page in the Compute Engine API reference, as far as this cloud goes; the cloud's
lock is held while one runs.  Read next: ``service``, which finds the action of a call; ``pages``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from infra.local.clouds.compute.calls import Call
from infra.local.clouds.compute.cloud import ComputeCloud
from infra.local.clouds.compute.inserts import read_insert
from infra.local.clouds.compute.pages import page_of

if TYPE_CHECKING:
    from infra.local.clouds.compute.errors import Failure

Action = Callable[[ComputeCloud, Call], str]
"""Raises ``ComputeError`` for a refusal."""


def insert_instance(cloud: ComputeCloud, call: Call, failure: Failure | None = None) -> str:
    """instances.insert; ``failure`` is how a fault lets its operation end."""
    request = read_insert(call.zone, call.body)
    operation = cloud.insert(call.zone, request, request_id=call.request_id, failure=failure)
    return operation.text()


def get_instance(cloud: ComputeCloud, call: Call) -> str:
    """instances.get: by name or by numeric id."""
    return cloud.estate.instance(call.zone, call.name).text(call.mask)


def delete_instance(cloud: ComputeCloud, call: Call) -> str:
    """instances.delete: by name or by numeric id."""
    return cloud.delete(call.zone, call.name, request_id=call.request_id).text()


def reset_instance(cloud: ComputeCloud, call: Call) -> str:
    """instances.reset: by name or by numeric id."""
    return cloud.reset_instance(call.zone, call.name, request_id=call.request_id).text()


def list_instances(cloud: ComputeCloud, call: Call) -> str:
    """instances.list and instances.aggregatedList."""
    now = cloud.estate.tidy()
    shelf = cloud.estate.instances
    return page_of(
        cloud, call, "instance", lambda last: (i for i in shelf.after(last) if i.visible_at <= now)
    )


def get_operation(cloud: ComputeCloud, call: Call) -> str:
    """zoneOperations.get."""
    return cloud.estate.operation(call.zone, call.name).text(call.mask)


def list_operations(cloud: ComputeCloud, call: Call) -> str:
    """zoneOperations.list and globalOperations.aggregatedList."""
    return page_of(cloud, call, "operation", cloud.estate.operations.after)


def get_disk(cloud: ComputeCloud, call: Call) -> str:
    """disks.get."""
    return cloud.estate.disk(call.zone, call.name).text(call.mask)


def delete_disk(cloud: ComputeCloud, call: Call) -> str:
    """disks.delete."""
    return cloud.delete_disk(call.zone, call.name, request_id=call.request_id).text()


def list_disks(cloud: ComputeCloud, call: Call) -> str:
    """disks.list and disks.aggregatedList."""
    return page_of(cloud, call, "disk", cloud.estate.disks.after)


ACTIONS: Mapping[str, Action] = {
    "instances.insert": insert_instance,
    "instances.get": get_instance,
    "instances.delete": delete_instance,
    "instances.reset": reset_instance,
    "instances.list": list_instances,
    "instances.aggregatedList": list_instances,
    "zoneOperations.get": get_operation,
    "zoneOperations.list": list_operations,
    "globalOperations.aggregatedList": list_operations,
    "disks.get": get_disk,
    "disks.delete": delete_disk,
    "disks.list": list_disks,
    "disks.aggregatedList": list_disks,
}
