"""Volumes that outlived their instances, against the simulated EC2."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from infra.local.clouds.ec2 import Fault, FaultKind
from tests.providers.orders import BODY, NOW, OREGON, an_order, worker_of
from worker_manager.core.errors import CloudError, CloudUnavailableError, ThrottledError

if TYPE_CHECKING:
    from tests.providers.stages import Ec2Stage

KEEPING = {
    **BODY,
    "launchConfig": {
        **BODY["launchConfig"],
        "BlockDeviceMappings": [
            {"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 8}},
            {"DeviceName": "/dev/xvdb", "Ebs": {"VolumeSize": 20, "DeleteOnTermination": False}},
        ],
    },
}


def test_only_volumes_that_no_instance_uses_are_left_over_and_they_go(ec2: Ec2Stage) -> None:
    machines = ec2.provider.launch(an_order(count=2, body=KEEPING)).machines
    assert not list(ec2.provider.leftovers(OREGON))
    ec2.provider.terminate([worker_of(machines[0])])
    ec2.pass_time(timedelta(minutes=1))
    (left,) = ec2.provider.leftovers(OREGON)
    assert (left.kind, left.since, left.pool_id) == ("volume", NOW, "proj/linux")
    assert not list(ec2.elsewhere.leftovers(OREGON))
    for _ in range(2):
        removed = ec2.provider.remove(OREGON, [left])
        assert removed.done == {left.resource_id}
        assert not removed.failed
    assert not list(ec2.provider.leftovers(OREGON))


@pytest.mark.parametrize(
    ("code", "error"),
    [("VolumeInUse", CloudUnavailableError), ("RequestLimitExceeded", ThrottledError)],
)
def test_a_volume_that_cannot_be_deleted_stays_left_over(
    ec2: Ec2Stage, code: str, error: type[CloudError]
) -> None:
    machines = ec2.provider.launch(an_order(count=2, body=KEEPING)).machines
    ec2.provider.terminate([worker_of(machine) for machine in machines])
    found = list(ec2.provider.leftovers(OREGON))
    ec2.cloud.faults.add(Fault(FaultKind.ERROR, "DeleteVolume", code=code))
    (failed,) = ec2.provider.remove(OREGON, found).failed.items()
    assert type(failed[1]) is error
    assert [one.resource_id for one in ec2.provider.leftovers(OREGON)] == [failed[0]]


def test_volumes_are_not_deleted_for_longer_than_a_visit(ec2: Ec2Stage) -> None:
    """EC2's calls cannot be given less time: the last that begins may take all of its own."""
    machines = ec2.provider.launch(an_order(count=2, body=KEEPING)).machines
    ec2.provider.terminate([worker_of(machine) for machine in machines])
    found = list(ec2.provider.leftovers(OREGON))
    ec2.provider._visits.monotonic = iter((0, *(3 for _ in found))).__next__
    removed = ec2.provider.remove(OREGON, found)
    assert len(removed.failed) == 2
    assert all(isinstance(error, ThrottledError) for error in removed.failed.values())
