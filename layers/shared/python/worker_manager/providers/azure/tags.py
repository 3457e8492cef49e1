"""The tags on everything of ours, and what they say.

The reference's own stay on beside ours: a worker finds its pool by them, and dashboards count by
them.  Where to read next: ``launching`` (who writes them), ``machines`` (who reads them).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker_manager.core.errors import InvalidLaunchConfigError
from worker_manager.core.ids import is_identifier, is_pool_id
from worker_manager.core.model import WorkerKey
from worker_manager.core.moments import from_wire

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from worker_manager.core.model import Json, LaunchOrder

DEPLOYMENT_TAG = "worker-manager:deployment"
"""On everything of ours; its value is the stage's deployment."""
POOL_TAG = "worker-manager:pool"
LAUNCH_CONFIG_TAG = "worker-manager:launch-config"
ORDER_TAG = "worker-manager:order"
ORDERED_TAG = "worker-manager:ordered"
"""When it was planned, in ISO 8601: most resources have no time of creation."""
MACHINE_TAG = "worker-manager:machine"
"""The VM that it was made for: what a template makes has names of its own."""
TOLERATED_TAG = "worker-manager:tolerated"
"""Codes of failed provisioning that its launch config wants ignored, with commas between."""

KEEP_TAG = "worker-manager:keep"
"""On the record of a deployment that its launch config wants kept."""


def order_tags(order: LaunchOrder, *, group: str, machine: str) -> dict[str, str]:
    """Tags on everything made for one machine: the caller's, the reference's eight, then ours.

    Raises ``InvalidLaunchConfigError`` for tags that are none.
    """
    ours = {
        "created-by": f"taskcluster-wm-{order.provider_id}",
        "managed-by": "taskcluster",
        "provider-id": order.provider_id,
        "worker-group": group,
        "worker-pool-id": order.pool_id,
        "root-url": order.inputs["rootUrl"],
        "owner": order.inputs["owner"],
        "launch-config-id": order.launch_config_id,
        DEPLOYMENT_TAG: order.inputs["deployment"],
        POOL_TAG: order.pool_id,
        LAUNCH_CONFIG_TAG: order.launch_config_id,
        ORDER_TAG: order.order_id,
        ORDERED_TAG: order.inputs.get("ordered", ""),
        MACHINE_TAG: machine,
        TOLERATED_TAG: ",".join(tolerated_codes(order)),
    }
    theirs = order.body.get("tags") or {}
    if not isinstance(theirs, dict):
        raise InvalidLaunchConfigError("tags must be an object of texts", code="InvalidTags")
    return {**theirs, **{name: value for name, value in ours.items() if value}}


def tolerated_codes(order: LaunchOrder) -> list[str]:
    """Codes of ``ProvisioningState/failed`` with which a machine may still go on to register."""
    name = "ignoreFailedProvisioningStates"
    given = order.manager.get(name) or order.body.get(name) or ()
    return [str(code) for code in given]


def is_tolerated(code: str, tags: Mapping[str, str]) -> bool:
    """Whether a machine's launch config wants this code of failed provisioning ignored."""
    return bool(code) and code.lower() in tags.get(TOLERATED_TAG, "").lower().split(",")


def tags_of(resource: Json) -> Mapping[str, str]:
    """A resource's tags; empty if it has none."""
    return resource.get("tags") or {}


def key_of(resource: Json, *, name: str) -> WorkerKey | None:
    """The worker ``name`` by the tags and place of a resource; ``None`` if somebody spoilt them."""
    tags = tags_of(resource)
    pool_id = tags.get(POOL_TAG, "")
    group = group_of(tags.get("worker-group") or resource.get("location") or "")
    if not is_pool_id(pool_id) or not is_identifier(group):
        return None
    return WorkerKey(pool_id, group, name.lower())


def ordered(resource: Json) -> datetime | None:
    """When its machine was planned; ``None`` if the tag is missing or spoilt."""
    try:
        return from_wire(tags_of(resource).get(ORDERED_TAG, ""))
    except ValueError:
        return None


def group_of(location: str) -> str:
    """The worker group of an Azure location, however it is written (``East US`` is ``eastus``)."""
    return location.replace(" ", "").lower()
