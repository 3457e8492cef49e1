"""Workers on the machines of a rack, against a recorded Taskcluster, and what is told to them."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections import deque
from typing import TYPE_CHECKING, Any

import pytest

from infra.local.racks.__main__ import Config, Crew
from infra.local.racks.rack import Rack
from infra.local.standing import tell
from tests.infra.taskcluster_service import TaskclusterService, until

if TYPE_CHECKING:
    from collections.abc import Iterator

SECRETS = {"m-1": "1" * 44, "m-2": "2" * 44}
SHORT = {"seconds": 0.0}


@pytest.fixture
def service() -> Iterator[TaskclusterService]:
    service = TaskclusterService()
    yield service
    service.close()


@pytest.fixture(scope="module")
def rack() -> Iterator[Rack]:
    with Rack(SECRETS, boot_seconds=0.05) as rack:
        yield rack


@pytest.fixture
def url(rack: Rack, service: TaskclusterService) -> Iterator[str]:
    """The control side of the rack, whose machines are up and at work."""
    config: Config = {
        "root_url": service.url,
        "worker_pool_id": "hw/linux",
        "provider_id": "static",
        "worker_group": "rack",
        "boot_seconds": 0.05,
        "poll_seconds": 0.02,
        "machines": SECRETS,
    }
    for name in SECRETS:
        rack.do(rack.machine(name).come_up())
        rack.machine(name).restarts.clear()
    crew = Crew(rack, config, port=0)
    yield rack.do(crew.start())
    rack.do(crew.close())


def machines(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"{url}/_control/machines", timeout=10) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def registered(service: TaskclusterService) -> list[tuple[str, str]]:
    bodies = [call.body for call in service.of("register")]
    return [(one["workerId"], one["workerIdentityProof"]["staticSecret"]) for one in bodies]


def test_each_machine_registers_with_its_own_secret_and_works(
    service: TaskclusterService, url: str
) -> None:
    service.script.tasks = deque([SHORT, SHORT])
    until(lambda: len(service.of("completed")) == 2)
    assert sorted(registered(service)) == sorted(SECRETS.items())
    until(lambda: sum(one["outcomes"].get("tasks completed", 0) for one in _all(url)) == 2)
    assert {one["condition"] for one in _all(url)} == {"up"}
    assert "remove" not in service.names()


def test_a_machine_that_hangs_calls_nobody_until_it_is_reset_and_registers_anew(
    service: TaskclusterService, rack: Rack, url: str
) -> None:
    until(lambda: len(service.of("register")) == 2)
    tell(url, {"hang": list(SECRETS)})
    calls = len(service.calls)
    assert {one["condition"] for one in _all(url)} == {"hanging"}
    rack.do(rack.machine("m-1").restart("redfish-reset"))
    until(lambda: len(service.of("register")) == 3)
    assert registered(service)[-1] == ("m-1", SECRETS["m-1"])
    assert {call.body.get("workerId", "m-1") for call in service.calls[calls:] if call.body} == {
        "m-1"
    }
    assert machines(url)["m-1"]["restarts"] == {"redfish-reset": 1}


def test_tasks_fail_as_long_as_it_is_said(service: TaskclusterService, url: str) -> None:
    tell(url, {"fail": list(SECRETS)})
    service.script.tasks = deque([SHORT])
    until(lambda: service.of("failed"))
    tell(url, {"mend": list(SECRETS)})
    service.script.tasks = deque([SHORT])
    until(lambda: service.of("completed"))


def test_who_is_refused_asks_again(service: TaskclusterService, rack: Rack, url: str) -> None:
    until(lambda: len(service.of("register")) == 2)
    service.script.registrations = deque([(400, {})])
    rack.do(rack.machine("m-1").restart("ssh"))
    until(lambda: len(service.of("register")) == 4)
    assert {name for name, _ in registered(service)[2:]} == {"m-1"}
    until(lambda: machines(url)["m-1"]["outcomes"] == {"registered": 2, "refused": 1})


@pytest.mark.parametrize(
    "document", [{"hang": ["m-9"]}, {"explode": ["m-1"]}, ["hang"], {"hang": 1}]
)
def test_what_makes_no_sense_is_refused_and_nothing_is_done(url: str, document: Any) -> None:
    with pytest.raises(urllib.error.HTTPError, match="400") as refused:
        tell(url, {"hang": ["m-1"], **document} if isinstance(document, dict) else document)
    refused.value.close()
    assert {one["condition"] for one in _all(url)} == {"up"}


def _all(url: str) -> list[dict[str, Any]]:
    return list(machines(url).values())
