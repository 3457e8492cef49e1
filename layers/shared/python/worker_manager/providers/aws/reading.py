"""How far the SDK reads EC2's answers: as far as ``listing`` looks, and no further.

Reading the XML is most of what a scan costs.  EC2 tells some sixty things of an instance, of which
we use nine, and the SDK spends 40 µs on each time because it takes any spelling of one.  Where to
read next: ``listing``, whose ``sighting`` must find in ``NEEDED`` all that it asks for.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from botocore.utils import parse_timestamp

if TYPE_CHECKING:
    import boto3
    from mypy_boto3_ec2 import EC2Client

NEEDED = frozenset(
    {
        "Architecture",
        "ImageId",
        "InstanceId",
        "InstanceType",
        "LaunchTime",
        "Placement",
        "PrivateIpAddress",
        "State",
        "Tags",
    }
)
"""Members of an instance that are read; the others are absent from every answer."""


def read_only_needed(client: EC2Client) -> None:
    """Have ``client`` skip what we do not use of the instances it lists or launches.

    The client's own copy of EC2's model is shortened; other clients read on as before.
    """
    model: Any = client.meta.service_model
    listed = model.operation_model("DescribeInstances").output_shape
    launched = model.operation_model("RunInstances").output_shape
    for reservation in (listed.members["Reservations"].member, launched):
        members = reservation.members["Instances"].member.members
        for name in members.keys() - NEEDED:
            del members[name]


def read_times_fast(session: boto3.Session) -> None:
    """Have the clients that ``session`` makes from now on read times with ``moment``."""
    factory = session._session.get_component("response_parser_factory")
    factory.set_parser_defaults(timestamp_parser=moment)


def moment(value: Any) -> datetime:
    """An aware time from ISO 8601 text, or what the SDK makes of anything else."""
    try:
        found = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return parse_timestamp(value)
    return found if found.tzinfo else parse_timestamp(value)
