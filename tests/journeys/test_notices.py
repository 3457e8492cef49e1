"""A machine's end reaches its row, the bus and its pool without any tick or list."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from infra.local.deploy import aws_client
from tests.journeys.world import until

if TYPE_CHECKING:
    from tests.journeys.world import World

pytestmark = pytest.mark.journey

POOL = "journey/noticed"


def give_notice(world: World, instance_id: str, state: str) -> None:
    """As EC2 does, on the bus that every account has."""
    entry = {
        "Source": "aws.ec2",
        "DetailType": "EC2 Instance State-change Notification",
        "Detail": json.dumps({"instance-id": instance_id, "state": state}),
        "Resources": [f"arn:aws:ec2:us-east-1:123456789012:instance/{instance_id}"],
    }
    answer = world.stage.client("events").put_events(Entries=[entry])
    assert answer["FailedEntryCount"] == 0


def test_a_terminated_machine_is_told_of_and_replaced_without_a_tick(
    world: World,
) -> None:
    """B25: tasks waited up to 20 minutes although the machine was known to be gone.

    Here no schedule fires: nothing but the notice leads to what is waited for.
    """
    (worker,) = world.launched(POOL, 1)
    world.register(worker)
    name = worker["workerId"]
    ec2 = aws_client("ec2", endpoint=world.stage.ec2_url)

    ec2.terminate_instances(InstanceIds=[name])
    give_notice(world, "i-0123456789abcdef0", "terminated")
    give_notice(world, name, "shutting-down")

    (stopped,) = until(lambda: world.events.of(POOL, "worker-stopped"), every=0.1)
    assert stopped["workerId"] == name
    until(lambda: world.instances(POOL), every=0.1)
