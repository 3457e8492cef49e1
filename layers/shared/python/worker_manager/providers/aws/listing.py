"""From EC2's instances to sightings: the list of a region, and one instance's translation.

Reading the XML is most of the work: boto3 takes about 0.4 ms of processor an instance.  What is
done here with each must stay small beside that.  Where to read next: ``provider``.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from worker_manager.core.ids import is_pool_id
from worker_manager.core.model import Location, MachineStatus, Sighting, WorkerKey
from worker_manager.providers.aws.errors import cloud_errors

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_ec2.type_defs import (
        DescribeInstancesResultTypeDef,
        InstanceTypeDef,
    )

logger = logging.getLogger(__name__)

DEPLOYMENT_TAG = "worker-manager:deployment"
"""On every instance and volume of ours; its value is the stage's deployment."""
POOL_TAG = "worker-manager:pool"
LAUNCH_CONFIG_TAG = "worker-manager:launch-config"
ORDER_TAG = "worker-manager:order"

PAGE_SIZE = 1_000
"""The most that DescribeInstances gives at once."""

FILTER_VALUES = 200
"""The most values that EC2 takes in one filter."""

STATUS = {
    "pending": MachineStatus.PENDING,
    "running": MachineStatus.RUNNING,
    "shutting-down": MachineStatus.STOPPING,
    "stopping": MachineStatus.STOPPED,
    "stopped": MachineStatus.STOPPED,
    "terminated": MachineStatus.GONE,
}
"""EC2's states in our words.  A machine that stops is powered off, not deleted: it still costs.
A state that EC2 adds one day is taken for running, which is the one that nobody acts upon."""

LISTED_STATES = [state for state, status in STATUS.items() if status is not MachineStatus.GONE]


def list_deployment(
    client: EC2Client, location: Location, *, deployment: str
) -> Iterator[Sighting]:
    """All machines of a deployment in a region, page by page, to the end or a ``CloudError``."""
    request: dict[str, Any] = {
        "Filters": [
            {"Name": f"tag:{DEPLOYMENT_TAG}", "Values": [deployment]},
            {"Name": "instance-state-name", "Values": LISTED_STATES},
        ],
        "MaxResults": PAGE_SIZE,
    }
    while True:
        with cloud_errors():
            page = client.describe_instances(**request)
            sightings = list(read_sightings(page, location))
        yield from sightings
        token = page.get("NextToken")
        if not token:
            return
        request["NextToken"] = token


def find_deployment(
    client: EC2Client, location: Location, *, deployment: str, instance_ids: Sequence[str]
) -> list[Sighting]:
    """Those of these instances that are a deployment's, in any state; ``CloudError`` otherwise.

    Ids as a filter are a question: unknown ones, and those of others, are simply not in the answer.
    """
    found: list[Sighting] = []
    for at in range(0, len(instance_ids), FILTER_VALUES):
        with cloud_errors():
            answer = client.describe_instances(
                Filters=[
                    {"Name": f"tag:{DEPLOYMENT_TAG}", "Values": [deployment]},
                    {"Name": "instance-id", "Values": list(instance_ids[at : at + FILTER_VALUES])},
                ]
            )
            found += read_sightings(answer, location)
    return found


def read_sightings(
    page: DescribeInstancesResultTypeDef,
    location: Location,
    *,
    known: Mapping[str, WorkerKey] | None = None,
) -> Iterator[Sighting]:
    """The machines of one answer of DescribeInstances.

    Those in ``known`` (by instance id) keep the name given there.  The others are named by their
    tags; one whose pool tag somebody took away or spoilt is left out with a warning.
    """
    names = known or {}
    for reservation in page["Reservations"]:
        for instance in reservation["Instances"]:
            worker_id = instance["InstanceId"]
            tags = {tag["Key"]: tag["Value"] for tag in instance.get("Tags", ())}
            key = names.get(worker_id) or WorkerKey(tags.get(POOL_TAG, ""), location, worker_id)
            if worker_id not in names and not is_pool_id(key.pool_id):
                logger.warning(
                    "machine of ours without a pool tag", extra={"instance_id": worker_id}
                )
                continue
            yield sighting(
                instance,
                key=key,
                account_id=reservation.get("OwnerId"),
                launch_config_id=tags.get(LAUNCH_CONFIG_TAG),
                order_id=tags.get(ORDER_TAG),
            )


def sighting(
    instance: InstanceTypeDef,
    *,
    key: WorkerKey,
    account_id: str | None,
    launch_config_id: str | None,
    order_id: str | None,
) -> Sighting:
    """One EC2 instance in our words.

    ``identity`` has the names that an instance identity document uses, so that proof and record
    compare field by field; what EC2 did not say is left out.
    """
    facts: Mapping[str, str | None] = {
        "accountId": account_id,
        "architecture": instance.get("Architecture"),
        "availabilityZone": instance.get("Placement", {}).get("AvailabilityZone"),
        "imageId": instance.get("ImageId"),
        "instanceType": instance.get("InstanceType"),
        "privateIp": instance.get("PrivateIpAddress"),
        "region": key.group,
    }
    return Sighting(
        key=key,
        location=Location(key.group),
        status=STATUS.get(instance["State"]["Name"], MachineStatus.RUNNING),
        launch_config_id=launch_config_id,
        order_id=order_id,
        launched=instance.get("LaunchTime"),
        identity={name: value for name, value in facts.items() if value},
    )
