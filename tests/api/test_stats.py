"""How many workers pools have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.api.world import BASE, POOL_PATH, a_definition
from tests.factories import NOW, a_worker
from worker_manager.core.model import State
from worker_manager.store.workers import WorkerStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    import pytest

    from tests.api.world import Api, Clock

STATS = f"{POOL_PATH}/stats"
ALL = "worker-pools/stats"


def zeros(**overrides: int) -> dict[str, Any]:
    states = ("requested", "running", "stopping", "stopped")
    return (
        {f"{state}{what}": 0 for state in states for what in ("Count", "Capacity")}
        | {"currentCapacity": 0}
        | overrides
    )


def some_workers(api: Api) -> None:
    for worker in (
        a_worker("i-1", capacity=4),
        a_worker("i-2", state=State.REQUESTED),
        a_worker("i-3", launch_config_id="lc_b", state=State.STOPPING),
        a_worker("i-4", launch_config_id="lc_b", state=State.STOPPED, capacity=2, modified=NOW),
        a_worker("i-5", launch_config_id=None),
    ):
        api.deps.stores.workers.put_new(worker)


def test_a_pools_workers_are_counted_by_launch_config_and_state(pool: Api) -> None:
    some_workers(pool)
    assert pool.ok("GET", STATS) == {
        "launchConfigStats": [
            {
                "workerPoolId": "proj-x/pool-1",
                "launchConfigId": "lc-a",
                **zeros(
                    currentCapacity=5,
                    runningCount=1,
                    runningCapacity=4,
                    requestedCount=1,
                    requestedCapacity=1,
                ),
            },
            {
                "workerPoolId": "proj-x/pool-1",
                "launchConfigId": "lc_b",
                **zeros(
                    currentCapacity=1,
                    stoppingCount=1,
                    stoppingCapacity=1,
                    stoppedCount=1,
                    stoppedCapacity=2,
                ),
            },
            {
                "workerPoolId": "proj-x/pool-1",
                "launchConfigId": "unknown",
                **zeros(currentCapacity=1, runningCount=1, runningCapacity=1),
            },
        ]
    }


def test_a_pool_without_workers_has_one_line_of_zeros(pool: Api) -> None:
    [line] = pool.ok("GET", STATS)["launchConfigStats"]
    assert line == {
        "workerPoolId": "proj-x/pool-1",
        "launchConfigId": "unknown",
        **zeros(),
    }


def test_workers_that_stopped_long_ago_count_no_more(pool: Api, clock: Clock) -> None:
    some_workers(pool)
    clock.advance(days=9)
    [_, lc_b, _] = pool.ok("GET", STATS)["launchConfigStats"]
    assert (lc_b["stoppedCount"], lc_b["stoppingCount"]) == (0, 1)


def test_statistics_of_a_pool_that_does_not_exist_are_a_404(api: Api) -> None:
    assert api("GET", STATS).code == "ResourceNotFound"


def test_only_who_may_see_a_pool_may_count_its_workers(pool: Api) -> None:
    refused = pool("GET", STATS, client="test/poor")
    assert refused.status == 403
    assert "worker-manager:get-worker-pool:proj-x/pool-1" in refused.message
    refused = pool("GET", ALL, client="test/poor")
    assert refused.status == 403
    assert "worker-manager:list-worker-pools" in refused.message


def test_all_pools_are_counted_by_id_also_those_without_workers(pool: Api) -> None:
    some_workers(pool)
    pool.ok("PUT", f"{BASE}/worker-pool/proj-x%2Fempty", a_definition())
    assert pool.ok("GET", ALL) == {
        "workerPoolsStats": [
            {"workerPoolId": "proj-x/empty", **zeros()},
            {
                "workerPoolId": "proj-x/pool-1",
                **zeros(
                    currentCapacity=7,
                    requestedCount=1,
                    requestedCapacity=1,
                    runningCount=2,
                    runningCapacity=5,
                    stoppingCount=1,
                    stoppingCapacity=1,
                    stoppedCount=1,
                    stoppedCapacity=2,
                ),
            },
        ]
    }


def test_pages_of_counted_pools_follow_each_other_to_the_end(api: Api) -> None:
    for number in range(5):
        api.ok("PUT", f"{BASE}/worker-pool/proj-x%2Fp{number}", a_definition())
    seen, query = [], "limit=2"
    while True:
        page = api.ok("GET", ALL, query=query)
        seen += [line["workerPoolId"] for line in page["workerPoolsStats"]]
        if "continuationToken" not in page:
            break
        query = f"continuationToken={page['continuationToken']}&limit=2"
    assert seen == [f"proj-x/p{number}" for number in range(5)]


def test_a_page_reads_the_workers_of_its_own_pools_only(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        api.ok("PUT", f"{BASE}/worker-pool/proj-x%2Fp{number}", a_definition())
    read: list[str] = []

    def states(_: WorkerStore, pool_id: str, _now: datetime) -> Iterator[tuple[State, int]]:
        read.append(pool_id)
        return iter(())

    monkeypatch.setattr(WorkerStore, "states", states)
    api.ok("GET", ALL, query="limit=2")
    assert sorted(read) == ["proj-x/p0", "proj-x/p1"]
