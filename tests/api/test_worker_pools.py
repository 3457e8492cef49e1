"""Worker pools: created, replaced and read."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tests.api.world import BASE, POOL_PATH, a_definition, a_launch_config, a_static_definition
from worker_manager.core.errors import ConflictError
from worker_manager.queues import NotSentError

if TYPE_CHECKING:
    import pytest

    from tests.api.world import Api, Clock
    from worker_manager.store.pools import PoolChange

COUNTS = (
    "currentCapacity",
    "requestedCount",
    "runningCount",
    "stoppingCount",
    "stoppedCount",
    "requestedCapacity",
    "runningCapacity",
    "stoppingCapacity",
    "stoppedCapacity",
)


def lc(name: str, **overrides: Any) -> dict[str, Any]:
    manager = {"launchConfigId": name, **overrides.pop("manager", {})}
    config = a_launch_config(workerManager=manager, **overrides)
    return {**config, "launchConfig": {"ImageId": f"ami-{name}"}} | overrides


def with_configs(*configs: dict[str, Any], **overrides: Any) -> dict[str, Any]:
    return a_definition(config={"launchConfigs": list(configs)}, **overrides)


class TestCreating:
    def test_a_created_pool_reads_back_as_it_was_given(self, api: Api) -> None:
        body = with_configs(lc("lc-z"), lc("lc-a", manager={"maxCapacity": 3}))
        created = api.ok("PUT", POOL_PATH, body)
        assert {name: created[name] for name in body} == body
        assert created["workerPoolId"] == "proj-x/pool-1"
        assert created["created"] == created["lastModified"] == "2026-01-02T03:04:05.000Z"
        assert all(created[name] == 0 for name in COUNTS)
        assert api.ok("GET", POOL_PATH) == created

    def test_an_id_that_is_not_given_is_derived_and_told(self, api: Api) -> None:
        config = {
            "region": "us-west-2",
            "launchConfig": {"ImageId": "ami-1"},
            "capacityPerInstance": 1,
        }
        created = api.ok("PUT", f"{BASE}/worker-pool/pp%2Fee", with_configs(config))
        [told] = created["config"]["launchConfigs"]
        assert told == config | {"workerManager": {"launchConfigId": "lc-1db9b08793a264e9e74d"}}

    def test_an_id_is_derived_from_numbers_as_they_were_written(self, pool: Api) -> None:
        def derived(number: str) -> str:
            config = {"region": "us-east-1", "launchConfig": {"ImageId": "ami-1", "N": "@"}}
            text = json.dumps(with_configs(config)).replace('"@"', number)
            updated = pool("POST", POOL_PATH, raw=text.encode()).body
            return str(updated["config"]["launchConfigs"][0]["workerManager"]["launchConfigId"])

        assert derived("1") != derived("1.0")

    def test_events_tell_of_the_pool_then_of_each_launch_config(self, api: Api) -> None:
        api.ok("PUT", POOL_PATH, with_configs(lc("lc-z"), lc("lc-a")))
        assert api.bus.names() == [
            "worker-pool-created",
            "launch-config-created",
            "launch-config-created",
        ]
        assert [e["detail"].get("launchConfigId") for e in api.bus.events] == [
            None,
            "lc-z",
            "lc-a",
        ]
        assert list(api.deps.stores.places.unpublished()) == []

    def test_the_pool_is_planned_at_once(self, api: Api) -> None:
        api.ok("PUT", POOL_PATH, a_definition())
        [message] = api.provision.messages
        assert message.body["pool"] == message.group == "proj-x/pool-1"
        assert "#change-" in message.body["tick"]
        assert message.body["tick"].endswith("-1")
        assert message.dedup

    def test_an_event_that_cannot_be_published_waits_and_fails_nothing(self, api: Api) -> None:
        api.bus.refuses = True
        api.ok("PUT", POOL_PATH, a_definition())
        [waiting] = api.deps.stores.places.unpublished()
        assert [event["name"] for event in waiting.events] == [
            "worker-pool-created",
            "launch-config-created",
        ]

    def test_a_queue_that_takes_nothing_fails_nothing(self, api: Api) -> None:
        api.provision.error = NotSentError("refused")
        api.ok("PUT", POOL_PATH, a_definition())

    def test_the_same_definition_again_is_the_same_answer_and_the_same_events(
        self, api: Api
    ) -> None:
        """Q9: also where ids were derived."""
        body = with_configs({"region": "us-east-1", "launchConfig": {"ImageId": "ami-1"}})
        first = api.ok("PUT", POOL_PATH, body)
        told = list(api.bus.events)
        api.bus.events.clear()
        before = api.contents()
        assert api.ok("PUT", POOL_PATH, body) == first
        assert api.bus.events == told
        assert api.contents() == before

    def test_what_was_read_may_be_created_again(self, api: Api) -> None:
        body = with_configs(
            {"region": "us-east-1", "launchConfig": {"ImageId": "ami-1"}}, lc("lc-b")
        )
        read = api.ok("PUT", POOL_PATH, body)
        again = {name: read[name] for name in body}
        again["config"]["launchConfigs"].reverse()
        assert api("PUT", POOL_PATH, again).status == 200

    def test_another_definition_is_a_conflict(self, pool: Api) -> None:
        before = pool.contents()
        for body in (
            a_definition(description="another"),
            a_definition(config={"maxCapacity": 11}),
            with_configs(lc("lc-a", manager={"maxCapacity": 1})),
            with_configs(lc("lc-a", region="us-west-2")),
        ):
            response = pool("PUT", POOL_PATH, body)
            assert (response.status, response.code) == (409, "RequestConflict")
        assert pool.contents() == before

    def test_the_same_launch_config_id_may_be_in_two_pools(self, pool: Api) -> None:
        pool.ok("PUT", f"{BASE}/worker-pool/proj-x%2Fother", with_configs(lc("lc-a")))

    def test_one_id_twice_is_a_conflict_and_nothing_is_written(self, api: Api) -> None:
        """Q12: also two that differ only in their workerManager."""
        empty = api.contents()
        plain = {"region": "us-east-1", "launchConfig": {"ImageId": "ami-1"}}
        for configs in (
            [lc("lc-a"), lc("lc-a", region="us-west-2")],
            [plain, plain | {"workerManager": {"maxCapacity": 3}}],
        ):
            response = api("PUT", POOL_PATH, with_configs(*configs))
            assert (response.status, response.code) == (409, "RequestConflict")
        assert api.contents() == empty

    def test_whoever_comes_second_at_the_same_moment_is_compared(
        self, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        save = api.deps.stores.pools.save
        monkeypatch.setattr(api.deps.stores.pools, "save", _first_conflicts(save, before=save))
        api.ok("PUT", POOL_PATH, a_definition())

    def test_a_pool_of_a_static_provider_needs_no_launch_configs(self, api: Api) -> None:
        created = api.ok("PUT", POOL_PATH, a_static_definition())
        assert created["config"] == {"workerConfig": {"speed": 1}}


def _first_conflicts(save: Any, *, before: Any = None) -> Any:
    calls: list[PoolChange] = []

    def conflicting(change: PoolChange) -> None:
        calls.append(change)
        if len(calls) > 1:
            save(change)
            return
        if before is not None:
            before(change)
        raise ConflictError("somebody was faster")

    return conflicting


class TestReplacing:
    def test_everything_is_replaced_but_the_time_of_creation(self, pool: Api, clock: Clock) -> None:
        clock.advance(hours=1)
        body = a_definition(
            description="new", owner="new@example.com", emailOnError=True, config={"maxCapacity": 5}
        )
        updated = pool.ok("POST", POOL_PATH, body)
        assert {name: updated[name] for name in body} == body
        assert updated["created"] == "2026-01-02T03:04:05.000Z"
        assert updated["lastModified"] == "2026-01-02T04:04:05.000Z"
        assert pool.ok("GET", POOL_PATH) == updated

    def test_what_was_read_may_be_sent_back_whole(self, pool: Api) -> None:
        """Q18: counts, times and id are ignored."""
        read = pool.ok("GET", POOL_PATH)
        assert pool.ok("POST", POOL_PATH, read | {"created": "2020-01-01T00:00:00Z"}) == read

    def test_launch_configs_keep_the_order_that_was_given(self, pool: Api) -> None:
        """Q11: tools compare whole definitions."""
        body = with_configs(lc("lc-c"), lc("lc-b"), a_launch_config(), lc("lc-d"))
        assert pool.ok("POST", POOL_PATH, body)["config"] == body["config"]
        body["config"]["launchConfigs"].reverse()
        assert pool.ok("POST", POOL_PATH, body)["config"] == body["config"]

    def test_events_tell_what_became_of_each_launch_config(self, api: Api) -> None:
        api.ok("PUT", POOL_PATH, with_configs(lc("lc1"), lc("lc2")))
        api.bus.events.clear()
        api.ok("POST", POOL_PATH, with_configs(lc("lc1"), lc("lc3")))
        assert [(e["name"], e["detail"].get("launchConfigId")) for e in api.bus.events] == [
            ("worker-pool-updated", None),
            ("launch-config-updated", "lc1"),
            ("launch-config-created", "lc3"),
            ("launch-config-archived", "lc2"),
        ]
        assert api.bus.events[0]["detail"]["previousProviderId"] == "aws"
        api.bus.events.clear()
        config = api.ok("POST", POOL_PATH, with_configs())["config"]
        assert "launchConfigs" not in config
        assert api.bus.names()[1:] == ["launch-config-archived"] * 2

    def test_a_change_of_limits_alone_is_kept_under_the_same_id(
        self, pool: Api, clock: Clock
    ) -> None:
        """B29: taskcluster#7918, limits are live and identity is stable."""
        clock.advance(minutes=1)
        config = a_launch_config()
        config["workerManager"] |= {"maxCapacity": 2, "initialWeight": 0.5}
        updated = pool.ok("POST", POOL_PATH, with_configs(config))
        assert updated["config"]["launchConfigs"] == [config]
        [message] = pool.provision.messages
        assert message.body["tick"].endswith("-2")
        stored = pool.deps.stores.pools.get("proj-x/pool-1")
        assert stored is not None
        assert stored.heads[0].max_capacity == 2

    def test_other_content_under_a_known_id_is_a_conflict(self, pool: Api) -> None:
        before = pool.contents()
        changed = a_launch_config(launchConfig={"ImageId": "ami-other"})
        response = pool("POST", POOL_PATH, with_configs(changed))
        assert (response.status, response.code) == (409, "RequestConflict")
        assert "lc-a" in response.message
        assert pool.contents() == before

    def test_other_content_under_an_archived_id_is_a_conflict(self, pool: Api) -> None:
        pool.ok("POST", POOL_PATH, with_configs())
        before = pool.contents()
        changed = a_launch_config(launchConfig={"ImageId": "ami-other"})
        assert pool("POST", POOL_PATH, with_configs(changed)).status == 409
        assert pool.contents() == before
        pool.ok("POST", POOL_PATH, with_configs(a_launch_config()))

    def test_a_pool_that_does_not_exist_is_a_404(self, api: Api) -> None:
        empty = api.contents()
        assert api("POST", POOL_PATH, a_definition()).status == 404
        assert api.contents() == empty

    def test_the_id_in_the_body_must_be_that_of_the_url(self, pool: Api) -> None:
        before = pool.contents()
        response = pool("POST", POOL_PATH, a_definition(workerPoolId="proj-x/other"))
        assert (response.status, response.code) == (400, "InputError")
        assert pool.contents() == before

    def test_a_lost_race_is_run_again(self, pool: Api, monkeypatch: pytest.MonkeyPatch) -> None:
        save = pool.deps.stores.pools.save

        def faster(change: PoolChange) -> None:
            save(replace(change, after=replace(change.after, description="faster")))

        monkeypatch.setattr(pool.deps.stores.pools, "save", _first_conflicts(save, before=faster))
        updated = pool.ok("POST", POOL_PATH, a_definition(description="slower"))
        assert updated["description"] == "slower"
        stored = pool.deps.stores.pools.get("proj-x/pool-1")
        assert stored is not None
        assert stored.version == 3

    def test_races_without_end_are_a_503(self, pool: Api, monkeypatch: pytest.MonkeyPatch) -> None:
        def lose(_: PoolChange) -> None:
            raise ConflictError("always")

        monkeypatch.setattr(pool.deps.stores.pools, "save", lose)
        assert pool("POST", POOL_PATH, a_definition(description="x")).status == 503
