"""The launch configs of a pool, one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.api.world import POOL_PATH, a_definition, a_launch_config

if TYPE_CHECKING:
    from tests.api.world import Api, Clock

PATH = f"{POOL_PATH}/launch-configs"


def define(api: Api, *names: str, method: str = "PUT") -> None:
    configs = [a_launch_config(workerManager={"launchConfigId": name}) for name in names]
    api.ok(method, POOL_PATH, a_definition(config={"launchConfigs": configs}))


def listed(api: Api, query: str = "") -> list[tuple[str, bool]]:
    page = api.ok("GET", PATH, query=query)
    return [(c["launchConfigId"], c["isArchived"]) for c in page["workerPoolLaunchConfigs"]]


def test_launch_configs_are_listed_by_id(api: Api) -> None:
    define(api, "lc-z", "lc-a")
    page = api.ok("GET", PATH)
    assert page == {
        "workerPoolLaunchConfigs": [
            {
                "launchConfigId": name,
                "workerPoolId": "proj-x/pool-1",
                "isArchived": False,
                "configuration": {"region": "us-east-1", "launchConfig": {"ImageId": "ami-1"}},
                "created": "2026-01-02T03:04:05.000Z",
                "lastModified": "2026-01-02T03:04:05.000Z",
                "status": "active",
                "weight": 0.5,
                "health": {
                    "requested": 0,
                    "launched": 0,
                    "registered": 0,
                    "claimed": 0,
                    "failed": {},
                    "factor": 1.0,
                },
                "capacity": {"running": 0, "requested": 0, "stopping": 0, "quarantined": 0},
            }
            for name in ("lc-a", "lc-z")
        ]
    }


def test_a_change_of_the_manager_block_shows_in_it_and_in_its_time(api: Api, clock: Clock) -> None:
    define(api, "lc-a")
    clock.advance(hours=1)
    changed = a_launch_config(workerManager={"launchConfigId": "lc-a", "maxCapacity": 3})
    api.ok("POST", POOL_PATH, a_definition(config={"launchConfigs": [changed]}))
    [told] = api.ok("GET", PATH)["workerPoolLaunchConfigs"]
    assert told["configuration"]["workerManager"] == {"maxCapacity": 3}
    assert told["created"] == "2026-01-02T03:04:05.000Z"
    assert told["lastModified"] == "2026-01-02T04:04:05.000Z"


def test_archived_ones_are_listed_on_request_only(api: Api) -> None:
    define(api, "lc-a", "lc-b")
    define(api, "lc-b", method="POST")
    assert listed(api) == [("lc-b", False)]
    assert listed(api, "includeArchived=false") == [("lc-b", False)]
    assert listed(api, "includeArchived=true") == [("lc-a", True), ("lc-b", False)]


def test_an_archived_one_is_shown_whole(api: Api, clock: Clock) -> None:
    define(api, "lc-a")
    clock.advance(hours=1)
    limited = a_launch_config(workerManager={"launchConfigId": "lc-a", "maxCapacity": 3})
    api.ok("POST", POOL_PATH, a_definition(config={"launchConfigs": [limited]}))
    [active] = api.ok("GET", PATH)["workerPoolLaunchConfigs"]
    clock.advance(hours=1)
    define(api, "lc-b", method="POST")
    archived = api.ok("GET", PATH, query="includeArchived=true")["workerPoolLaunchConfigs"][0]
    for name in ("configuration", "created", "lastModified"):
        assert archived[name] == active[name]
    assert archived["configuration"]["workerManager"] == {"maxCapacity": 3}
    assert archived["status"] == "archived"
    assert api.ok("GET", f"{PATH}/lc-a") == archived


def test_one_that_comes_back_has_what_is_said_of_it_then(api: Api, clock: Clock) -> None:
    limited = a_launch_config(workerManager={"launchConfigId": "lc-a", "maxCapacity": 3})
    api.ok("PUT", POOL_PATH, a_definition(config={"launchConfigs": [limited]}))
    define(api, method="POST")
    clock.advance(hours=1)
    define(api, "lc-a", method="POST")
    told = api.ok("GET", f"{PATH}/lc-a")
    assert "workerManager" not in told["configuration"]
    assert (told["status"], told["isArchived"]) == ("active", False)
    assert told["lastModified"] == "2026-01-02T04:04:05.000Z"


def test_pages_follow_each_other(api: Api) -> None:
    define(api, "lc-a", "lc-b", "lc-c")
    page: dict[str, Any] = api.ok("GET", PATH, query="limit=2")
    assert len(page["workerPoolLaunchConfigs"]) == 2
    query = f"limit=2&continuationToken={page['continuationToken']}"
    assert listed(api, query) == [("lc-c", False)]
    assert listed(api, f"{query}&includeArchived=true") == [("lc-c", False)]
    assert "continuationToken" not in api.ok("GET", PATH, query=query)


def test_a_page_is_cut_before_it_is_too_large(api: Api) -> None:
    api.cut_pages_at(10)
    define(api, "lc-a", "lc-b")
    page = api.ok("GET", PATH)
    assert len(page["workerPoolLaunchConfigs"]) == 1
    assert listed(api, f"continuationToken={page['continuationToken']}") == [("lc-b", False)]


def test_a_pool_without_launch_configs_has_an_empty_list(api: Api) -> None:
    define(api)
    assert listed(api) == []


def test_a_pool_that_does_not_exist_is_a_404(api: Api) -> None:
    assert api("GET", PATH).status == 404


@pytest.mark.parametrize("query", ["includeArchived=yes", "includeArchived="])
def test_only_true_and_false_are_understood(api: Api, query: str) -> None:
    assert api("GET", PATH, query=query).code == "InvalidRequestArguments"
