"""A project's list as sightings, and what makes a list no list."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from tests.providers.google.wire import PROJECT, ZONE, Answer, instance, refusal
from worker_manager.core.errors import CloudUnavailableError
from worker_manager.core.model import MachineStatus, Sighting, WorkerKey

if TYPE_CHECKING:
    from tests.providers.google.wire import Wire


def page(*instances: dict[str, Any], **more: Any) -> Answer:
    zones = {
        f"zones/{ZONE}": {"instances": list(instances)},
        "zones/us-east1-b": {"warning": {"code": "NO_RESULTS_ON_PAGE"}},
    }
    return Answer(200, {"items": zones, **more})


def listed(wire: Wire, *answers: Answer) -> list[Sighting]:
    wire.says(*answers)
    return list(wire.provider().instances(PROJECT))


def test_a_machine_is_seen_with_all_that_says_where_it_came_from(wire: Wire) -> None:
    assert listed(wire, page(instance("4211002233445566778"))) == [
        Sighting(
            key=WorkerKey("proj/linux", ZONE, "4211002233445566778"),
            location=PROJECT,
            status=MachineStatus.RUNNING,
            launch_config_id="lc-6350aa384f6ab04fc4d1",
            order_id="Order-0123456789abcdef",
            launched=datetime(2031, 5, 17, 12, tzinfo=UTC),
            identity={"name": "proj-linux-4211002233445566778"},
        )
    ]


def test_one_list_asks_for_our_own_and_for_no_more_than_is_read(wire: Wire) -> None:
    first = page(instance("1"), nextPageToken="more")
    assert len(listed(wire, first, page(instance("2")))) == 2

    one, two = wire.calls
    assert one.path == two.path == f"projects/{PROJECT}/aggregated/instances"
    assert one.query["filter"] == "labels.worker-manager-deployment=wm-test"
    assert one.query["maxResults"] == "500"
    assert "items/*/instances(id,name,zone,status,labels,creationTimestamp)" in one.query["fields"]
    assert two.query == {**one.query, "pageToken": "more"}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("PROVISIONING", MachineStatus.PENDING),
        ("STAGING", MachineStatus.PENDING),
        ("RUNNING", MachineStatus.RUNNING),
        ("REPAIRING", MachineStatus.RUNNING),
        ("STOPPING", MachineStatus.STOPPING),
        ("SUSPENDED", MachineStatus.STOPPED),
        ("TERMINATED", MachineStatus.STOPPED),
        ("BRAND_NEW", MachineStatus.RUNNING),
    ],
)
def test_states_have_our_names(wire: Wire, status: str, expected: MachineStatus) -> None:
    (seen,) = listed(wire, page(instance(status=status)))
    assert seen.status is expected


@pytest.mark.parametrize(
    "incomplete",
    [
        {"unreachables": ["zones/us-east1-b"]},
        {"warning": {"code": "UNREACHABLE"}},
        {"items": {"zones/us-east1-b": {"warning": {"code": "UNREACHABLE"}}}},
    ],
)
def test_a_list_without_one_of_its_zones_is_an_error(
    wire: Wire, incomplete: dict[str, Any]
) -> None:
    """B37: nobody may conclude that the machines there are gone."""
    wire.says(page(instance(), nextPageToken="more"), page(**incomplete))
    seen = wire.provider().instances(PROJECT)
    next(seen)
    with pytest.raises(CloudUnavailableError) as caught:
        next(seen)
    assert caught.value.code == "UNREACHABLE"


def test_a_refused_page_ends_the_list_with_an_error(wire: Wire) -> None:
    wire.says(page(instance(), nextPageToken="more"), refusal(503, "backendError"))
    with pytest.raises(CloudUnavailableError):
        list(wire.provider().instances(PROJECT))


def test_a_machine_whose_labels_were_spoilt_is_left_out_with_a_warning(
    wire: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    assert listed(wire, page(instance(labels={}), instance("2"))) == listed(
        wire, page(instance("2"))
    )
    assert "machine of ours without a pool label" in caplog.text


def test_what_cannot_be_read_of_a_machine_is_an_error_of_ours(wire: Wire) -> None:
    garbled = instance()
    del garbled["status"]
    wire.says(page(garbled))
    with pytest.raises(CloudUnavailableError):
        list(wire.provider().instances(PROJECT))


def test_an_empty_project_has_no_machines(wire: Wire) -> None:
    assert listed(wire, Answer(200, {})) == []
