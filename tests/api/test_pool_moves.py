"""Worker pools change provider, are deleted and come back; and whom they count."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tests.api.world import POOL_PATH, a_definition, a_launch_config
from tests.factories import a_worker
from worker_manager.core.model import State

if TYPE_CHECKING:
    from tests.api.world import Api, Clock

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


def with_two_launch_configs() -> dict[str, Any]:
    configs = [a_launch_config(workerManager={"launchConfigId": name}) for name in ("lc1", "lc2")]
    return a_definition(config={"launchConfigs": configs})


class TestMoving:
    def previous(self, api: Api) -> tuple[str, ...]:
        stored = api.deps.stores.pools.get("proj-x/pool-1")
        assert stored is not None
        return stored.previous_provider_ids

    def test_the_provider_before_is_remembered_until_it_is_chosen_again(self, pool: Api) -> None:
        pool.ok("POST", POOL_PATH, a_definition(providerId="aws-2"))
        assert self.previous(pool) == ("aws",)
        assert len(pool.provision.messages) == len(pool.other_provision.messages) == 1
        pool.ok("POST", POOL_PATH, a_definition(providerId="aws"))
        assert self.previous(pool) == ("aws-2",)
        assert pool.bus.events[-2]["detail"]["previousProviderId"] == "aws-2"

    def test_a_deleted_pool_is_readable_and_belongs_to_nobody(self, pool: Api) -> None:
        pool.ok("POST", POOL_PATH, with_two_launch_configs())
        pool.bus.events.clear()
        deleted = pool.ok("DELETE", POOL_PATH)
        assert deleted["providerId"] == "null-provider"
        assert deleted["config"] == {"minCapacity": 0, "maxCapacity": 10}
        assert pool.ok("GET", POOL_PATH) == deleted
        assert self.previous(pool) == ("aws",)
        assert pool.bus.names() == ["worker-pool-updated"] + ["launch-config-archived"] * 2

    def test_deleting_twice_changes_nothing(self, pool: Api) -> None:
        first = pool.ok("DELETE", POOL_PATH)
        before = pool.contents()
        assert pool.ok("DELETE", POOL_PATH) == first
        assert pool.contents() == before

    def test_deleting_what_does_not_exist_is_a_404(self, api: Api) -> None:
        assert api("DELETE", POOL_PATH).status == 404

    def test_the_null_provider_can_be_named_and_left_again(self, pool: Api) -> None:
        pool.ok("POST", POOL_PATH, a_definition(providerId="null-provider"))
        assert self.previous(pool) == ("aws",)
        restored = pool.ok("POST", POOL_PATH, a_definition())
        assert restored["config"]["launchConfigs"] == [a_launch_config()]
        assert self.previous(pool) == ()

    def test_a_deleted_pool_is_a_conflict_for_whoever_creates_it(self, pool: Api) -> None:
        pool.ok("DELETE", POOL_PATH)
        assert pool("PUT", POOL_PATH, a_definition()).status == 409

    def test_an_unknown_provider_is_named_with_those_that_exist(self, pool: Api) -> None:
        before = pool.contents()
        for method in ("PUT", "POST"):
            response = pool(method, POOL_PATH, a_definition(providerId="gcp"))
            assert (response.status, response.code) == (400, "InputError")
            assert "gcp" in response.message
            assert "aws-2" in response.message
        assert pool.contents() == before


class TestCounting:
    def test_counts_are_of_workers_in_every_state(self, pool: Api) -> None:
        for number, (state, capacity) in enumerate(
            [
                (State.REQUESTED, 2),
                (State.RUNNING, 3),
                (State.RUNNING, 1),
                (State.STOPPING, 5),
                (State.STOPPED, 7),
            ]
        ):
            worker = a_worker(f"i-{number}", state=state, capacity=capacity)
            assert pool.deps.stores.workers.put_new(replace(worker, modified=pool.deps.clock()))
        counts = pool.ok("GET", POOL_PATH)
        assert {name: counts[name] for name in COUNTS} == {
            "currentCapacity": 11,
            "requestedCount": 1,
            "runningCount": 2,
            "stoppingCount": 1,
            "stoppedCount": 1,
            "requestedCapacity": 2,
            "runningCapacity": 4,
            "stoppingCapacity": 5,
            "stoppedCapacity": 7,
        }

    def test_a_worker_that_stopped_long_ago_does_not_count(self, pool: Api, clock: Clock) -> None:
        pool.deps.stores.workers.put_new(a_worker(state=State.STOPPED))
        clock.advance(days=9)
        assert pool.ok("GET", POOL_PATH)["stoppedCount"] == 0
