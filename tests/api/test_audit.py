"""Who changed what: written by those who change something, listed per pool."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.api.world import (
    BASE,
    POOL_PATH,
    a_definition,
    a_launch_config,
    a_static_definition,
)
from tests.factories import a_worker
from worker_manager.api import paging
from worker_manager.api.audit import MOST_BODIES, of_launch_config
from worker_manager.api.routing import Call
from worker_manager.core.errors import ConflictError
from worker_manager.core.moments import to_wire

if TYPE_CHECKING:
    from tests.api.world import Api, Clock

AUDIT = f"{POOL_PATH}/audit"
RACKS = f"{BASE}/worker-pool/proj-x%2Fracks"
BOX = f"{BASE}/workers/proj-x%2Fracks/rack-1/box-1"
SECRET = "s" * 44


def trail(api: Api, path: str = AUDIT, query: str = "") -> list[Any]:
    found: list[Any] = api.ok("GET", path, query=query)["auditHistory"]
    return found


def changes(entry: Any) -> dict[str, Any]:
    return {
        change["path"]: {key: value for key, value in change.items() if key != "path"}
        for change in entry["changes"]
    }


class TestPools:
    def test_a_new_pool_tells_who_made_it_and_of_what(self, api: Api, clock: Clock) -> None:
        api.ok("PUT", POOL_PATH, a_definition())
        [entry] = trail(api)
        assert entry["auditId"]
        told = {key: value for key, value in entry.items() if key not in ("auditId", "changes")}
        assert told == {
            "workerPoolId": "proj-x/pool-1",
            "entity": "worker-pool",
            "entityId": "proj-x/pool-1",
            "action": "created",
            "clientId": "test/root",
            "time": to_wire(clock.now),
            "leftOut": 0,
            "requestId": "c6af9ac6-7b61-11e6-9a41-93e8deadbeef",
        }
        assert changes(entry)["/config/maxCapacity"] == {"after": 10}
        config = changes(entry)["/config/launchConfigs/lc-a"]["after"]
        assert config["launchConfig"] == {"ImageId": "ami-1"}

    def test_an_update_tells_just_what_differs(self, pool: Api, clock: Clock) -> None:
        clock.advance(seconds=1)
        other = a_launch_config(
            launchConfig={"ImageId": "ami-2"}, workerManager={"launchConfigId": "lc-b"}
        )
        definition = a_definition(
            owner="other@example.com", config={"maxCapacity": 11, "launchConfigs": [other]}
        )
        pool.ok("POST", POOL_PATH, definition)
        newest, oldest = trail(pool)
        assert (newest["action"], oldest["action"]) == ("updated", "created")
        assert changes(newest).keys() == {
            "/config/launchConfigs/lc-a",
            "/config/launchConfigs/lc-b",
            "/config/maxCapacity",
            "/owner",
        }
        assert changes(newest)["/config/maxCapacity"] == {"before": 10, "after": 11}
        gone = changes(newest)["/config/launchConfigs/lc-a"]
        assert gone["before"]["launchConfig"] == {"ImageId": "ami-1"}
        assert "after" not in gone

    def test_a_deletion_tells_what_went(self, pool: Api, clock: Clock) -> None:
        clock.advance(seconds=1)
        pool.ok("DELETE", POOL_PATH)
        newest, _ = trail(pool)
        assert newest["action"] == "deleted"
        assert changes(newest)["/providerId"] == {"before": "aws", "after": "null-provider"}
        assert "before" in changes(newest)["/config/launchConfigs/lc-a"]

    def test_what_changes_nothing_has_no_entry(self, pool: Api, clock: Clock) -> None:
        for _ in range(2):
            clock.advance(seconds=1)
            pool.ok("PUT", POOL_PATH, a_definition())
            pool.ok("POST", POOL_PATH, a_definition())
        assert len(trail(pool)) == 1
        for _ in range(2):
            clock.advance(seconds=1)
            pool.ok("DELETE", POOL_PATH)
        assert [entry["action"] for entry in trail(pool)] == ["deleted", "created"]

    def test_what_is_refused_has_no_entry(self, pool: Api) -> None:
        assert pool("PUT", POOL_PATH, a_definition(owner="other@example.com")).status == 409
        assert pool("POST", POOL_PATH, a_definition(owner=1)).status == 400
        assert pool("POST", POOL_PATH, a_definition(), client="test/poor").status == 403
        assert len(trail(pool)) == 1

    def test_a_change_that_is_decided_anew_has_one_entry(
        self, pool: Api, clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        save, failures = pool.deps.stores.pools.save, [ConflictError("raced")]

        def raced(change: Any) -> None:
            if failures:
                raise failures.pop()
            save(change)

        monkeypatch.setattr(pool.deps.stores.pools, "save", raced)
        clock.advance(seconds=1)
        pool.ok("POST", POOL_PATH, a_definition(description="other"))
        assert len(trail(pool)) == 2

    def test_a_secret_in_a_definition_is_in_no_entry(self, pool: Api) -> None:
        config = a_launch_config(workerConfig={"adminPassword": "hush", "userData": "shown"})
        del config["workerManager"]
        pool.ok("POST", POOL_PATH, a_definition(config={"launchConfigs": [config]}))
        assert "shown" in json.dumps(trail(pool))
        assert "hush" not in json.dumps(trail(pool))

    def test_of_very_many_launch_configs_that_go_some_are_told_without_content(
        self, pool: Api, clock: Clock
    ) -> None:
        many = [
            a_launch_config(
                launchConfig={"ImageId": f"ami-{n}"}, workerManager={"launchConfigId": f"lc-{n}"}
            )
            for n in range(MOST_BODIES + 2)
        ]
        pool.ok("POST", POOL_PATH, a_definition(config={"launchConfigs": many}))
        clock.advance(seconds=1)
        pool.ok("DELETE", POOL_PATH)
        gone = [
            told["before"]
            for path, told in changes(trail(pool)[0]).items()
            if path.startswith("/config/launchConfigs/")
        ]
        assert len(gone) == MOST_BODIES + 2
        assert sum("launchConfig" in config for config in gone) == MOST_BODIES

    def test_the_log_says_it_too(self, api: Api, caplog: pytest.LogCaptureFixture) -> None:
        api.ok("PUT", POOL_PATH, a_definition())
        [logged] = [record for record in caplog.records if record.message == "audit-event"]
        told = {key: vars(logged)[key] for key in ("entity", "entityId", "clientId", "action")}
        assert told == {
            "entity": "worker-pool",
            "entityId": "proj-x/pool-1",
            "clientId": "test/root",
            "action": "created",
        }


class TestWorkers:
    def test_a_removal_tells_who_asked_for_it_once(self, pool: Api, clock: Clock) -> None:
        assert pool.deps.stores.workers.put_new(a_worker())
        clock.advance(seconds=1)
        for _ in range(2):
            pool.ok("DELETE", f"{BASE}/workers/proj-x%2Fpool-1/us-east-1/i-1")
        newest, _ = trail(pool)
        assert (newest["entity"], newest["entityId"]) == ("worker", "us-east-1/i-1")
        assert (newest["action"], newest["clientId"]) == ("removed", "test/root")
        assert changes(newest) == {"/state": {"before": "running", "after": "stopping"}}

    def test_a_worker_that_removes_itself_is_no_news(self, pool: Api) -> None:
        worker = a_worker()
        assert pool.deps.stores.workers.put_new(worker)
        pool.remove_itself(worker)
        assert len(trail(pool)) == 1

    def test_a_static_worker_tells_its_whole_life_but_no_secret(
        self, api: Api, clock: Clock
    ) -> None:
        api.ok("PUT", RACKS, a_static_definition())
        body = {
            "expires": to_wire(clock.now + timedelta(days=1)),
            "capacity": 1,
            "providerInfo": {"staticSecret": SECRET},
        }
        for method, change in (
            ("PUT", {}),
            ("PUT", {}),
            ("POST", {}),
            ("POST", {"capacity": 2, "providerInfo": {"staticSecret": "t" * 44}}),
            ("POST", {"capacity": 2, "providerInfo": {"staticSecret": "t" * 44}}),
        ):
            clock.advance(seconds=1)
            api.ok(method, BOX, body | change)
        clock.advance(seconds=1)
        api.ok("DELETE", BOX)
        clock.advance(seconds=1)
        api.ok("PUT", BOX, body)
        told = trail(api, f"{RACKS}/audit")
        assert [entry["action"] for entry in reversed(told)] == [
            "created",
            "created",
            "updated",
            "removed",
            "created",
        ]
        assert changes(told[2]) == {
            "/capacity": {"before": 1, "after": 2},
            "/providerInfo/staticSecret": {"before": "(OMITTED)", "after": "(OMITTED)"},
        }
        assert {entry["entityId"] for entry in told[:4]} == {"rack-1/box-1"}
        text = json.dumps(told)
        assert SECRET not in text
        assert "sha256" not in text


def test_what_is_done_to_a_launch_config_can_be_told(pool: Api) -> None:
    call = Call({"workerPoolId": "proj-x/pool-1"}, {}, None, {}, "test/root")
    entry = of_launch_config(
        call, pool.deps, "paused", launch_config_id="lc-a", before={}, after={"reason": "why"}
    )
    assert entry is not None
    assert (entry.entity, entry.entity_id, entry.action) == ("launch-config", "lc-a", "paused")
    assert entry.difference.changes == ({"path": "/reason", "after": "why"},)


class TestListing:
    @pytest.fixture
    def changed(self, pool: Api, clock: Clock) -> Api:
        for number in range(6):
            clock.advance(seconds=1)
            pool.ok("POST", POOL_PATH, a_definition(description=f"version {number}"))
        return pool

    def pages(self, api: Api, limit: int) -> list[list[Any]]:
        found, token = [], ""
        while True:
            page = api.ok("GET", AUDIT, query=f"limit={limit}{token}")
            found.append(page["auditHistory"])
            if "continuationToken" not in page:
                return found
            token = f"&continuationToken={page['continuationToken']}"

    @pytest.mark.parametrize("limit", [1, 3, 7, 100])
    def test_pages_hold_every_entry_once_newest_first(self, changed: Api, limit: int) -> None:
        pages = self.pages(changed, limit)
        assert [entry for page in pages for entry in page] == trail(changed)
        assert [len(page) for page in pages[:-1]] == [limit] * (len(pages) - 1)
        times = [entry["time"] for entry in trail(changed)]
        assert times == sorted(times, reverse=True)

    def test_a_token_leads_on_though_entries_come(self, changed: Api, clock: Clock) -> None:
        whole = trail(changed)
        first = changed.ok("GET", AUDIT, query="limit=3")
        clock.advance(seconds=1)
        changed.ok("DELETE", POOL_PATH)
        rest = trail(changed, query=f"continuationToken={first['continuationToken']}")
        assert first["auditHistory"] + rest == whole

    def test_a_page_ends_before_it_is_too_large(self, changed: Api) -> None:
        changed.cut_pages_at(1000)
        pages = self.pages(changed, 100)
        assert len(pages) > 2
        assert sum(len(page) for page in pages) == 7

    @pytest.mark.parametrize("token", ["x", "YQ", paging.to_token("2026-01-01#a")])
    def test_a_token_that_was_not_made_here_is_a_400(self, pool: Api, token: str) -> None:
        response = pool("GET", AUDIT, query=f"continuationToken={token}")
        assert (response.status, response.code) == (400, "InputError")

    def test_an_unknown_pool_has_no_entries(self, api: Api) -> None:
        assert api.ok("GET", f"{BASE}/worker-pool/no%2Fsuch/audit") == {"auditHistory": []}

    def test_entries_beyond_their_end_are_not_shown(self, pool: Api, clock: Clock) -> None:
        clock.now += timedelta(days=399)
        assert len(trail(pool)) == 1
        clock.now += timedelta(days=2)
        assert trail(pool) == []

    def test_it_takes_the_scope_for_reading_the_pool(self, pool: Api) -> None:
        response = pool("GET", AUDIT, client="test/poor")
        assert response.status == 403
        assert "worker-manager:get-worker-pool:proj-x/pool-1" in response.message
