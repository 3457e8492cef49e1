"""Workers as the queue and we know them together."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.api.world import BASE
from tests.factories import NOW, POOL_ID, a_worker
from worker_manager.api import queue_workers
from worker_manager.core.ids import derived_slugid
from worker_manager.core.model import State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.api.world import Api, Clock

WORKERS = f"{BASE}/provisioners/proj-x/worker-types/pool-1/workers"
GROUP = "us-east-1"
HOUR = timedelta(hours=1)


def a_run(number: int = 0) -> dict[str, Any]:
    return {"taskId": derived_slugid("task", number), "runId": number}


def put(api: Api, *ids: str, **overrides: Any) -> None:
    for worker_id in ids:
        api.deps.stores.workers.put_new(a_worker(worker_id, **overrides))


def heard(api: Api, *ids: str, group: str = GROUP, **facts: Any) -> None:
    for worker_id in ids:
        given_facts = {"first_claim": NOW - HOUR, "last_active": NOW} | facts
        api.queue.set_activity(POOL_ID, group, worker_id, **given_facts)


def listed(api: Api, query: str = "") -> list[str]:
    page = api.ok("GET", WORKERS, query=query)
    assert "continuationToken" not in page
    return [worker["workerId"] for worker in page["workers"]]


def pages(
    api: Api, query: str, between: Callable[[], None] = lambda: None
) -> Iterator[list[dict[str, Any]]]:
    token = ""
    while True:
        page = api.ok("GET", WORKERS, query="&".join(filter(None, (query, token))))
        yield page["workers"]
        if "continuationToken" not in page:
            return
        token = f"continuationToken={page['continuationToken']}"
        between()


@pytest.fixture(params=[True, False], ids=["ordered", "any-order"], autouse=True)
def _order(request: pytest.FixtureRequest, api: Api) -> None:
    api.queue.is_ordered = request.param


def test_what_the_queue_and_we_know_of_a_worker_is_one_line(api: Api) -> None:
    put(api, "i-1", capacity=2)
    heard(api, "i-1", quarantine_until=NOW + HOUR)
    api.queue.set_history(POOL_ID, GROUP, "i-1", tasks=[a_run(1), a_run(2)])
    assert api.ok("GET", WORKERS) == {
        "workers": [
            {
                "workerGroup": "us-east-1",
                "workerId": "i-1",
                "workerPoolId": "proj-x/pool-1",
                "state": "running",
                "capacity": 2,
                "providerId": "aws",
                "launchConfigId": "lc-a",
                "firstClaim": "2026-01-02T02:04:05.000Z",
                "lastDateActive": "2026-01-02T03:04:05.000Z",
                "quarantineUntil": "2026-01-02T04:04:05.000Z",
                "latestTask": a_run(2),
            }
        ]
    }


def test_a_worker_that_only_the_queue_knows_stands_alone(api: Api) -> None:
    heard(api, "racked-1", group="rack")
    [worker] = api.ok("GET", WORKERS)["workers"]
    assert worker == {
        "workerGroup": "rack",
        "workerId": "racked-1",
        "workerPoolId": "proj-x/pool-1",
        "state": "standalone",
        "capacity": 0,
        "providerId": "none",
        "firstClaim": "2026-01-02T02:04:05.000Z",
        "lastDateActive": "2026-01-02T03:04:05.000Z",
    }


def test_a_worker_that_the_queue_has_not_heard_of_is_listed_too(api: Api) -> None:
    put(api, "i-1", state=State.REQUESTED, launch_config_id=None)
    [worker] = api.ok("GET", WORKERS)["workers"]
    assert worker == {
        "workerGroup": "us-east-1",
        "workerId": "i-1",
        "workerPoolId": "proj-x/pool-1",
        "state": "requested",
        "capacity": 1,
        "providerId": "aws",
    }


def test_ids_are_joined_with_their_group_and_pool(api: Api) -> None:
    """Q14: the reference joins on the worker's id alone."""
    put(api, "i-1")
    put(api, "i-1", pool_id="proj-x/other")
    heard(api, "i-1", group="elsewhere")
    found = api.ok("GET", WORKERS)["workers"]
    assert [(worker["workerGroup"], worker["state"]) for worker in found] == [
        ("elsewhere", "standalone"),
        ("us-east-1", "running"),
    ]


def test_workers_come_by_group_and_then_by_id(api: Api) -> None:
    put(api, "b", "a-b", "B", "a")
    heard(api, "c", "a")
    for group in ("us-east-1-wl1", "us-east-10", "US", "us_east"):
        put(api, "i", group=group)
        heard(api, "h", group=group)
    found = [(w["workerGroup"], w["workerId"]) for w in api.ok("GET", WORKERS)["workers"]]
    assert found == sorted(found)
    assert len(found) == 13


def test_workers_that_stopped_long_ago_are_forgotten(api: Api, clock: Clock) -> None:
    put(api, "i-1", state=State.STOPPED, modified=NOW)
    assert listed(api) == ["i-1"]
    clock.advance(days=9)
    assert listed(api) == []
    heard(api, "i-1")
    [worker] = api.ok("GET", WORKERS)["workers"]
    assert worker["state"] == "standalone"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("workerState=running", ["i-1", "i-2"]),
        ("workerState=requested", ["i-3"]),
        ("workerState=stopping", []),
        ("workerState=standalone", ["i-4", "i-5"]),
        ("launchConfigId=lc_b", ["i-2"]),
        ("launchConfigId=lc_b&workerState=requested", []),
        ("quarantined=true", ["i-2", "i-4"]),
        ("quarantined=false", ["i-1", "i-3", "i-5"]),
        ("quarantined=true&workerState=running&launchConfigId=lc_b", ["i-2"]),
    ],
)
def test_filters_let_only_those_through_that_match(
    api: Api, query: str, expected: list[str]
) -> None:
    put(api, "i-1")
    put(api, "i-2", launch_config_id="lc_b")
    put(api, "i-3", state=State.REQUESTED)
    heard(api, "i-1", quarantine_until=NOW - HOUR)
    heard(api, "i-2", "i-4", quarantine_until=NOW + HOUR)
    heard(api, "i-5")
    assert listed(api, query) == expected


@pytest.mark.parametrize(
    "query", ["quarantined=yes", "workerState=gone", "launchConfigId=a.b", "state=running"]
)
def test_what_no_filter_is_is_refused(api: Api, query: str) -> None:
    assert api("GET", WORKERS, query=query).code == "InvalidRequestArguments"


@pytest.mark.parametrize("token", ["YWJj", "YSNi", "x"])
def test_a_token_that_we_did_not_make_is_refused(api: Api, token: str) -> None:
    assert api("GET", WORKERS, query=f"continuationToken={token}").code == "InputError"


@pytest.mark.parametrize("query", ["limit=2", "limit=2&workerState=running", "limit=1"])
def test_pages_are_full_up_to_the_last_whatever_is_filtered(api: Api, query: str) -> None:
    api.queue.page = 3
    put(api, *(f"i-{number:02}" for number in range(0, 20, 2)))
    put(api, *(f"i-{number:02}" for number in range(0, 20, 5)), state=State.REQUESTED, group="z")
    heard(api, *(f"i-{number:02}" for number in range(0, 20, 3)))
    unpaged = api.ok("GET", WORKERS, query=query.partition("&")[2])["workers"]
    found = list(pages(api, query))
    assert [worker for page in found for worker in page] == unpaged
    size = int(query[6])
    assert all(len(page) == size for page in found[:-1])


def test_a_queue_with_an_order_of_its_own_is_read_once_for_all_pages(
    api: Api, clock: Clock
) -> None:
    api.queue.is_ordered = False
    heard(api, "i-1", "i-2", "i-3")
    assert [len(page) for page in pages(api, "limit=1")] == [1, 1, 1]
    assert api.queue.calls["worker_page"] == 1

    heard(api, "i-4")
    found = pages(api, "limit=2", lambda: clock.advance(seconds=31))
    assert [worker["workerId"] for page in found for worker in page] == ["i-1", "i-2", "i-3", "i-4"]
    assert api.queue.calls["worker_page"] == 3


def test_a_filter_that_lets_nothing_through_costs_only_so_much(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_workers, "MOST_READ", 2)
    put(api, "i-1", "i-2", "i-3")
    first, second = pages(api, "workerState=stopping")
    assert first == second == []


def test_a_queue_that_does_not_answer_is_a_503_that_says_when_to_try_again(api: Api) -> None:
    put(api, "i-1")
    api.queue.fail()
    for path in (WORKERS, f"{WORKERS}/us-east-1/i-1"):
        refused = api("GET", path)
        assert (refused.status, refused.code) == (503, "ServiceUnavailable")
        assert int(refused.headers["Retry-After"]) > 0


def test_only_who_may_list_or_get_workers_does(api: Api) -> None:
    refused = api("GET", WORKERS, client="test/poor")
    assert refused.status == 403
    assert "worker-manager:list-workers:proj-x/pool-1" in refused.message
    refused = api("GET", f"{WORKERS}/us-east-1/i-1", client="test/poor")
    assert refused.status == 403
    assert "worker-manager:get-worker:proj-x/pool-1/us-east-1/i-1" in refused.message


def test_one_worker_has_its_tasks_and_its_quarantine(api: Api) -> None:
    change = {
        "clientId": "sheriff",
        "updatedAt": "2026-01-02T03:00:00.000Z",
        "quarantineUntil": "2026-01-02T04:04:05.000Z",
        "quarantineInfo": "broken disk",
    }
    put(api, "i-1")
    heard(api, "i-1", quarantine_until=NOW + HOUR)
    api.queue.set_history(
        POOL_ID, GROUP, "i-1", tasks=[a_run(1), a_run(2)], quarantine_changes=[change]
    )
    assert api.ok("GET", f"{WORKERS}/us-east-1/i-1") == {
        "provisionerId": "proj-x",
        "workerType": "pool-1",
        "workerGroup": "us-east-1",
        "workerId": "i-1",
        "workerPoolId": "proj-x/pool-1",
        "state": "running",
        "capacity": 1,
        "providerId": "aws",
        "launchConfigId": "lc-a",
        "recentTasks": [a_run(1), a_run(2)],
        "expires": "2026-01-03T03:04:05.000Z",
        "firstClaim": "2026-01-02T02:04:05.000Z",
        "lastDateActive": "2026-01-02T03:04:05.000Z",
        "quarantineUntil": "2026-01-02T04:04:05.000Z",
        "quarantineDetails": [change],
    }


def test_one_worker_that_only_the_queue_knows_stands_alone(api: Api) -> None:
    heard(api, "i-1")
    found = api.ok("GET", f"{WORKERS}/us-east-1/i-1")
    assert (found["state"], found["capacity"], found["providerId"]) == ("standalone", 0, "none")
    assert found["quarantineDetails"] == found["recentTasks"] == []
    assert not {"launchConfigId", "quarantineUntil"} & found.keys()


def test_a_worker_in_quarantine_that_never_called_is_told_of_without_a_first_claim(
    api: Api,
) -> None:
    heard(api, "i-1", first_claim=None, last_active=None, quarantine_until=NOW + HOUR)
    found = api.ok("GET", f"{WORKERS}/us-east-1/i-1")
    assert found["quarantineUntil"] == "2026-01-02T04:04:05.000Z"
    assert not {"firstClaim", "lastDateActive"} & found.keys()
    assert listed(api, "quarantined=true") == ["i-1"]


def test_one_worker_that_the_queue_has_not_heard_of_is_a_404(api: Api) -> None:
    put(api, "i-1")
    assert api("GET", f"{WORKERS}/us-east-1/i-1").code == "ResourceNotFound"


IDS = [f"i-{number}" for number in range(8)]
CHANGES = st.lists(
    st.tuples(st.sampled_from(["put", "remove", "hear", "forget"]), st.sampled_from(IDS)),
    max_size=4,
)


@settings(
    max_examples=20,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    rows=st.sets(st.sampled_from(IDS)),
    seen=st.sets(st.sampled_from(IDS)),
    changes=st.lists(CHANGES, min_size=8, max_size=8),
    sizes=st.tuples(st.integers(1, 3), st.integers(1, 3)),
)
def test_nobody_who_was_there_all_along_is_skipped_or_repeated(
    api: Api,
    rows: set[str],
    seen: set[str],
    changes: list[Sequence[tuple[str, str]]],
    sizes: tuple[int, int],
) -> None:
    limit, api.queue.page = sizes
    for worker_id in IDS:
        change(api, "remove", worker_id)
        change(api, "forget", worker_id)
    for worker_id in rows:
        change(api, "put", worker_id)
    for worker_id in seen:
        change(api, "hear", worker_id)
    always, ever = rows | seen, rows | seen
    coming = iter(changes)

    def between() -> None:
        nonlocal always, ever
        for what, worker_id in next(coming, ()):
            change(api, what, worker_id)
            present = everyone(api)
            always, ever = always & present, ever | present

    found = [w["workerId"] for page in pages(api, f"limit={limit}", between) for w in page]
    assert found == sorted(set(found))
    assert always <= set(found) <= ever


def change(api: Api, what: str, worker_id: str) -> None:
    match what:
        case "put":
            put(api, worker_id)
        case "remove":
            api.tables.workers(POOL_ID, f"{GROUP}#{worker_id}").delete(add_version_condition=False)
        case "hear":
            heard(api, worker_id)
        case _:
            api.queue.forget(POOL_ID, GROUP, worker_id)


def everyone(api: Api) -> set[str]:
    rows = {worker.key.worker_id for worker in api.deps.stores.workers.page(POOL_ID, limit=100)}
    return rows | {worker_id for _, worker_id in api.queue.activity(POOL_ID)}
