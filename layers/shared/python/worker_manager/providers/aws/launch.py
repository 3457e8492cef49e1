"""From a launch order to the parameters of RunInstances, and from its answer to machines.

Both are pure: the same order gives the same request to the byte, which is what EC2's client
token asks for when a request is repeated after a lost answer.  Where to read next: ``provider``.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ParamValidationError
from botocore.validate import ParamValidator

from worker_manager.core.errors import InvalidLaunchConfigError, OutOfCapacityError
from worker_manager.core.model import WorkerKey
from worker_manager.providers.aws.listing import (
    DEPLOYMENT_TAG,
    LAUNCH_CONFIG_TAG,
    ORDER_TAG,
    POOL_TAG,
    sighting,
)
from worker_manager.providers.aws.user_data import user_data
from worker_manager.providers.protocol import Launched

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_ec2.type_defs import ReservationResponseTypeDef

    from worker_manager.core.model import Json, LaunchOrder

TAGGED_BY_US = ("instance", "volume")
PARTIAL = "InsufficientInstanceCapacity"
"""The code EC2 gives when it has none at all; it gives none when it has too few."""


def run_instances_request(order: LaunchOrder) -> dict[str, Any]:
    """Parameters of the one RunInstances call that is this order.

    ``order.body`` is the launch config without ``workerManager``; ``order.inputs`` holds
    ``owner``, ``rootUrl`` and ``deployment``.  Raises ``InvalidLaunchConfigError`` for tag
    specifications that cannot be read.
    """
    launch_config: Json = order.body["launchConfig"]
    raw = user_data(
        order.body,
        order.location,
        root_url=order.inputs["rootUrl"],
        pool_id=order.pool_id,
        provider_id=order.provider_id,
        launch_config_id=order.launch_config_id,
    )
    return {
        **launch_config,
        "MinCount": 1,
        "MaxCount": order.count,
        "ClientToken": order.order_id,
        "UserData": raw.decode(),
        "TagSpecifications": tag_specifications(
            launch_config.get("TagSpecifications") or (), order_tags(order)
        ),
    }


def check_parameters(client: EC2Client, request: Json) -> None:
    """Refuse, before anything is sent, what the SDK would not send or stumbles over.

    Raises ``InvalidLaunchConfigError`` or the SDK's own error.
    """
    shape = client.meta.service_model.operation_model("RunInstances").input_shape
    try:
        report = ParamValidator().validate(request, shape)  # type: ignore[arg-type]  # it has one
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
        code = type(error).__name__
        raise InvalidLaunchConfigError(f"{code}: a value is out of range", code=code) from None
    if report.has_errors():
        raise ParamValidationError(report=report.generate_report())


def encoded_user_data(request: Mapping[str, Any]) -> str:
    """The request's user data as it travels: boto3 encodes what it is given."""
    return base64.b64encode(request["UserData"].encode()).decode()


def order_tags(order: LaunchOrder) -> dict[str, str]:
    """Tags on everything this order makes: the reference's five, then the four we list by."""
    return {
        "Name": order.pool_id,
        "CreatedBy": f"taskcluster-wm-{order.provider_id}",
        "Owner": order.inputs["owner"],
        "ManagedBy": "taskcluster",
        "WorkerPoolId": order.pool_id,
        DEPLOYMENT_TAG: order.inputs["deployment"],
        POOL_TAG: order.pool_id,
        LAUNCH_CONFIG_TAG: order.launch_config_id,
        ORDER_TAG: order.order_id,
    }


def tag_specifications(given: object, ours: Mapping[str, str]) -> list[dict[str, Any]]:
    """The caller's tag specifications with our tags on instances and volumes.

    EC2 refuses a resource type or a key that comes twice: each type gets one specification, each
    key one value, and ours wins.  Other resource types keep exactly what the caller gave.
    """
    tags: dict[str, dict[str, str]] = {kind: {} for kind in TAGGED_BY_US}
    others: list[dict[str, Any]] = []
    try:
        for spec in given:  # type: ignore[attr-defined]
            if spec["ResourceType"] in tags:
                tags[spec["ResourceType"]].update(
                    {tag["Key"]: tag.get("Value", "") for tag in spec.get("Tags") or ()}
                )
            else:
                others.append(spec)
    except (TypeError, KeyError, AttributeError):
        raise InvalidLaunchConfigError(
            "TagSpecifications must be a list of {ResourceType, Tags: [{Key, Value}]}",
            code="InvalidTagSpecifications",
        ) from None
    return others + [
        {
            "ResourceType": kind,
            "Tags": [{"Key": key, "Value": value} for key, value in {**theirs, **ours}.items()],
        }
        for kind, theirs in tags.items()
    ]


def launched(order: LaunchOrder, answer: ReservationResponseTypeDef) -> Launched:
    """What the order brought.  Fewer machines than ordered is a result, with its reason.

    Raises ``OutOfCapacityError`` when EC2 answered with no machine.
    """
    machines = tuple(
        sighting(
            instance,
            key=WorkerKey(order.pool_id, order.location, instance["InstanceId"]),
            account_id=answer.get("OwnerId"),
            launch_config_id=order.launch_config_id,
            order_id=order.order_id,
        )
        for instance in answer["Instances"]
    )
    refused = max(0, order.count - len(machines))
    if not refused:
        return Launched(machines)
    shortage = OutOfCapacityError(
        f"{PARTIAL}: EC2 launched {len(machines)} of {order.count} machines", code=PARTIAL
    )
    if not machines:
        raise shortage
    return Launched(machines, refused, shortage)
