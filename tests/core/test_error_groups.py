from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.factories import NOW, POOL_ID
from worker_manager.core.error_groups import (
    code_of,
    days_until,
    group_of,
    hours_until,
    merge,
)
from worker_manager.core.ids import derived_slugid
from worker_manager.core.model import PoolError


def an_error(name: str = "e", **overrides: Any) -> PoolError:
    values: dict[str, Any] = {
        "error_id": derived_slugid(name),
        "pool_id": POOL_ID,
        "reported": NOW,
        "kind": "no-capacity",
        "title": "t",
        "description": "d",
        "extra": {"code": "X"},
        "launch_config_id": "lc-a",
    }
    return PoolError(**(values | overrides))


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "other"},
        {"title": "T"},
        {"extra": {"code": "Y"}},
        {"launch_config_id": None},
        {"launch_config_id": "lc-b"},
    ],
)
def test_errors_that_differ_in_what_matters_are_in_different_groups(change: Any) -> None:
    assert group_of(an_error(**change)).alike.group_id != group_of(an_error()).alike.group_id


def test_errors_that_differ_in_detail_are_in_one_group() -> None:
    other = an_error("f", description="other", extra={"code": "X", "instance": "i-7"})

    assert group_of(other).alike == group_of(an_error()).alike


@pytest.mark.parametrize(
    ("extra", "code"),
    [
        ({"code": "Quota"}, "Quota"),
        ({"code": 404}, "404"),
        ({"code": "x" * 200}, "x" * 128),
        ({}, "other"),
        ({"code": ""}, "other"),
        ({"code": None}, "other"),
        ({"code": True}, "other"),
        ({"code": {"a": 1}}, "other"),
    ],
)
def test_a_code_is_a_text_or_number_or_other(extra: Any, code: str) -> None:
    assert code_of(extra) == code


def test_parts_of_a_group_add_up() -> None:
    old, new = NOW - timedelta(days=1), NOW
    parts = [
        group_of(an_error("a", reported=old)),
        group_of(an_error("b", reported=new)),
        group_of(an_error("c", reported=new - timedelta(seconds=3))),
    ]

    whole = merge(merge(parts[1], parts[0]), parts[2])

    assert (whole.first, whole.last, whole.newest) == (old, new, derived_slugid("b"))
    assert whole.count == 3
    assert sorted(whole.hours.values()) == [1, 2]
    assert whole == merge(parts[0], merge(parts[2], parts[1]))
    assert whole.alike == parts[0].alike
    assert replace(whole, hours={}).count == 0


def test_statistics_tell_of_seven_days_and_24_hours_the_last_of_them_running() -> None:
    now = datetime(2026, 3, 1, 0, 59, tzinfo=UTC)

    assert days_until(now)[0] == datetime(2026, 2, 23, tzinfo=UTC)
    assert days_until(now)[-1] == datetime(2026, 3, 1, tzinfo=UTC)
    assert len(days_until(now)) == 7
    assert hours_until(now)[0] == datetime(2026, 2, 28, 1, tzinfo=UTC)
    assert hours_until(now)[-1] == datetime(2026, 3, 1, tzinfo=UTC)
    assert len(hours_until(now)) == 24
