from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.factories import NOW, a_head
from worker_manager.core.definition import (
    Difference,
    DuplicateLaunchConfigError,
    Parts,
    assemble,
    compare,
    digest,
    keep_modified,
    take_apart,
)
from worker_manager.core.ids import launch_config_id
from worker_manager.core.model import Json, Location

LATER = NOW + timedelta(hours=1)


def a_config(*launch_configs: Json, **overrides: Any) -> dict[str, Any]:
    return {"minCapacity": 0, "maxCapacity": 5, "launchConfigs": list(launch_configs)} | overrides


BODY = {"region": "us-east-1", "launchConfig": {"ImageId": "ami-1"}}


def a_launch_config(name: str | None = None, **overrides: Any) -> dict[str, Any]:
    manager = {"launchConfigId": name} if name else {}
    return {**BODY, "workerManager": manager, **overrides}


def apart(config: Json) -> Parts:
    return take_apart(
        "pp/ee", config, now=NOW, location_of=lambda body: Location(body.get("region", "nowhere"))
    )


def test_a_config_becomes_root_heads_and_bodies() -> None:
    parts = apart(a_config(a_launch_config("lc-x", workerManager={"launchConfigId": "lc-x"})))

    assert parts.root == {"minCapacity": 0, "maxCapacity": 5}
    assert parts.bodies == {"lc-x": {"region": "us-east-1", "launchConfig": {"ImageId": "ami-1"}}}
    (head,) = parts.heads
    assert (head.launch_config_id, head.location, head.manager) == ("lc-x", "us-east-1", {})
    assert (head.modified, head.digest) == (NOW, digest(parts.bodies["lc-x"]))


def test_an_id_that_was_not_given_is_derived_from_the_body_without_the_worker_managers_part() -> (
    None
):
    config = a_launch_config(workerManager={"maxCapacity": 3})

    (head,) = apart(a_config(config)).heads

    assert head.launch_config_id == launch_config_id("pp/ee", BODY)
    assert head.max_capacity == 3


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ({}, 1),
        ({"capacityPerInstance": 4}, 4),
        ({"workerManager": {"capacityPerInstance": 8}}, 8),
        ({"workerManager": {"capacityPerInstance": 8}, "capacityPerInstance": 4}, 8),
    ],
)
def test_capacity_is_taken_from_either_place(overrides: Json, expected: int) -> None:
    (head,) = apart(a_config(a_launch_config(**overrides))).heads

    assert head.capacity_per_instance == expected


def test_two_launch_configs_that_differ_only_in_limits_are_the_same_one() -> None:
    with pytest.raises(DuplicateLaunchConfigError) as caught:
        apart(a_config(a_launch_config(), a_launch_config(workerManager={"initialWeight": 0.5})))

    assert caught.value.launch_config_id == launch_config_id("pp/ee", BODY)


def test_a_given_id_that_occurs_twice_is_refused() -> None:
    with pytest.raises(DuplicateLaunchConfigError, match="lc-x"):
        apart(a_config(a_launch_config("lc-x"), a_launch_config("lc-x", region="us-west-2")))


def test_without_launch_configs_the_key_is_absent() -> None:
    parts = apart(a_config())

    assert assemble(parts.root, parts.heads, parts.bodies) == {"minCapacity": 0, "maxCapacity": 5}


@given(
    order=st.permutations(["lc-a", "lc-b", "lc-c", "lc-d"]),
    managers=st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "initialWeight": st.sampled_from([0, 0.5, 1]),
                "maxCapacity": st.integers(0, 9),
                "capacityPerInstance": st.integers(1, 9),
            },
        ),
        min_size=4,
        max_size=4,
    ),
    extra=st.dictionaries(
        st.text().filter(lambda key: key != "workerManager"),
        st.none() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    ),
)
def test_what_was_taken_apart_comes_back_as_it_was_in_its_order(
    order: list[str], managers: list[dict[str, Any]], extra: dict[str, Any]
) -> None:
    launch_configs = [
        {**extra, "region": "r", "name": name, "workerManager": m | {"launchConfigId": name}}
        for name, m in zip(order, managers, strict=True)
    ]
    config = a_config(*launch_configs, scalingRatio=0.5)

    parts = apart(config)

    assert json.dumps(assemble(parts.root, parts.heads, parts.bodies), sort_keys=True) == (
        json.dumps(config, sort_keys=True)
    )


def test_a_digest_tells_contents_apart_and_not_the_order_of_keys() -> None:
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    assert digest({"a": 1}) != digest({"a": 1.0})
    assert digest({"a": 1}) != digest({"a": "1"})


def test_a_change_creates_updates_and_archives() -> None:
    before = [a_head("lc-b"), a_head("lc-a"), a_head("lc-d")]
    after = [a_head("lc-c"), a_head("lc-a"), a_head("lc-b")]

    assert compare(before, after) == Difference(
        created=("lc-c",), updated=("lc-a", "lc-b"), archived=("lc-d",)
    )


def test_a_changed_limit_keeps_the_launch_config_and_its_workers() -> None:
    """Report B29 (#7918): identity does not depend on the limits, which are live."""
    before = apart(a_config(a_launch_config(workerManager={"maxCapacity": 3})))
    after = apart(a_config(a_launch_config(workerManager={"maxCapacity": 4})))

    difference = compare(before.heads, after.heads)

    assert (difference.created, difference.archived) == ((), ())
    assert [head.max_capacity for head in keep_modified(before.heads, after.heads)] == [4]


@pytest.mark.parametrize(
    ("change", "is_kept"),
    [
        ({}, True),
        ({"manager": {"maxCapacity": 2}}, False),
        ({"location": Location("eu-west-1")}, False),
        ({"digest": "other"}, False),
    ],
)
def test_only_an_unchanged_head_keeps_its_time(change: dict[str, Any], is_kept: bool) -> None:
    before = a_head(digest="one")
    after = replace(before, modified=LATER, **change)

    assert keep_modified([before], [after]) == ((before if is_kept else after),)


def test_a_new_head_has_its_own_time() -> None:
    new = a_head("lc-z", modified=LATER)

    assert keep_modified([a_head("lc-a")], [new]) == (new,)
