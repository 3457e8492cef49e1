"""Errors of pools: told by workers, read by owners."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.api.world import BASE, POOL_PATH, a_definition
from tests.factories import a_worker
from worker_manager.api import pool_errors
from worker_manager.store.mail import MailStore

if TYPE_CHECKING:
    from tests.api.world import Api, Clock

PATH = f"{BASE}/worker-pool-errors/proj-x%2Fpool-1"


def a_report(**overrides: Any) -> dict[str, Any]:
    return {
        "workerGroup": "us-east-1",
        "workerId": "i-1",
        "kind": "worker-error",
        "title": "It broke",
        "description": "in two",
        "extra": {"log": ["a", 1.5, None]},
        **overrides,
    }


def listed(api: Api, query: str = "") -> list[str]:
    page = api.ok("GET", PATH, query=query)
    return [error["title"] for error in page["workerPoolErrors"]]


def test_a_report_is_recorded_and_told(pool: Api) -> None:
    pool.deps.stores.workers.put_new(a_worker())
    told = pool.ok("POST", PATH, a_report())
    assert told | {"errorId": ""} == {
        "workerPoolId": "proj-x/pool-1",
        "errorId": "",
        "reported": "2026-01-02T03:04:05.000Z",
        "kind": "worker-error",
        "title": "It broke",
        "description": "in two",
        "extra": {"log": ["a", 1.5, None], "workerGroup": "us-east-1", "workerId": "i-1"},
        "launchConfigId": "lc-a",
    }
    assert pool.ok("GET", PATH) == {"workerPoolErrors": [told]}
    [event] = [event for event in pool.bus.events if event["name"] == "worker-pool-error"]
    assert event["detail"]["workerId"] == "i-1"
    assert event["detail"]["launchConfigId"] == "lc-a"


@pytest.mark.parametrize("wanted", [True, False])
def test_a_report_is_noted_for_mail_where_the_owner_wants_any(
    pool: Api, monkeypatch: pytest.MonkeyPatch, wanted: bool
) -> None:
    monkeypatch.setattr(pool.deps.errors, "_mails", True)
    pool.ok("POST", POOL_PATH, a_definition(emailOnError=wanted))

    pool.ok("POST", PATH, a_report())

    assert len(MailStore(pool.tables).due(limit=9)) == wanted


def test_a_report_that_a_client_repeats_is_one_error(pool: Api, clock: Clock) -> None:
    told = pool.ok("POST", PATH, a_report())
    clock.advance(seconds=5)
    assert pool.ok("POST", PATH, a_report()) == told
    assert pool.ok("POST", PATH, a_report(title="Another")) != told

    clock.advance(seconds=61)
    assert pool.ok("POST", PATH, a_report()) != told
    assert listed(pool) == ["It broke", "Another", "It broke"]


def test_an_unknown_worker_may_report_too(pool: Api) -> None:
    assert "launchConfigId" not in pool.ok("POST", PATH, a_report())


def test_a_bus_that_takes_nothing_fails_nothing(pool: Api) -> None:
    pool.bus.refuses = True
    pool.ok("POST", PATH, a_report())
    assert len(list(pool.deps.stores.places.unpublished())) == 1


@pytest.mark.parametrize("kind", ["Mixed Case", "bootFailed", "x!"])
def test_a_kind_needs_only_something_small_in_it(pool: Api, kind: str) -> None:
    """As in the reference, whose pattern is not anchored."""
    assert pool.ok("POST", PATH, a_report(kind=kind))["kind"] == kind


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"kind": "UPPER"}, "kind: "),
        ({"kind": ""}, "kind: "),
        ({"kind": "x" * 129}, "kind: "),
        ({"title": "x" * 129}, "title: "),
        ({"description": "x" * 10_241}, "description: "),
        ({"extra": []}, "extra: "),
        ({"workerId": ""}, "workerId: "),
        ({"more": 1}, "more: unknown field"),
    ],
)
def test_a_report_that_is_wrong_is_refused_by_field_name(
    pool: Api, change: dict[str, Any], told: str
) -> None:
    before = pool.contents()
    response = pool("POST", PATH, a_report(**change))
    assert (response.status, response.code) == (400, "InputValidationError")
    assert told in response.message
    assert pool.contents() == before


def test_an_extra_that_no_item_could_hold_is_refused(pool: Api) -> None:
    before = pool.contents()
    response = pool("POST", PATH, a_report(extra={"x": "y" * 200_000}))
    assert (response.status, response.code) == (400, "InputError")
    assert "extra: " in response.message
    assert pool.contents() == before


def test_a_pool_that_does_not_exist_is_a_404_to_report_and_empty_to_read(api: Api) -> None:
    assert api("POST", PATH, a_report()).status == 404
    assert listed(api) == []


def test_only_the_worker_itself_may_report(pool: Api) -> None:
    response = pool("POST", PATH, a_report(), client="test/poor")
    assert response.status == 403
    for scope in ("assume:worker-pool:proj-x/pool-1", "assume:worker-id:us-east-1/i-1"):
        assert scope in response.message


class TestListing:
    @pytest.fixture(autouse=True)
    def _errors(self, pool: Api, clock: Clock) -> None:
        pool.deps.stores.workers.put_new(a_worker(launch_config_id="lc_b"))
        for number, worker_id in enumerate(["i-1", "i-2", "i-1", "i-2"]):
            clock.advance(seconds=1)
            pool.ok("POST", PATH, a_report(title=f"t{number}", workerId=worker_id))

    def test_the_newest_comes_first(self, pool: Api) -> None:
        assert listed(pool) == ["t3", "t2", "t1", "t0"]

    def test_those_of_one_launch_config(self, pool: Api) -> None:
        """Q13: its id may have an underscore."""
        assert listed(pool, "launchConfigId=lc_b") == ["t2", "t0"]

    def test_one_by_its_id(self, pool: Api) -> None:
        [first, *_] = pool.ok("GET", PATH)["workerPoolErrors"]
        assert listed(pool, f"errorId={first['errorId']}") == ["t3"]
        assert listed(pool, "errorId=unknown") == []

    @pytest.mark.parametrize(("limit", "filtered"), [(1, ""), (3, ""), (1, "launchConfigId=lc_b")])
    def test_pages_follow_each_other_to_the_end(self, pool: Api, limit: int, filtered: str) -> None:
        seen: list[str] = []
        query = f"limit={limit}" + (f"&{filtered}" if filtered else "")
        token = ""
        while True:
            page = pool.ok("GET", PATH, query=query + token)
            seen += [error["title"] for error in page["workerPoolErrors"]]
            assert len(page["workerPoolErrors"]) <= limit
            if "continuationToken" not in page:
                break
            token = f"&continuationToken={page['continuationToken']}"
        assert seen == listed(pool, filtered)

    def test_a_page_is_cut_before_it_is_too_large(self, pool: Api) -> None:
        pool.cut_pages_at(10)
        page = pool.ok("GET", PATH)
        assert [error["title"] for error in page["workerPoolErrors"]] == ["t3"]
        assert listed(pool, f"continuationToken={page['continuationToken']}") == ["t2"]

    def test_a_filter_that_lets_nothing_through_costs_only_so_much(
        self, pool: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(pool_errors, "MOST_READ", 3)
        page = pool.ok("GET", PATH, query="errorId=unknown")
        assert page["workerPoolErrors"] == []
        query = f"errorId=unknown&continuationToken={page['continuationToken']}"
        assert pool.ok("GET", PATH, query=query) == {"workerPoolErrors": []}

    def test_what_is_older_than_a_week_is_gone(self, pool: Api, clock: Clock) -> None:
        clock.advance(days=7, seconds=-2)
        assert listed(pool) == ["t3", "t2", "t1"]
        clock.advance(days=1)
        assert pool.ok("GET", PATH) == {"workerPoolErrors": []}

    @pytest.mark.parametrize("token", ["x", "YWJj"])
    def test_a_token_that_we_did_not_make_is_refused(self, pool: Api, token: str) -> None:
        assert pool("GET", PATH, query=f"continuationToken={token}").code == "InputError"
