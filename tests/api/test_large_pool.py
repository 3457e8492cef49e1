"""A pool with 300 launch configs and 1 MB of config works from end to end."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.api.world import POOL_PATH, a_definition

if TYPE_CHECKING:
    from tests.api.world import Api


def a_large_definition() -> dict[str, Any]:
    configs = [
        {
            "region": f"us-west-{number % 4 + 1}",
            "launchConfig": {"ImageId": f"ami-{number}", "Filler": "x" * 3400},
            "workerManager": {"launchConfigId": f"lc-{number:03}", "maxCapacity": number},
        }
        for number in range(300)
    ]
    return a_definition(config={"launchConfigs": configs})


def test_a_large_pool_is_created_changed_read_and_listed(api: Api) -> None:
    body = a_large_definition()
    assert len(json.dumps(body)) > 1_000_000
    assert api.ok("PUT", POOL_PATH, body)["config"] == body["config"]
    assert len(api.bus.events) == 301
    assert api("PUT", POOL_PATH, body).status == 200

    configs = body["config"]["launchConfigs"]
    configs[7]["workerManager"]["maxCapacity"] = 1
    changed = body | {"config": body["config"] | {"launchConfigs": configs[1:]}}
    api.bus.events.clear()
    assert api.ok("POST", POOL_PATH, changed)["config"] == changed["config"]
    assert len(api.bus.events) == 301
    assert api.bus.names()[-1] == "launch-config-archived"
    assert list(api.deps.stores.places.unpublished()) == []

    assert api.ok("GET", POOL_PATH)["config"] == changed["config"]
    assert api.ok("GET", "worker-pools")["workerPools"][0]["config"] == changed["config"]
    page = api.ok("GET", f"{POOL_PATH}/launch-configs", query="includeArchived=true&limit=1000")
    assert len(page["workerPoolLaunchConfigs"]) == 300
