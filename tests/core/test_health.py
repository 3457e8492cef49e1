from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.factories import NOW
from worker_manager.core.health import (
    BUCKET,
    FAILURE_KINDS,
    Health,
    Waiting,
    add_up,
    bucket_of,
    failure_kind,
    lateness,
    outcome_factor,
)

if TYPE_CHECKING:
    from random import Random

MINUTE = timedelta(minutes=1)
EXACT = 1e-12
"""What arithmetic may add to a share."""

moments = st.none() | st.integers(0, 3600).map(lambda seconds: NOW - timedelta(seconds=seconds))
health = st.builds(
    Health,
    requested=st.integers(0, 500),
    launched=st.integers(0, 500),
    registered=st.integers(0, 500),
    claimed=st.integers(0, 500),
    failed=st.dictionaries(st.sampled_from(FAILURE_KINDS), st.integers(0, 500)),
    launched_at=moments,
    registered_at=moments,
    claimed_at=moments,
    failed_at=moments,
)
machines = st.lists(st.integers(0, 90), max_size=20).map(
    lambda minutes: Waiting(len(minutes), sum(lateness(age * MINUTE) for age in minutes))
)
running = st.integers(0, 50)


def factor(waiting: Waiting | None = None, running: int = 0, **outcomes: Any) -> float:
    return outcome_factor(Health(**outcomes), waiting or Waiting(), running=running)


def of_age(count: int, minutes: float) -> Waiting:
    return Waiting(count, count * lateness(minutes * MINUTE))


def test_without_failures_nothing_is_taken_from_a_weight() -> None:
    assert factor() == 1
    assert factor(requested=9, launched=9, registered=9) == 1
    assert factor(running=7) == 1


@pytest.mark.parametrize(
    ("registered", "failed", "expected"),
    [
        (9, {"no-capacity": 1}, 9 / 10),
        (1, {"no-capacity": 1}, 1 / 2),
        (1, {"no-capacity": 3, "other": 1}, 1 / 5),
        (30, {"never-registered": 10}, 3 / 4),
        (4, {"never-registered": 2, "never-claimed": 1}, 1 / 2),
        (1, {"never-claimed": 1}, 0),
    ],
)
def test_failures_take_their_share_of_the_own_outcomes(
    registered: int, failed: dict[str, int], expected: float
) -> None:
    """Scenario 2 of the discussion; report S7: the reference knew failures only."""
    assert factor(registered=registered, failed=failed) == pytest.approx(expected)


def test_what_other_launch_configs_fail_is_not_held_against_one() -> None:
    """Report S7: the reference divided by the failures of all launch configs."""
    sums = add_up(
        [(0, "lc-a", Health(registered=10)), (0, "lc-b", Health(failed={"no-capacity": 90}))]
    )

    assert outcome_factor(sums["lc-a"], Waiting()) == 1


def test_nothing_created_yet_changes_nothing() -> None:
    """Scenario 3."""
    assert factor(requested=5) == 1


@pytest.mark.parametrize(
    ("minutes", "expected"), [(0, 1), (29, 1), (30, 1), (36, 0.8), (45, 0.5), (60, 0), (90, 0)]
)
def test_machines_that_did_not_register_count_from_half_an_hour_to_an_hour(
    minutes: int, expected: float
) -> None:
    """Scenario 3: created, none registered, no errors."""
    assert factor(of_age(8, minutes), launched=8) == pytest.approx(expected)


@pytest.mark.parametrize("minutes", [0, 29, 45, 60])
def test_machines_of_which_none_registered_are_worth_nothing_once_some_failed(
    minutes: int,
) -> None:
    """Scenario 3: created, none registered, errors."""
    assert factor(of_age(8, minutes), launched=8, failed={"no-capacity": 1}) == 0


def test_old_machines_that_registered_in_time_are_not_late() -> None:
    assert factor(of_age(2, 60), registered=8) == pytest.approx(8 / 10)


def test_one_failure_in_a_calm_hour_takes_little_where_many_run() -> None:
    """Report S7: one error in the hour gave all of the next hundred to the other launch config."""
    assert factor(running=99, failed={"never-registered": 1}) == pytest.approx(0.99)


@given(before=health, kind=st.sampled_from(FAILURE_KINDS), waiting=machines, running=running)
def test_one_more_failure_never_raises_a_factor(
    before: Health, kind: str, waiting: Waiting, running: int
) -> None:
    failed = dict(before.failed)
    failed[kind] = failed.get(kind, 0) + 1
    after = outcome_factor(replace(before, failed=failed), waiting, running=running)

    assert after <= outcome_factor(before, waiting, running=running) + EXACT


@given(
    before=health,
    name=st.sampled_from(["launched", "registered", "claimed"]),
    waiting=machines,
    running=running,
)
def test_one_more_success_never_lowers_a_factor(
    before: Health, name: str, waiting: Waiting, running: int
) -> None:
    better = replace(before, **{name: getattr(before, name) + 1})
    after = outcome_factor(better, waiting, running=running)

    assert after >= outcome_factor(before, waiting, running=running) - EXACT


@given(before=health, waiting=machines, running=running)
def test_a_machine_that_gets_older_without_registering_never_raises_a_factor(
    before: Health, waiting: Waiting, running: int
) -> None:
    older = replace(waiting, late=min(float(waiting.count), waiting.late + 0.5))
    after = outcome_factor(before, older, running=running)

    assert after <= outcome_factor(before, waiting, running=running) + EXACT


@given(some=health, waiting=machines, running=running)
def test_a_factor_is_a_share(some: Health, waiting: Waiting, running: int) -> None:
    assert 0 <= outcome_factor(some, waiting, running=running) <= 1


buckets = st.lists(
    st.tuples(st.integers(0, 12), st.sampled_from(["lc-a", "lc-b"]), health), max_size=6
)


@given(parts=buckets)
def test_buckets_add_up_by_launch_config(parts: list[tuple[int, str, Health]]) -> None:
    sums = add_up(parts)

    for name in {name for _, name, _ in parts}:
        mine = [part for _, owner, part in parts if owner == name]
        assert sums[name].launched == sum(part.launched for part in mine)
        assert sums[name].requested == sum(part.requested for part in mine)
        assert sums[name].registered == sum(part.registered for part in mine)
        assert sums[name].claimed == sum(part.claimed for part in mine)
        assert sums[name].failures == sum(part.failures for part in mine)
        last = max((part.failed_at for part in mine if part.failed_at), default=None)
        assert sums[name].failed_at == last
    assert sums.keys() == {name for _, name, _ in parts}


@given(parts=buckets, shuffle=st.randoms(use_true_random=False))
def test_the_order_of_buckets_and_launch_configs_does_not_matter(
    parts: list[tuple[int, str, Health]], shuffle: Random
) -> None:
    shuffled = list(parts)
    shuffle.shuffle(shuffled)

    assert add_up(shuffled) == add_up(parts)


def test_what_was_forgiven_does_not_count_and_its_times_are_still_known() -> None:
    bucket = bucket_of(NOW)
    failed = Health(
        failed={"lost": 9}, failed_at=NOW, failed_kind="lost", failed_reason="x", launched_at=NOW
    )
    later = Health(registered=2, registered_at=NOW + BUCKET)
    parts = [(bucket, "lc-a", failed), (bucket + 300, "lc-a", later), (bucket, "lc-b", failed)]

    sums = add_up(parts, {"lc-a": NOW})

    assert (sums["lc-a"].failures, sums["lc-a"].registered) == (0, 2)
    assert (sums["lc-a"].failed_at, sums["lc-a"].failed_kind) == (NOW, "lost")
    assert sums["lc-b"] == failed


@given(seconds=st.integers(0, 10**6))
def test_a_moment_is_in_the_bucket_that_began_last(seconds: int) -> None:
    moment = NOW + timedelta(seconds=seconds)

    begin = bucket_of(moment)

    assert begin % BUCKET.total_seconds() == 0
    assert 0 <= moment.timestamp() - begin < BUCKET.total_seconds()


def test_kinds_that_nobody_listed_count_together() -> None:
    assert failure_kind("no-capacity") == "no-capacity"
    assert failure_kind("cloud-unavailable") == "other"
