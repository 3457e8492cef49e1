"""Volumes that outlived their instances, against the simulated EC2."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from infra.local.clouds.ec2 import Fault, FaultKind
from tests.providers.orders import BODY, NOW, OREGON, an_order, worker_of
from worker_manager.core.errors import ThrottledError

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


@pytest.mark.parametrize("code", ["VolumeInUse", "RequestLimitExceeded"])
def test_a_volume_that_cannot_be_deleted_stays_left_over(ec2: Ec2Stage, code: str) -> None:
    machines = ec2.provider.launch(an_order(count=2, body=KEEPING)).machines
    ec2.provider.terminate([worker_of(machine) for machine in machines])
    found = list(ec2.provider.leftovers(OREGON))
    ec2.cloud.faults.add(Fault(FaultKind.ERROR, "DeleteVolume", code=code))
    removed = ec2.provider.remove(OREGON, found)
    throttled = code == "RequestLimitExceeded"
    assert len(removed.failed) == (2 if throttled else 1)
    assert all(isinstance(e, ThrottledError) is throttled for e in removed.failed.values())
    assert len(list(ec2.provider.leftovers(OREGON))) == len(removed.failed)
