"""A region's list."""

from __future__ import annotations

import logging

import pytest

from tests.providers.aws.wire import Answer, Wire, described, instance, refusal
from tests.providers.orders import DEPLOYMENT, NOW, OREGON, a_worker
from worker_manager.core.errors import CloudUnavailableError
from worker_manager.core.model import MachineStatus

TAGS = {
    "worker-manager:deployment": DEPLOYMENT,
    "worker-manager:pool": "proj/linux",
    "worker-manager:launch-config": "lc-1",
    "worker-manager:order": "o-1",
}


def test_a_list_asks_for_a_thousand_of_our_deployment_at_a_time() -> None:
    wire = Wire([described([])])
    assert list(wire.provider().instances(OREGON)) == []
    (sent,) = wire.parameters()
    assert sent["MaxResults"] == "1000"
    assert (sent["Filter.1.Name"], sent["Filter.1.Value.1"]) == (
        "tag:worker-manager:deployment",
        DEPLOYMENT,
    )
    states = {value for name, value in sent.items() if name.startswith("Filter.2.Value")}
    assert states == {"pending", "running", "shutting-down", "stopping", "stopped"}


def test_a_list_is_read_to_its_end() -> None:
    wire = Wire(
        [
            described([instance("i-1", tags=TAGS)], token="more"),
            described([], token="still more"),
            described([instance("i-2", tags=TAGS)]),
        ]
    )
    seen = list(wire.provider().instances(OREGON))
    assert [one.key.worker_id for one in seen] == ["i-1", "i-2"]
    assert [sent.get("NextToken") for sent in wire.parameters()] == [None, "more", "still more"]


def test_a_list_that_breaks_off_ends_in_an_error() -> None:
    wire = Wire([described([instance("i-1", tags=TAGS)], token="more"), refusal("Unavailable")])
    reading = wire.provider().instances(OREGON)
    assert next(reading).key.worker_id == "i-1"
    with pytest.raises(CloudUnavailableError):
        next(reading)


@pytest.mark.parametrize("missing", ["instanceState", "instanceId"])
def test_a_list_that_lacks_what_every_machine_has_concludes_nothing(missing: str) -> None:
    whole = described([instance("i-1", tags=TAGS)])
    wire = Wire([Answer(whole.status, whole.body.replace(missing, "another"))])
    with pytest.raises(CloudUnavailableError):
        list(wire.provider().instances(OREGON))


def test_a_sighting_has_all_that_its_tags_say() -> None:
    wire = Wire([described([instance("i-1", tags=TAGS)])])
    (seen,) = wire.provider().instances(OREGON)
    assert (seen.key.pool_id, seen.key.group, seen.key.worker_id) == ("proj/linux", OREGON, "i-1")
    assert (seen.launch_config_id, seen.order_id, seen.location) == ("lc-1", "o-1", OREGON)
    assert seen.launched == NOW
    assert seen.identity["availabilityZone"] == "us-west-2b"


@pytest.mark.parametrize(
    ("state", "status"),
    [
        ("pending", MachineStatus.PENDING),
        ("running", MachineStatus.RUNNING),
        ("shutting-down", MachineStatus.STOPPING),
        ("stopping", MachineStatus.STOPPED),
        ("stopped", MachineStatus.STOPPED),
        ("terminated", MachineStatus.GONE),
    ],
)
def test_a_state_of_ec2_has_a_status(state: str, status: MachineStatus) -> None:
    """B27: a stopped instance still costs, and is not mistaken for one being deleted."""
    wire = Wire([described([instance("i-1", state=state, tags=TAGS)])])
    (seen,) = wire.provider().instances(OREGON)
    assert seen.status is status


@pytest.mark.parametrize("tag", [None, "linux", "proj/Linux", "proj/linux two", "p" * 200])
def test_a_machine_without_a_pool_tag_that_can_be_one_is_left_out_with_a_warning(
    caplog: pytest.LogCaptureFixture, tag: str | None
) -> None:
    tags = {} if tag is None else {**TAGS, "worker-manager:pool": tag}
    wire = Wire([described([instance("i-1", tags=tags), instance("i-2", tags=TAGS)])])
    with caplog.at_level(logging.WARNING):
        (seen,) = wire.provider().instances(OREGON)
    assert seen.key.worker_id == "i-2"
    assert caplog.records[0].__dict__["instance_id"] == "i-1"


def test_a_machine_that_lost_its_tags_is_still_found_by_its_id() -> None:
    """Missing tags must not make a living machine look gone."""
    worker = a_worker("i-1")
    found = Wire([described([instance("i-1")])]).provider().lookup(OREGON, [worker])
    sighting = found[worker.key]
    assert sighting is not None
    assert sighting.key == worker.key
