"""The recommended mix over HTTP."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.api.registry_world import BASE, RegistryApi
from tests.api.world import TOKEN
from tests.mix.racks import BUSY, HAD, HOUR, IDLE, policy_of, put_racks
from worker_manager.core.model import WorkerKey
from worker_manager.taskcluster.clients import Client

if TYPE_CHECKING:
    from worker_manager.store.tables import Tables

MIX = f"{BASE}/hardware/mix"


@pytest.fixture
def api(tables: Tables) -> RegistryApi:
    reader = Client("test/reader", TOKEN, ("worker-registry:hardware-read",))
    return RegistryApi(tables, clients=[reader])


def test_machines_to_move_are_named_and_waits_told(api: RegistryApi) -> None:
    put_racks(api)
    api.registry.gone(WorkerKey(IDLE, "rack-1", "m13"), at=api.clock.now)
    api.deps.quarantines.change(  # type: ignore[attr-defined]
        WorkerKey(IDLE, "rack-1", "m12"),
        api.clock.now + HOUR,
        info="",
        client_id="x",
        now=api.clock.now,
    )

    mix = api.ok("GET", MIX, client="test/reader")

    busy, idle = mix["pools"]
    assert (busy["taskQueueId"], busy["machines"], busy["proposed"]) == (BUSY, 8, 9)
    assert (idle["machines"], idle["unusable"], idle["change"]) == (12, 1, -1)
    assert busy["taskSeconds"] == 1800
    assert busy["proposedWeeklyWaitSeconds"] < busy["weeklyWaitSeconds"]
    assert busy["proposedWaitSeconds"] < busy["waitSeconds"]
    # The idlest of those that work.
    assert mix["moves"] == [
        {
            "taskQueueId": IDLE,
            "workerGroup": "rack-1",
            "workerId": "m11",
            "machineClass": "mini",
            "toTaskQueueId": BUSY,
            "reason": mix["moves"][0]["reason"],
        }
    ]
    assert mix["most"] == 1


def test_pools_whose_policy_has_no_part_of_it_stay_out(api: RegistryApi) -> None:
    put_racks(api)
    api.ok("PUT", policy_of(IDLE), {"reboot": True})

    mix = api.ok("GET", MIX, query="weeks=1")

    assert [line["taskQueueId"] for line in mix["pools"]] == [BUSY]
    assert mix["moves"] == []
    assert mix["weeks"] == 1


def test_a_machine_of_another_class_is_not_proposed(api: RegistryApi) -> None:
    put_racks(api)
    path = f"{BASE}/provisioners/racks/worker-types/idle/rack-1"
    for number in range(HAD[IDLE]):
        api.ok("PUT", f"{path}/m{number:02}", {"extra": {"machineClass": "tower"}})

    assert api.ok("GET", MIX)["moves"] == []


def test_old_load_is_not_asked_for(api: RegistryApi) -> None:
    put_racks(api)
    api.clock.now += timedelta(days=6)

    mix = api.ok("GET", MIX, query="weeks=1")

    assert "of 1728 samples that are needed there are 287" in mix["pools"][0]["reason"]


@pytest.mark.parametrize(
    ("mix", "wrong"),
    [
        ({"minimum": 3, "maximum": 2}, "maximum is less than minimum"),
        ({"weight": 0}, "weight"),
        ({"weight": True}, "weight"),
        ({"machineClasses": []}, "machineClasses"),
        ({"machineClasses": ["a b"]}, "machineClasses"),
        ({"waitSeconds": -1}, "waitSeconds"),
        ({"slots": 2}, "slots"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(
    api: RegistryApi, mix: dict[str, Any], wrong: str
) -> None:
    answer = api("PUT", policy_of(BUSY), {"mix": mix})

    assert answer.status == 400
    assert wrong in answer.body["message"]


@pytest.mark.parametrize(
    ("client", "query", "status"),
    [
        ("test/poor", "", 403),
        ("test/root", "weeks=5", 400),
        ("test/root", "weeks=0", 400),
    ],
)
def test_who_may_not_and_what_cannot_be_is_refused(
    api: RegistryApi, client: str, query: str, status: int
) -> None:
    assert api("GET", MIX, client=client, query=query).status == status
