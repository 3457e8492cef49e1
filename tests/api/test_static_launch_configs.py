"""Static pools with a launch config: which one their machines have, and what it says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.api.world import BASE, POOL_PATH, a_definition, a_static_definition
from tests.factories import NOW
from worker_manager.core.model import Location, Surplus, WorkerKey
from worker_manager.core.surplus import ARCHIVED

if TYPE_CHECKING:
    from tests.api.world import Api

SECRET = "s" * 44
WORKER = f"{BASE}/workers/proj-x%2Fpool-1/rack-1/box-1"
KEY = WorkerKey("proj-x/pool-1", "rack-1", "box-1")
CONFIGS = f"{POOL_PATH}/launch-configs"


def define(api: Api, speed: int = 1, *, method: str = "PUT", **manager: Any) -> str:
    """A pool whose launch config has this content; returns its id."""
    config: dict[str, Any] = {"workerConfig": {"speed": speed}}
    if manager:
        config["workerManager"] = manager
    body = a_static_definition(config={"launchConfigs": [config]})
    [told] = api.ok(method, POOL_PATH, body)["config"]["launchConfigs"]
    assert told["workerConfig"] == {"speed": speed}
    return str(told["workerManager"]["launchConfigId"])


def define_without(api: Api, method: str = "PUT") -> None:
    api.ok(method, POOL_PATH, a_static_definition())


def enter(api: Api) -> Any:
    body = {"expires": "2026-02-01T00:00:00Z", "providerInfo": {"staticSecret": SECRET}}
    return api.ok("PUT", WORKER, body)


def register(api: Api) -> Any:
    body = {
        "workerPoolId": "proj-x/pool-1",
        "providerId": "static",
        "workerGroup": "rack-1",
        "workerId": "box-1",
        "workerIdentityProof": {"staticSecret": SECRET},
    }
    return api.ok("POST", f"{BASE}/worker/register", body, client=None)["workerConfig"]


def tell_to_go(api: Api) -> None:
    row = api.deps.stores.workers.get(KEY)
    assert row is not None
    assert api.deps.stores.workers.change(row, surplus=Surplus(True, ARCHIVED, NOW))


def answer(api: Api) -> tuple[bool, str]:
    told = api.ok("GET", f"{BASE}/workers/proj-x%2Fpool-1/rack-1/box-1/should-terminate")
    return told["terminate"], told["reason"]


class TestDefining:
    def test_its_id_follows_from_its_content_and_is_told(self, api: Api) -> None:
        first = define(api)
        assert first.startswith("lc-")
        assert define(api, 2, method="POST") != first
        assert define(api, 1, method="POST") == first

    def test_an_id_may_be_given(self, api: Api) -> None:
        assert define(api, launchConfigId="racks-2026") == "racks-2026"

    def test_another_content_under_a_given_id_is_a_conflict(self, api: Api) -> None:
        define(api, launchConfigId="racks-2026")
        config = {"workerConfig": {}, "workerManager": {"launchConfigId": "racks-2026"}}
        body = a_static_definition(config={"launchConfigs": [config]})
        assert api("POST", POOL_PATH, body).status == 409

    def test_what_is_told_of_it_is_a_definition_that_changes_nothing(self, api: Api) -> None:
        define(api)
        told = api.ok("GET", POOL_PATH)["config"]
        again = api.ok("POST", POOL_PATH, a_static_definition(config=told))
        assert again["config"] == told

    def test_its_coming_and_going_is_told_as_in_a_cloud(self, api: Api) -> None:
        define(api)
        define(api, 2, method="POST")
        assert api.bus.names() == [
            "worker-pool-created",
            "launch-config-created",
            "worker-pool-updated",
            "launch-config-created",
            "launch-config-archived",
        ]

    def test_it_is_listed_with_the_archived_ones_on_request(self, api: Api) -> None:
        first = define(api)
        second = define(api, 2, method="POST")
        [told] = api.ok("GET", CONFIGS)["workerPoolLaunchConfigs"]
        assert (told["launchConfigId"], told["status"]) == (second, "active")
        assert told["configuration"] == {"workerConfig": {"speed": 2}}
        assert "weight" not in told
        every = api.ok("GET", CONFIGS, query="includeArchived=true")["workerPoolLaunchConfigs"]
        assert {c["launchConfigId"]: c["isArchived"] for c in every} == {first: True, second: False}
        assert api.ok("GET", f"{CONFIGS}/{first}")["status"] == "archived"

    def test_it_is_listed_with_the_capacity_of_its_workers(self, api: Api) -> None:
        define(api)
        enter(api)
        for state in ("requested", "running"):
            [told] = api.ok("GET", CONFIGS)["workerPoolLaunchConfigs"]
            assert {name: count for name, count in told["capacity"].items() if count} == {state: 1}
            register(api)

    def test_it_cannot_be_paused_as_nobody_launches_anything(self, api: Api) -> None:
        name = define(api)
        before = api.contents()
        response = api("PUT", f"{CONFIGS}/{name}/pause", {"seconds": 60, "reason": "why"})
        assert (response.status, response.code) == (400, "InputError")
        assert api.contents() == before
        response = api("PUT", f"{CONFIGS}/{name}/resume")
        assert (response.status, response.code) == (400, "InputError")

    def test_its_pool_explains_that_nobody_launches_anything(self, api: Api) -> None:
        define(api)
        told = api.ok("GET", f"{POOL_PATH}/explain")
        assert told["limit"] == "no-provider"

    def test_it_is_nowhere_so_that_nobody_lists_machines_of_it(self, api: Api) -> None:
        define(api)
        [member] = api.deps.stores.places.of_provider("static")[0]
        assert member.places == frozenset()

    def test_a_pool_moves_between_a_cloud_and_racks(self, api: Api) -> None:
        define(api)
        api.ok("POST", POOL_PATH, a_definition())
        define(api, 2, method="POST")
        [racks] = api.deps.stores.places.of_provider("static")[0]
        [cloud] = api.deps.stores.places.of_provider("aws")[0]
        assert (racks.previous, racks.places) == (False, frozenset())
        assert (cloud.previous, cloud.places) == (True, frozenset({Location("us-east-1")}))


class TestItsWorkers:
    def test_get_it_from_the_start(self, api: Api) -> None:
        current = define(api)
        assert enter(api)["launchConfigId"] == current
        assert register(api) == {"speed": 1}

    def test_get_the_one_of_now_when_they_register(self, api: Api) -> None:
        """B28: taskcluster#5794 and #7464."""
        first = define(api)
        enter(api)
        register(api)
        second = define(api, 2, method="POST")
        assert api.ok("GET", WORKER)["launchConfigId"] == first
        assert register(api) == {"speed": 2}
        assert api.ok("GET", WORKER)["launchConfigId"] == second

    def test_are_told_nothing_any_more_once_they_registered_anew(self, api: Api) -> None:
        define(api)
        enter(api)
        register(api)
        define(api, 2, method="POST")
        tell_to_go(api)
        assert answer(api) == (True, "launch config archived")
        register(api)
        assert answer(api) == (False, "none")

    def test_follow_a_pool_that_begins_or_ends_to_have_one(self, api: Api) -> None:
        define_without(api)
        assert "launchConfigId" not in enter(api)
        current = define(api, 2, method="POST")
        assert register(api) == {"speed": 2}
        assert api.ok("GET", WORKER)["launchConfigId"] == current
        define_without(api, "POST")
        assert register(api) == {"speed": 1}
        assert "launchConfigId" not in api.ok("GET", WORKER)

    def test_begin_anew_with_the_one_of_now(self, api: Api) -> None:
        define(api)
        enter(api)
        api.ok("DELETE", WORKER)
        second = define(api, 2, method="POST")
        assert enter(api)["launchConfigId"] == second

    def test_keep_theirs_while_their_pool_is_elsewhere(self, api: Api) -> None:
        first = define(api)
        enter(api)
        api.ok("POST", POOL_PATH, a_definition())
        tell_to_go(api)
        assert register(api) == {"speed": 1}
        assert api.ok("GET", WORKER)["launchConfigId"] == first
        assert answer(api) == (True, "launch config archived")


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"launchConfigs": []}, "config.launchConfigs: list should have at least 1 item"),
        ({"launchConfigs": [{}, {}]}, "config.launchConfigs: list should have at most 1 item"),
        ({"launchConfigs": None}, "config.launchConfigs: "),
        ({"launchConfigs": {}}, "config.launchConfigs: "),
        ({"launchConfigs": [{"region": "x"}]}, "config.launchConfigs[0].region: unknown field"),
        (
            {"launchConfigs": [{"workerManager": {"maxCapacity": 1}}]},
            "config.launchConfigs[0].workerManager.maxCapacity: unknown field",
        ),
        (
            {"launchConfigs": [{"workerManager": {"launchConfigId": "a.b"}}]},
            "config.launchConfigs[0].workerManager.launchConfigId: ",
        ),
        ({"launchConfigs": [{}], "workerConfig": {}}, "config: workerConfig must stand in"),
    ],
)
def test_anything_but_one_launch_config_is_refused_by_its_name(
    api: Api, config: dict[str, Any], told: str
) -> None:
    before = api.contents()
    response = api("PUT", POOL_PATH, a_static_definition(config=config))
    assert (response.status, response.code) == (400, "InputValidationError")
    assert told in response.message
    assert api.contents() == before
