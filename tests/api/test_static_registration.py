"""Machines in somebody's own racks register with a secret, as often as they like."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from tests.api.world import BASE, POOL_PATH, a_static_definition
from tests.factories import NOW
from worker_manager.core.model import Worker, WorkerKey

if TYPE_CHECKING:
    from tests.api.world import Api, Clock, Response

SECRET = "s" * 44
WORKER = f"{BASE}/workers/proj-x%2Fpool-1/rack-1/box-1"
GENERIC = "The identity of this worker could not be verified"


@pytest.fixture(autouse=True)
def _worker(api: Api) -> None:
    api.ok("PUT", POOL_PATH, a_static_definition())
    body = {
        "expires": "2026-02-01T00:00:00Z",
        "providerInfo": {"staticSecret": SECRET},
    }
    api.ok("PUT", WORKER, body)


def register(api: Api, secret: str = SECRET) -> Response:
    body = {
        "workerPoolId": "proj-x/pool-1",
        "providerId": "static",
        "workerGroup": "rack-1",
        "workerId": "box-1",
        "workerIdentityProof": {"staticSecret": secret},
    }
    return api("POST", f"{BASE}/worker/register", body, client=None)


def row(api: Api) -> Worker:
    found = api.deps.stores.workers.get(WorkerKey("proj-x/pool-1", "rack-1", "box-1"))
    assert found is not None
    return found


def test_registers_as_often_as_it_likes(api: Api, clock: Clock) -> None:
    for hours in (0, 1, 100):
        clock.advance(hours=hours)
        answer = register(api)
        assert answer.status == 200
        assert answer.body["credentials"]["clientId"].startswith("worker/static/proj-x/pool-1")


def test_its_latest_registrations_of_a_day_are_known(api: Api, clock: Clock) -> None:
    for _ in range(14):
        register(api)
        clock.advance(minutes=5)
    begin = NOW + timedelta(minutes=10)
    expected = tuple(begin + timedelta(minutes=5 * number) for number in range(12))
    assert row(api).registrations == expected
    assert row(api).registered == expected[-1]

    clock.advance(hours=23, minutes=50)
    register(api)
    assert row(api).registrations == (*expected[-1:], clock.now)


def test_gets_the_config_that_its_pool_has_now(api: Api) -> None:
    """B28: taskcluster#5794 and #7464, the config is read at each registration."""
    assert register(api).body["workerConfig"] == {"speed": 1}
    api.ok("POST", POOL_PATH, a_static_definition(config={"workerConfig": {"speed": 2}}))
    assert register(api).body["workerConfig"] == {"speed": 2}
    api.ok("POST", POOL_PATH, a_static_definition(config={}))
    assert register(api).body["workerConfig"] == {}


def test_gets_the_lifetime_that_its_pool_says_now(api: Api) -> None:
    config = {"lifecycle": {"reregistrationTimeout": 3600}}
    api.ok("POST", POOL_PATH, a_static_definition(config=config))
    assert register(api).body["expires"] == "2026-01-02T04:04:05.000Z"


@pytest.mark.parametrize("secret", ["t" * 44, "s" * 43 + "t"])
def test_needs_its_secret(api: Api, secret: str) -> None:
    before = api.contents()
    response = register(api, secret)
    assert response.message.startswith(GENERIC)
    assert api.contents() == before


def test_is_not_registered_once_it_was_removed(api: Api) -> None:
    api.ok("DELETE", WORKER)
    assert register(api).status == 400


def test_is_not_registered_after_its_end(api: Api, clock: Clock) -> None:
    clock.advance(days=60)
    assert "has expired" in register(api).message


def test_tells_of_its_first_registration_only(api: Api, clock: Clock) -> None:
    api.bus.events.clear()
    for _ in range(2):
        register(api)
        clock.advance(hours=1)
    [event] = api.bus.events
    assert (event["name"], event["detail"]["reason"]) == ("worker-running", "registered")
    assert row(api).unsent == ()
