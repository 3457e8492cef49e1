from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.factories import NOW
from worker_manager.core.health import (
    BUCKET,
    FAILURE_KINDS,
    Health,
    add_up,
    bucket_of,
    failure_kind,
)

health = st.builds(
    Health,
    requested=st.integers(0, 500),
    launched=st.integers(0, 500),
    registered=st.integers(0, 500),
    claimed=st.integers(0, 500),
    failed=st.dictionaries(st.sampled_from(FAILURE_KINDS), st.integers(0, 500)),
)


def test_without_failures_nothing_is_taken_from_a_weight() -> None:
    assert Health().factor == 1
    assert Health(requested=9, launched=9).factor == 1


@pytest.mark.parametrize(
    ("launched", "failed", "expected"),
    [
        (0, {"no-capacity": 1}, 1 / 2),
        (0, {"no-capacity": 3, "other": 1}, 1 / 5),
        (9, {"no-capacity": 10}, 1 / 2),
        (4, {"never-registered": 4}, 1 / 5),
        (4, {"never-registered": 2, "never-claimed": 1}, 2 / 5),
        (0, {"never-claimed": 1}, 1 / 2),
    ],
)
def test_a_weight_falls_with_the_share_of_failures(
    launched: int, failed: dict[str, int], expected: float
) -> None:
    """Report S7: the reference knew failures only, and no success."""
    assert Health(launched=launched, failed=failed).factor == pytest.approx(expected)


@given(before=health, kind=st.sampled_from(FAILURE_KINDS))
def test_one_more_failure_never_raises_a_factor(before: Health, kind: str) -> None:
    failed = dict(before.failed)
    failed[kind] = failed.get(kind, 0) + 1

    assert replace(before, failed=failed).factor <= before.factor


@given(before=health, name=st.sampled_from(["launched", "registered", "claimed"]))
def test_one_more_success_never_lowers_a_factor(before: Health, name: str) -> None:
    after = replace(before, **{name: getattr(before, name) + 1})

    assert after.factor >= before.factor


@given(some=health)
def test_a_factor_is_never_quite_nothing_and_never_more_than_all(some: Health) -> None:
    assert 0 < some.factor <= 1


@given(parts=st.lists(st.tuples(st.sampled_from(["lc-a", "lc-b"]), health), max_size=6))
def test_buckets_add_up_by_launch_config(parts: list[tuple[str, Health]]) -> None:
    sums = add_up(parts)

    for name in {name for name, _ in parts}:
        mine = [part for owner, part in parts if owner == name]
        assert sums[name].launched == sum(part.launched for part in mine)
        assert sums[name].requested == sum(part.requested for part in mine)
        assert sums[name].registered == sum(part.registered for part in mine)
        assert sums[name].claimed == sum(part.claimed for part in mine)
        assert sums[name].failures == sum(part.failures for part in mine)
    assert sums.keys() == {name for name, _ in parts}


@given(seconds=st.integers(0, 10**6))
def test_a_moment_is_in_the_bucket_that_began_last(seconds: int) -> None:
    moment = NOW + timedelta(seconds=seconds)

    begin = bucket_of(moment)

    assert begin % BUCKET.total_seconds() == 0
    assert 0 <= moment.timestamp() - begin < BUCKET.total_seconds()


def test_kinds_that_nobody_listed_count_together() -> None:
    assert failure_kind("no-capacity") == "no-capacity"
    assert failure_kind("cloud-unavailable") == "other"
