"""Volumes that outlived their instances.

A launch config may keep a volume (``DeleteOnTermination`` false), and somebody may detach one by
hand.  Both carry our tags, and cost by the hour.  Where to read next: ``reconcile.sweep``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from worker_manager.core.errors import CloudError
from worker_manager.providers.answers import failures
from worker_manager.providers.aws.errors import cloud_errors
from worker_manager.providers.aws.listing import DEPLOYMENT_TAG, POOL_TAG
from worker_manager.providers.protocol import Leftover, Removed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mypy_boto3_ec2 import EC2Client

    from worker_manager.providers.visit import Visit

PAGE_SIZE = 500
"""The most that DescribeVolumes gives at once."""
GONE_CODE = "InvalidVolume.NotFound"


def list_volumes(client: EC2Client, *, deployment: str) -> Iterator[Leftover]:
    """Our deployment's volumes in a region that no instance uses, page by page.

    Which worker one was of is not told any more.
    """
    request: dict[str, Any] = {
        "Filters": [
            {"Name": f"tag:{DEPLOYMENT_TAG}", "Values": [deployment]},
            {"Name": "status", "Values": ["available"]},
        ],
        "MaxResults": PAGE_SIZE,
    }
    while True:
        with cloud_errors():
            page = client.describe_volumes(**request)
        for volume in page["Volumes"]:
            tags = {tag["Key"]: tag["Value"] for tag in volume.get("Tags", ())}
            yield Leftover(
                kind="volume",
                resource_id=volume["VolumeId"],
                since=volume.get("CreateTime"),
                pool_id=tags.get(POOL_TAG),
            )
        token = page.get("NextToken")
        if not token:
            return
        request["NextToken"] = token


def delete_volumes(client: EC2Client, visit: Visit, leftovers: Sequence[Leftover]) -> Removed:
    """Delete volumes side by side; what there is no time for is left to the next sweep."""
    ids = [leftover.resource_id for leftover in leftovers]

    def delete(volume_id: str) -> None:
        try:
            with cloud_errors():
                client.delete_volume(VolumeId=volume_id)
        except CloudError as error:
            if error.code != GONE_CODE:
                raise

    failed = failures(ids, visit.each(delete, ids))
    return Removed(frozenset(ids) - failed.keys(), failed)
