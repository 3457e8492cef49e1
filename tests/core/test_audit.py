from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.factories import NOW, a_head, a_pool, a_worker
from worker_manager.core.audit import (
    LARGEST,
    LONGEST_VALUE,
    MOST_CHANGES,
    OMITTED,
    Difference,
    difference,
    pool_difference,
    worker_difference,
)
from worker_manager.core.model import State

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=10,
)
OBJECTS = st.dictionaries(st.text(max_size=3), JSON, max_size=4)


def told(before: dict[str, Any], after: dict[str, Any]) -> list[Any]:
    found = difference(before, after)
    assert found.left_out == 0
    return list(found.changes)


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        ({}, {}, []),
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, [{"path": "/a", "before": 1, "after": 2}]),
        ({}, {"a": None}, [{"path": "/a", "after": None}]),
        ({"a": None}, {}, [{"path": "/a", "before": None}]),
        ({"a": 1}, {"a": 1.0}, [{"path": "/a", "before": 1, "after": 1.0}]),
        ({"a": 1}, {"a": True}, [{"path": "/a", "before": 1, "after": True}]),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}, [{"path": "/a/c", "before": 2}]),
        ({"a": {"b": 1}}, {"a": 1}, [{"path": "/a", "before": {"b": 1}, "after": 1}]),
        ({"a": [1, 2]}, {"a": [2]}, [{"path": "/a", "before": [1, 2], "after": [2]}]),
        ({"x/y~": 1}, {}, [{"path": "/x~1y~0", "before": 1}]),
    ],
    ids=str,
)
def test_a_change_tells_its_path_and_what_was_there_before_and_after(
    before: dict[str, Any], after: dict[str, Any], changes: list[Any]
) -> None:
    assert told(before, after) == changes
    assert bool(difference(before, after)) == bool(changes)


def test_changes_come_in_the_order_of_their_paths() -> None:
    found = told({"b": {"z": 1, "a": 1}, "a": 1}, {"b": {"z": 2, "a": 2}, "c": 1})
    assert [change["path"] for change in found] == ["/a", "/b/a", "/b/z", "/c"]


@given(OBJECTS)
def test_nothing_differs_from_itself(value: dict[str, Any]) -> None:
    assert not difference(value, json.loads(json.dumps(value)))


@given(OBJECTS, OBJECTS)
def test_there_and_back_tell_the_same_places(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert [c["path"] for c in told(one, other)] == [c["path"] for c in told(other, one)]


@pytest.mark.parametrize(
    "key",
    [
        "secret",
        "staticSecret",
        "STATIC_SECRET",
        "adminPassword",
        "admin-password",
        "token",
        "accessToken",
        "api_key",
        "privateKey",
        "secretAccessKey",
        "credentials",
    ],
)
@pytest.mark.parametrize("value", ["hush", ["hush"], {"a": "hush"}, 12345])
def test_a_secret_is_never_told_wherever_it_stands(key: str, value: Any) -> None:
    for before, after in (
        ({}, {key: value}),
        ({key: value}, {key: "other hush"}),
        ({key: {"a": "hush", "b": 1}}, {key: {"a": "hush"}}),
        ({"list": [{key: value}]}, {"list": []}),
        ({}, {"deep": {"er": {key: value}}}),
    ):
        found = told(before, after)
        assert found
        assert "hush" not in json.dumps(found)
        assert "12345" not in json.dumps(found)
        assert OMITTED in json.dumps(found)


@pytest.mark.parametrize(
    "key", ["userData", "UserData", "HttpTokens", "KeyName", "secretName", "tokenUrl", "publicKey"]
)
def test_what_only_sounds_like_a_secret_is_told(key: str) -> None:
    assert told({}, {key: "value"}) == [{"path": f"/{key}", "after": "value"}]


def test_a_switch_that_is_named_like_a_secret_is_told() -> None:
    assert told({"useSecrets": False}, {"useSecrets": True}) == [
        {"path": "/useSecrets", "before": False, "after": True}
    ]


def test_of_a_long_value_the_beginning_is_told_and_its_length() -> None:
    [change] = told({}, {"a": ["x" * LONGEST_VALUE]})
    assert change["after"].startswith('["xxx')
    assert change["after"].endswith(f"… ({LONGEST_VALUE + 4} characters)")


@pytest.mark.parametrize(
    "after",
    [
        {str(number): number for number in range(10 * MOST_CHANGES)},
        {str(number): "ä" * 9000 for number in range(50)},
        {"k" * 300_000: 1, "a": 1},
    ],
    ids=["many", "long", "a long name"],
)
def test_what_does_not_fit_is_counted(after: dict[str, Any]) -> None:
    found = difference({}, after)
    assert 0 < len(found.changes) <= MOST_CHANGES
    assert len(found.changes) + found.left_out == len(after)
    assert len(json.dumps(found.changes, ensure_ascii=False).encode()) < LARGEST + 10_000


def test_a_difference_of_which_nothing_fits_is_one() -> None:
    assert Difference((), left_out=1)


BODY = {"region": "us-east-1", "launchConfig": {"ImageId": "ami-1"}}


def test_a_new_pool_tells_each_field_and_each_launch_config() -> None:
    pool = a_pool(heads=(a_head("lc-b", manager={"maxCapacity": 3}), a_head("lc-a")))
    found = pool_difference(None, pool, {"lc-a": BODY, "lc-b": BODY})
    shown = {change["path"]: change["after"] for change in found.changes}
    assert all("before" not in change for change in found.changes)
    assert shown["/providerId"] == pool.provider_id
    assert shown["/owner"] == pool.owner
    assert shown["/config/launchConfigs/lc-b"] == {**BODY, "workerManager": {"maxCapacity": 3}}
    assert shown["/config/launchConfigs/lc-a"] == {**BODY, "workerManager": {}}


def test_a_launch_config_that_stays_tells_only_what_may_change_of_it() -> None:
    before = a_pool(heads=(a_head("lc-a", manager={"initialWeight": 1}), a_head("lc-b")))
    after = replace(
        before,
        heads=(a_head("lc-c"), a_head("lc-a", manager={"initialWeight": 0.5})),
        modified=NOW + timedelta(seconds=1),
        version=2,
    )
    found = pool_difference(before, after, {"lc-a": BODY, "lc-b": BODY, "lc-c": BODY})
    gone = {**BODY, "workerManager": {}}
    assert list(found.changes) == [
        {
            "path": "/config/launchConfigs/lc-a/workerManager/initialWeight",
            "before": 1,
            "after": 0.5,
        },
        {"path": "/config/launchConfigs/lc-b", "before": gone},
        {"path": "/config/launchConfigs/lc-c", "after": gone},
    ]


def test_the_order_of_launch_configs_is_no_difference() -> None:
    pool = a_pool(heads=(a_head("lc-a"), a_head("lc-b")))
    assert not pool_difference(pool, replace(pool, heads=pool.heads[::-1], version=9), {})


def test_a_worker_tells_its_state_capacity_and_end_and_that_its_secret_changed() -> None:
    before = a_worker(capacity=1, expires=NOW, identity={"staticSecretHash": "sha256$a$hash-1"})
    after = replace(
        before,
        capacity=2,
        state=State.STOPPED,
        expires=NOW + timedelta(seconds=1),
        identity={"staticSecretHash": "sha256$b$hash-2"},
    )
    assert [change["path"] for change in worker_difference(before, after).changes] == [
        "/capacity",
        "/expires",
        "/providerInfo/staticSecret",
        "/state",
    ]
    for start in (None, before):
        assert "hash-" not in json.dumps(worker_difference(start, after).changes)
    assert not worker_difference(before, replace(before, version=7, surplus=None))
