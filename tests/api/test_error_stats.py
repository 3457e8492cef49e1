"""Errors of pools in numbers and in groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.api.world import BASE, a_definition
from tests.factories import a_worker
from worker_manager.api import error_stats

if TYPE_CHECKING:
    from tests.api.world import Api, Clock

ERRORS = f"{BASE}/worker-pool-errors/proj-x%2Fpool-1"
STATS = f"{BASE}/worker-pool-errors/stats"
GROUPS = f"{ERRORS}/groups"


def report(api: Api, title: str = "It broke", *, to: str = ERRORS, **overrides: Any) -> Any:
    body = {
        "workerGroup": "us-east-1",
        "workerId": "i-1",
        "kind": "worker-error",
        "title": title,
        "description": "in two",
        "extra": {"code": "E1"},
        **overrides,
    }
    return api.ok("POST", to, body)


def totals(api: Api, query: str = "workerPoolId=proj-x%2Fpool-1") -> Any:
    return api.ok("GET", STATS, query=query)["totals"]


def test_no_errors_are_zeros_for_every_day_and_hour(pool: Api) -> None:
    answer = pool.ok("GET", STATS, query="workerPoolId=proj-x%2Fpool-1")
    assert answer["workerPoolId"] == "proj-x/pool-1"
    counted = answer["totals"]
    assert list(counted["daily"]) == [
        "2025-12-27T00:00:00.000Z",
        "2025-12-28T00:00:00.000Z",
        "2025-12-29T00:00:00.000Z",
        "2025-12-30T00:00:00.000Z",
        "2025-12-31T00:00:00.000Z",
        "2026-01-01T00:00:00.000Z",
        "2026-01-02T00:00:00.000Z",
    ]
    assert len(counted["hourly"]) == 24
    assert list(counted["hourly"])[-1] == "2026-01-02T03:00:00.000Z"
    assert {*counted["daily"].values(), *counted["hourly"].values(), counted["total"]} == {0}
    for name in ("title", "code", "workerPool", "launchConfig"):
        assert counted[name] == {}


def test_errors_are_counted_by_what_they_say(pool: Api) -> None:
    pool.deps.stores.workers.put_new(a_worker(launch_config_id="lc_b"))
    report(pool, "It broke")
    report(pool, "It broke", workerId="i-2", extra={})
    report(pool, "Another", workerId="i-3", extra={"code": 7})

    counted = totals(pool)
    assert counted["total"] == counted["daily"]["2026-01-02T00:00:00.000Z"] == 3
    assert counted["hourly"]["2026-01-02T03:00:00.000Z"] == 3
    assert counted["title"] == {"It broke": 2, "Another": 1}
    assert counted["code"] == {"E1": 1, "other": 1, "7": 1}
    assert counted["workerPool"] == {"proj-x/pool-1": 3}
    assert counted["launchConfig"] == {"lc_b": 1, "unknown": 2}


def test_errors_are_counted_in_their_day_and_hour(pool: Api, clock: Clock) -> None:
    report(pool)
    clock.advance(hours=23)
    report(pool)
    clock.advance(days=3)
    report(pool)

    counted = totals(pool)
    assert {at: number for at, number in counted["daily"].items() if number} == {
        "2026-01-02T00:00:00.000Z": 1,
        "2026-01-03T00:00:00.000Z": 1,
        "2026-01-06T00:00:00.000Z": 1,
    }
    assert {at: number for at, number in counted["hourly"].items() if number} == {
        "2026-01-06T02:00:00.000Z": 1
    }
    assert counted["total"] == 3

    clock.advance(days=3)
    assert totals(pool)["total"] == 2


def test_a_repeated_report_is_counted_once(pool: Api) -> None:
    report(pool)
    report(pool)
    assert totals(pool)["total"] == 1


@pytest.mark.parametrize("query", ["", "workerPoolId="])
def test_all_pools_are_counted_where_none_is_named(pool: Api, query: str) -> None:
    pool.ok("PUT", f"{BASE}/worker-pool/proj_x%2Fother", a_definition())
    report(pool)
    report(pool, to=f"{BASE}/worker-pool-errors/proj_x%2Fother")

    answer = pool.ok("GET", STATS, query=query)
    assert answer["workerPoolId"] == ""
    assert answer["totals"]["workerPool"] == {"proj-x/pool-1": 1, "proj_x/other": 1}
    assert answer["totals"]["title"] == {"It broke": 2}
    assert answer["totals"]["launchConfig"] == {}
    assert totals(pool, "workerPoolId=proj_x%2Fother")["total"] == 1


def test_however_many_titles_there_are_the_answer_stays_small(
    pool: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(error_stats, "MOST_NAMES", 2)
    for title in ("a", "a ", "b", "b"):
        report(pool, title.strip(), workerId=f"i-{len(title)}{title[0]}")
    for number in range(4):
        report(pool, f"c{number}")

    counted = totals(pool)
    assert sum(counted["title"].values()) == counted["total"]
    assert len(counted["title"]) == 3
    assert counted["title"]["a"] == 2
    assert "other" in counted["title"]


def test_statistics_of_a_pool_that_does_not_exist_are_a_404(api: Api) -> None:
    assert api("GET", STATS, query="workerPoolId=a%2Fb").code == "ResourceNotFound"


@pytest.mark.parametrize(
    ("query", "missing"),
    [
        ("workerPoolId=proj-x%2Fpool-1", "list-worker-pool-errors:proj-x/pool-1"),
        ("workerPoolId=", "list-worker-pool-errors:*"),
        ("", "list-worker-pool-errors:*"),
    ],
)
def test_all_pools_need_more_scopes_than_one(pool: Api, query: str, missing: str) -> None:
    refused = pool("GET", STATS, query=query, client="test/poor")
    assert (refused.status, refused.code) == (403, "InsufficientScopes")
    assert f"worker-manager:{missing}" in refused.message


@pytest.mark.parametrize("query", ["workerPoolId=a%20b", "limit=3", "workerPool=a"])
def test_what_is_no_pool_id_is_refused(pool: Api, query: str) -> None:
    assert pool("GET", STATS, query=query).code == "InvalidRequestArguments"


def groups(api: Api, query: str = "") -> list[Any]:
    found: list[Any] = api.ok("GET", GROUPS, query=query)["errorGroups"]
    return found


def test_equal_errors_are_a_group_that_knows_its_newest(pool: Api, clock: Clock) -> None:
    pool.deps.stores.workers.put_new(a_worker(launch_config_id="lc_b"))
    report(pool)
    clock.advance(days=2)
    newest = report(pool, description="in three")
    assert groups(pool) == [
        {
            "kind": "worker-error",
            "title": "It broke",
            "code": "E1",
            "launchConfigId": "lc_b",
            "firstSeen": "2026-01-02T03:04:05.000Z",
            "lastSeen": "2026-01-04T03:04:05.000Z",
            "count": 2,
            "errorId": newest["errorId"],
            "description": "in three",
        }
    ]


def test_a_group_without_a_launch_config_says_nothing_of_it(pool: Api) -> None:
    report(pool)
    [group] = groups(pool)
    assert "launchConfigId" not in group


def test_groups_follow_each_other_in_pages_while_errors_come_in(pool: Api, clock: Clock) -> None:
    for number in range(7):
        report(pool, f"t{number}")
    seen, query = [], "limit=3"
    while True:
        page = pool.ok("GET", GROUPS, query=query)
        seen += [group["title"] for group in page["errorGroups"]]
        clock.advance(minutes=2)
        for number in range(7):
            report(pool, f"t{number}")
        if "continuationToken" not in page:
            break
        query = f"continuationToken={page['continuationToken']}&limit=3"
    assert sorted(seen) == [f"t{number}" for number in range(7)]


def test_a_page_of_groups_is_cut_before_it_is_too_large(pool: Api) -> None:
    pool.cut_pages_at(10)
    report(pool, "a")
    report(pool, "b")
    page = pool.ok("GET", GROUPS)
    assert len(page["errorGroups"]) == 1
    query = f"continuationToken={page['continuationToken']}"
    assert len(pool.ok("GET", GROUPS, query=query)["errorGroups"]) == 1


def test_a_pool_that_does_not_exist_has_no_groups(api: Api) -> None:
    assert groups(api) == []


def test_a_pool_may_be_called_groups_or_stats(pool: Api) -> None:
    for name in ("groups", "stats"):
        pool.ok("PUT", f"{BASE}/worker-pool/proj-x%2F{name}", a_definition())
        report(pool, to=f"{BASE}/worker-pool-errors/proj-x%2F{name}")
        page = pool.ok("GET", f"{BASE}/worker-pool-errors/proj-x/{name}")
        assert len(page["workerPoolErrors"]) == 1


def test_a_token_that_we_did_not_make_is_refused(pool: Api) -> None:
    assert pool("GET", GROUPS, query="continuationToken=YWJj").code == "InputError"
