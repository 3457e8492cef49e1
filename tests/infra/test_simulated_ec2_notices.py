"""What the simulated EC2 tells of its instances on an event bus, and when."""

from __future__ import annotations

import json
import time
from threading import Event
from typing import Any

from infra.local.clouds.ec2 import Ec2Cloud, Settings
from infra.local.clouds.ec2.control import apply
from infra.local.clouds.ec2.notices import Announcer
from worker_manager.core.model import MachineStatus
from worker_manager.providers.aws.notices import read_notice

TAGS = {"Name": "one"}


class Bus:
    """Takes events as EventBridge's client does; ``fails`` says how often it does not."""

    def __init__(self, *, expected: int, fails: int = 0) -> None:
        self.entries: list[Any] = []
        self.has_failed = Event()
        self.has_all = Event()
        self._expected = expected
        self._fails = fails

    def put_events(self, *, Entries: list[Any]) -> None:
        if self._fails:
            self._fails -= 1
            self.has_failed.set()
            raise ConnectionError("nobody there")
        self.entries += Entries
        if len(self.entries) >= self._expected:
            self.has_all.set()


def heard(cloud: Ec2Cloud) -> list[tuple[float, dict[str, Any]]]:
    """Everything that is announced from now on, and when it is due."""
    found: list[tuple[float, dict[str, Any]]] = []
    cloud.estate.announce = lambda due, entry: found.append((due, entry))
    return found


def a_cloud() -> Ec2Cloud:
    return Ec2Cloud(Settings(shutting_down_seconds=20), clock=lambda: 100.0)


def told(entry: dict[str, Any]) -> tuple[str, str]:
    detail = json.loads(entry["Detail"])
    return entry["DetailType"], detail.get("state") or detail["instance-action"]


def test_each_change_of_state_is_announced_when_it_is_due() -> None:
    cloud = a_cloud()
    (name,) = cloud.seed("us-east-1", 1, tags=TAGS)
    announced = heard(cloud)

    cloud.terminate("us-east-1", [name])

    kind = "EC2 Instance State-change Notification"
    assert [(due, told(entry)) for due, entry in announced] == [
        (100, (kind, "shutting-down")),
        (120, (kind, "terminated")),
    ]


def test_a_warning_comes_before_an_interruption() -> None:
    cloud = a_cloud()
    ids = cloud.seed("us-east-1", 1, tags=TAGS, spot=True)
    announced = heard(cloud)

    apply(cloud, {"warn": ids})

    assert [(due, told(entry)) for due, entry in announced] == [
        (100, ("EC2 Spot Instance Interruption Warning", "terminate"))
    ]


def test_what_is_announced_reads_as_ec2s_own_once_a_bus_has_framed_it() -> None:
    cloud = a_cloud()
    (name,) = cloud.seed("eu-west-1", 1, tags=TAGS)
    announced = heard(cloud)
    cloud.terminate("eu-west-1", [name])
    entry = announced[-1][1]

    notice = read_notice(
        {
            "id": "e-1",
            "region": entry["Resources"][0].split(":")[3],
            "detail-type": entry["DetailType"],
            "detail": json.loads(entry["Detail"]),
        }
    )

    assert (notice.location, notice.worker_id, notice.status) == (
        "eu-west-1",
        name,
        MachineStatus.GONE,
    )


def test_a_cloud_that_nobody_listens_to_announces_nothing_and_works() -> None:
    cloud = a_cloud()
    ids = cloud.seed("us-east-1", 1, tags=TAGS)

    cloud.warn(ids)

    assert len(cloud.terminate("us-east-1", ids)) == 1


def test_events_are_put_when_they_are_due_in_order_and_ten_at_a_time() -> None:
    bus = Bus(expected=12)
    began = time.time()

    announcer = Announcer(bus, time.time)
    announcer.announce(began + 0.2, {"number": 12})
    for number in range(1, 12):
        announcer.announce(began, {"number": number})
    with announcer:
        assert bus.has_all.wait(60)

    assert time.time() >= began + 0.2
    assert [entry["number"] for entry in bus.entries] == list(range(1, 13))


def test_a_bus_that_does_not_answer_loses_events_and_stops_nothing() -> None:
    bus = Bus(expected=1, fails=1)

    with Announcer(bus, time.time) as announcer:
        announcer.announce(0, {"number": 1})
        assert bus.has_failed.wait(60)
        announcer.announce(0, {"number": 2})
        assert bus.has_all.wait(60)

    assert bus.entries == [{"number": 2}]


def test_what_is_not_due_yet_does_not_keep_the_end_waiting() -> None:
    began = time.monotonic()

    with Announcer(Bus(expected=1), time.time) as announcer:
        announcer.announce(time.time() + 3600, {"number": 1})

    assert time.monotonic() - began < 60
