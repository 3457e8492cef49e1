from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.factories import NOW, a_head, a_pool, a_worker, an_order
from worker_manager.core.activity import QueueCounts
from worker_manager.core.model import Lifecycle, canonical_json
from worker_manager.core.moments import from_wire, to_wire, whole_milliseconds
from worker_manager.core.plans import OrderState
from worker_manager.core.timing import Timing

HOUR = timedelta(hours=1)


def test_a_pool_without_settings_has_the_references_defaults_and_an_hour_to_register() -> None:
    pool = a_pool(config={})

    assert (pool.min_capacity, pool.max_capacity, pool.scaling_ratio) == (0, 0, 1.0)
    assert pool.lifecycle == Lifecycle(HOUR, timedelta(days=4), timedelta(hours=2))
    assert Lifecycle().registration_limit == HOUR


def test_a_pool_reads_its_timeouts_from_its_config() -> None:
    given_times = {
        "registrationTimeout": 1800,
        "reregistrationTimeout": 3600,
        "queueInactivityTimeout": 1200,
    }

    assert a_pool(config={"lifecycle": given_times}).lifecycle == Lifecycle(
        HOUR / 2, HOUR, timedelta(minutes=20)
    )


def test_a_timeout_of_nothing_is_no_timeout_of_the_pools_own() -> None:
    given_times = {"registrationTimeout": 0, "reregistrationTimeout": None}

    assert a_pool(config={"lifecycle": given_times}).lifecycle == Lifecycle()


@pytest.mark.parametrize(
    ("registration", "reregistration", "expected"),
    [
        (HOUR, 2 * HOUR, HOUR),
        (HOUR * 3, HOUR, HOUR),
    ],
)
def test_the_shorter_of_both_timeouts_limits_registration(
    registration: timedelta, reregistration: timedelta, expected: timedelta
) -> None:
    assert Lifecycle(registration, reregistration).registration_limit == expected


def test_a_head_without_settings_takes_part_without_limit() -> None:
    assert (a_head().initial_weight, a_head().max_capacity) == (1.0, None)
    limited = a_head(manager={"initialWeight": 0, "maxCapacity": 0})
    assert (limited.initial_weight, limited.max_capacity) == (0.0, 0)


def test_a_quarantine_ends_at_its_very_moment() -> None:
    worker = a_worker(quarantine_until=NOW)

    assert worker.is_quarantined(NOW - timedelta(milliseconds=1))
    assert not worker.is_quarantined(NOW)
    assert not a_worker().is_quarantined(NOW)


@pytest.mark.parametrize(
    ("state", "is_open"),
    [
        (OrderState.NOTED, True),
        (OrderState.SENT, True),
        (OrderState.SETTLED, False),
        (OrderState.CANCELLED, False),
    ],
)
def test_only_orders_that_may_still_bring_machines_are_open(
    state: OrderState, is_open: bool
) -> None:
    assert an_order(state=state).is_open is is_open


def test_a_queue_cannot_have_negative_counts() -> None:
    with pytest.raises(ValueError, match="negative"):
        QueueCounts(pending=-1, claimed=0)
    with pytest.raises(ValueError, match="negative"):
        QueueCounts(pending=0, claimed=-1)


def test_the_same_value_has_the_same_text() -> None:
    assert canonical_json({"b": [1, 1.0], "a": "é"}) == '{"a":"é","b":[1,1.0]}'


@given(
    st.datetimes(
        min_value=datetime(1970, 1, 1),  # noqa: DTZ001
        max_value=datetime(2200, 1, 1),  # noqa: DTZ001
        timezones=st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=30))]),
    )
)
def test_a_time_comes_back_from_the_wire_to_the_millisecond(moment: datetime) -> None:
    assert from_wire(to_wire(moment)) == whole_milliseconds(moment)
    assert to_wire(moment).endswith("Z")


@given(st.lists(st.integers(0, 10**9), min_size=2, max_size=2))
def test_times_on_the_wire_sort_as_they_follow(milliseconds: list[int]) -> None:
    first, second = (NOW + timedelta(milliseconds=n) for n in milliseconds)

    assert (to_wire(first) < to_wire(second)) == (first < second)


def test_a_time_without_a_zone_is_no_time() -> None:
    with pytest.raises(ValueError, match="zone"):
        from_wire("2026-01-02T03:04:05")


def test_staleness_follows_from_the_intervals() -> None:
    timing = Timing(tick=timedelta(seconds=5), scan=timedelta(seconds=10))

    assert timing.location_stale == timedelta(seconds=30)
