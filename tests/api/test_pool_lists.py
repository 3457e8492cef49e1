"""Worker pools in pages."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.api.world import BASE, a_definition
from worker_manager.api import pool_pages

if TYPE_CHECKING:
    from tests.api.world import Api


def create(api: Api, *names: str) -> None:
    for name in names:
        api.ok("PUT", f"{BASE}/worker-pool/proj-x%2F{name}", a_definition())


def ids(page: dict[str, Any]) -> list[str]:
    return [pool["workerPoolId"].partition("/")[2] for pool in page["workerPools"]]


def test_pools_are_listed_by_id_and_whole(api: Api) -> None:
    create(api, "c", "a", "b")
    page = api.ok("GET", "worker-pools")
    assert ids(page) == ["a", "b", "c"]
    assert "continuationToken" not in page
    assert page["workerPools"][0]["config"] == a_definition()["config"]


def test_no_pools_are_an_empty_list(api: Api) -> None:
    assert api.ok("GET", "worker-pools") == {"workerPools": []}


def test_pages_follow_each_other_to_the_end(api: Api) -> None:
    create(api, "a", "b", "c", "d")
    first = api.ok("GET", "worker-pools", query="limit=2")
    assert ids(first) == ["a", "b"]
    token = first["continuationToken"]
    second = api.ok("GET", "worker-pools", query=f"continuationToken={token}&limit=2")
    assert ids(second) == ["c", "d"]
    assert "continuationToken" not in second


def test_a_page_is_cut_before_it_is_too_large(api: Api) -> None:
    api.cut_pages_at(1500)
    create(api, "a", "b", "c")
    seen, query = [], ""
    while True:
        page = api.ok("GET", "worker-pools", query=query)
        seen += ids(page)
        if "continuationToken" not in page:
            break
        query = f"continuationToken={page['continuationToken']}"
    assert seen == ["a", "b", "c"]
    assert query


def test_a_page_ends_when_time_is_up(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_pages, "PATIENCE", timedelta(0))
    create(api, *(f"p{number}" for number in range(9)))
    page = api.ok("GET", "worker-pools")
    assert len(page["workerPools"]) == pool_pages.PARALLEL
    assert "continuationToken" in page


def test_a_pool_removed_meanwhile_is_left_out(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    create(api, "a")
    monkeypatch.setattr(api.deps.stores.pools, "get", lambda _: None)
    assert api.ok("GET", "worker-pools") == {"workerPools": []}


@pytest.mark.parametrize(
    ("token", "code"),
    [
        ("x", "InputError"),
        ("YQ", "InputError"),
        ("eA%3D%3D", "InputError"),
        ("%00", "InvalidRequestArguments"),
        ("%C3%A4", "InvalidRequestArguments"),
    ],
)
def test_a_token_that_we_did_not_make_is_refused(api: Api, token: str, code: str) -> None:
    response = api("GET", "worker-pools", query=f"continuationToken={token}")
    assert (response.status, response.code) == (400, code)
