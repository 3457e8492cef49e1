"""From a launch order to the instances it inserts.

All of it is pure: the same order gives the same names, request ids and bodies, so that a request
repeated after a lost answer is the same request to Compute Engine.

Where to read next: ``provider``.
"""

from __future__ import annotations

import hashlib
import json
import re
from base64 import b32encode
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, uuid5

from google.cloud.compute_v1.types import InsertInstanceRequest, Instance
from google.protobuf.json_format import ParseError  # type: ignore[import-untyped]

from worker_manager.core.errors import InvalidLaunchConfigError
from worker_manager.core.model import MachineStatus, Sighting, WorkerKey, canonical_json
from worker_manager.providers.google.labels import order_labels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker_manager.core.model import Json, LaunchOrder

NOT_THE_CLOUDS = frozenset(
    {"region", "zone", "workerConfig", "workerManager", "capacityPerInstance"}
)
"""Members of a launch config that are not an instance's; all others are passed through."""

METADATA_KEY = "taskcluster"
"""Where a stock worker-runner looks for what it needs to know."""
SCOPE = "https://www.googleapis.com/auth/cloud-platform"
FIRST_LOOK_AFTER = timedelta(seconds=10)
"""Most of what fails late has failed by then."""
MAX_DESCRIPTION_CHARS = 2048
"""Of any resource's description."""
POOL_CHARS = 38
HASH_CHARS = 24
"""120 bits; with the pool's part and a dash as long as a name may be."""


@dataclass(frozen=True, slots=True)
class Inserts:
    """An order as requests, one a machine; ``hide`` is what no message may repeat of them."""

    requests: Sequence[InsertInstanceRequest]
    hide: str


def inserts(order: LaunchOrder, *, service_account: str) -> Inserts:
    """The requests that are this order, in the order of their machines.

    ``order.body`` is the launch config without ``workerManager``; ``order.inputs`` holds ``owner``,
    ``rootUrl``, ``deployment``, ``ordered`` and ``description``.  ``service_account`` is the e-mail
    address of the one that the machines act as.  Raises ``InvalidLaunchConfigError`` for a body
    that is no instance: the SDK would drop what it does not know in silence.
    """
    told = metadata(order)
    template = _instance(instance_body(order, told=told, service_account=service_account))
    zone = order.body["zone"]
    requests = []
    for index in range(order.count):
        instance = Instance(template)
        instance.name = machine_name(order, index)
        if order.only is None or instance.name in order.only:
            request = InsertInstanceRequest(
                project=order.location,
                zone=zone,
                instance_resource=instance,
                request_id=request_id(order, index),
            )
            requests.append(request)
    return Inserts(requests, told)


def machine_name(order: LaunchOrder, index: int) -> str:
    """What one machine of an order is called: its pool, for people, and a hash, for Google.

    Names of instances: a lower-case letter, then up to 62 lower-case letters, digits and dashes.
    """
    pool = re.sub(r"[^a-z0-9]", "-", order.pool_id.lower())
    pool = pool if pool[0].isalpha() else f"w{pool}"
    digest = hashlib.sha256(f"{order.order_id}#{index}".encode()).digest()
    return f"{pool[:POOL_CHARS]}-{b32encode(digest).decode().lower()[:HASH_CHARS]}"


def request_id(order: LaunchOrder, index: int) -> str:
    """The UUID by which Compute Engine knows a repeated request for one machine of an order."""
    return str(uuid5(NAMESPACE_URL, f"worker-manager:{order.order_id}#{index}"))


def metadata(order: LaunchOrder) -> str:
    """What a machine is told of itself: the JSON that a stock worker-runner reads."""
    return canonical_json(
        {
            "workerPoolId": order.pool_id,
            "providerId": order.provider_id,
            "workerGroup": order.body["zone"],
            "rootUrl": order.inputs["rootUrl"],
            "workerConfig": order.body.get("workerConfig") or {},
        }
    )


def instance_body(order: LaunchOrder, *, told: str, service_account: str) -> dict[str, Any]:
    """The launch config as an instance without a name; ours wins where both say something.

    Raises ``InvalidLaunchConfigError`` for what is there but cannot be read.
    """
    body = {key: value for key, value in order.body.items() if key not in NOT_THE_CLOUDS}
    labels = order_labels(order)
    try:
        given = body.get("metadata") or {}
        items = [one for one in given.get("items") or () if one.get("key") != METADATA_KEY]
        return {
            **body,
            "labels": {**(body.get("labels") or {}), **labels},
            "description": _description(order),
            "disks": [_disk(disk, labels) for disk in body.get("disks") or ()],
            "serviceAccounts": [{"email": service_account, "scopes": [SCOPE]}],
            "scheduling": {**(body.get("scheduling") or {}), "automaticRestart": False},
            "metadata": {**given, "items": [*items, {"key": METADATA_KEY, "value": told}]},
        }
    except (AttributeError, TypeError):
        raise InvalidLaunchConfigError(
            "labels, scheduling and metadata must be objects, disks and metadata.items lists",
            code="invalid",
        ) from None


def _description(order: LaunchOrder) -> str:
    """What the launch config says, or as much of the pool's description as may be."""
    given: str = order.body.get("description") or ""
    return given or order.inputs["description"][:MAX_DESCRIPTION_CHARS]


def _disk(given: Json, ours: Json) -> dict[str, Any]:
    """A disk with our labels, which Compute Engine takes for persistent disks that it makes anew.

    Labels on a local SSD, or for a disk that exists already, are refused (report B34).
    """
    disk = {key: value for key, value in given.items() if key != "labels"}
    if (given.get("type") or "PERSISTENT") != "PERSISTENT" or given.get("source"):
        return disk
    made = given.get("initializeParams") or {}
    theirs = {**(made.get("labels") or {}), **(given.get("labels") or {})}
    return {**disk, "initializeParams": {**made, "labels": {**theirs, **ours}}}


def _instance(body: Json) -> Instance:
    try:
        instance: Instance = Instance.from_json(json.dumps(body))
    except (ParseError, ValueError, RecursionError) as error:
        # The parser goes on to list every field there is.
        why = str(error).partition("\n")[0].replace("google.cloud.compute.v1.", "")[:500]
        raise InvalidLaunchConfigError(f"invalid: {why}", code="invalid") from None
    return instance


def new_machine(order: LaunchOrder, worker_id: str, identity: Json) -> Sighting:
    """A machine that was just accepted."""
    return Sighting(
        key=WorkerKey(order.pool_id, order.body["zone"], worker_id),
        location=order.location,
        status=MachineStatus.PENDING,
        launch_config_id=order.launch_config_id,
        order_id=order.order_id,
        identity=identity,
    )
