from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.factories import NOW, POOL_ID
from tests.store.wire import cancelled
from worker_manager.core.error_groups import day_of, days_until, group_of
from worker_manager.core.ids import derived_slugid
from worker_manager.core.model import PoolError
from worker_manager.store.error_counts import PARTITIONS, SHARED_PARTS, part_of
from worker_manager.store.pool_errors import PoolErrorStore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.store.wire import Wire
    from worker_manager.core.error_groups import ErrorGroup
    from worker_manager.store.tables import Tables

KEPT = timedelta(days=7)
TODAY = day_of(NOW)


@pytest.fixture
def store(tables: Tables) -> PoolErrorStore:
    return PoolErrorStore(tables, kept=KEPT)


def an_error(name: object = "e", **overrides: Any) -> PoolError:
    values: dict[str, Any] = {
        "error_id": derived_slugid(name),
        "pool_id": POOL_ID,
        "reported": NOW,
        "kind": "no-capacity",
        "title": "Instance Creation Error",
        "description": "none left",
        "extra": {"code": "X"},
        "launch_config_id": "lc-a",
    }
    return PoolError(**(values | overrides))


def record(store: PoolErrorStore, *errors: PoolError) -> None:
    for error in errors:
        store.record(error, [{"id": error.error_id}])


def groups(
    store: PoolErrorStore, *, after: str | None = None, limit: int = 100
) -> list[ErrorGroup]:
    return store.counts.groups(POOL_ID, days_until(NOW), after=after, limit=limit)


def test_an_error_is_counted_with_its_recording(store: PoolErrorStore, wire: Wire) -> None:
    record(store, an_error())

    assert [name for name, _ in wire.calls] == ["TransactWriteItems"]
    assert groups(store) == [group_of(an_error())]
    assert list(store.counts.of_day(TODAY)) == [group_of(an_error())]


def test_an_error_that_is_recorded_again_is_counted_once(store: PoolErrorStore) -> None:
    record(store, an_error(), an_error())

    assert [group.count for group in groups(store)] == [1]


def test_errors_without_a_launch_config_are_counted_too(store: PoolErrorStore) -> None:
    record(store, an_error(launch_config_id=None))

    assert [group.alike.launch_config_id for group in groups(store)] == [None]


def test_a_group_knows_its_first_and_last_error_and_every_hour(store: PoolErrorStore) -> None:
    moments = [NOW - timedelta(days=6), NOW - timedelta(hours=1), NOW - timedelta(minutes=1), NOW]
    errors = [an_error(at, reported=at) for at in moments]
    record(store, *errors)

    [group] = groups(store)
    assert (group.first, group.last, group.newest) == (moments[0], NOW, errors[-1].error_id)
    assert list(group.hours.values()) == [1, 1, 2]
    asked = [(group.last, group.newest), (NOW, "gone")]
    assert store.descriptions(POOL_ID, asked) == {group.newest: "none left"}
    assert store.descriptions(POOL_ID, []) == {}


def test_a_day_has_the_errors_of_all_pools_or_of_one(store: PoolErrorStore) -> None:
    record(store, an_error(1), an_error(2, pool_id="proj-x/pool-10"), an_error(3, pool_id="a/b"))

    assert {group.pool_id for group in store.counts.of_day(TODAY)} == {
        "a/b",
        POOL_ID,
        "proj-x/pool-10",
    }
    assert [group.pool_id for group in store.counts.of_day(TODAY, POOL_ID)] == [POOL_ID]
    assert list(store.counts.of_day(TODAY - timedelta(days=1))) == []


def test_counters_are_no_errors(store: PoolErrorStore) -> None:
    record(store, an_error())

    assert list(store.newest_first(POOL_ID)) == [an_error()]


def test_many_equal_errors_are_one_item(store: PoolErrorStore) -> None:
    record(store, *(an_error(number) for number in range(30)))

    [group] = store.counts.of_day(TODAY)
    assert group.count == 30


def test_pools_that_fail_together_do_not_meet_in_one_partition(
    store: PoolErrorStore, wire: Wire
) -> None:
    pools = [f"proj-x/pool-{number}" for number in range(40)]
    record(store, *(an_error(name, pool_id=name) for name in pools))

    counted: Counter[str] = Counter()
    for write in wire.of("TransactWriteItems"):
        [update] = [item["Update"] for item in write["TransactItems"] if "Update" in item]
        counted[update["Key"]["worker_pool_id"]["S"]] += 1
    assert len(counted) == PARTITIONS
    assert {group.pool_id for group in store.counts.of_day(TODAY)} == set(pools)


def test_an_error_that_is_recorded_late_moves_nothing_back(
    store: PoolErrorStore, wire: Wire
) -> None:
    """A plan's errors have the time of the plan, and an older plan may be finished later."""
    now, late, first = (
        an_error(minutes, reported=NOW - timedelta(minutes=minutes)) for minutes in (0, 1, 2)
    )
    record(store, now, first, late)

    [group] = groups(store)
    assert (group.first, group.last, group.newest) == (first.reported, NOW, now.error_id)
    assert group.count == 3


def test_groups_come_in_pages_that_follow_each_other(store: PoolErrorStore) -> None:
    record(store, *(an_error(number, title=f"t{number % 7}") for number in range(20)))
    record(store, *(an_error(number, reported=NOW - timedelta(days=number)) for number in (1, 2)))
    seen: list[ErrorGroup] = []
    while page := groups(store, after=seen[-1].alike.group_id if seen else None, limit=3):
        seen += page
        assert len(page) <= 3

    assert seen == groups(store)
    assert sum(group.count for group in seen) == 22
    assert len(seen) == 8


def test_whoever_collides_counts_in_another_part_and_nothing_is_lost(
    store: PoolErrorStore, wire: Wire, pauses: list[float]
) -> None:
    record(store, an_error(0))
    wire.inject("TransactWriteItems", *[cancelled("TransactionConflict", "None", "None")] * 3)
    record(store, an_error(1))

    parts = list(store.counts.of_day(TODAY))
    assert [part.count for part in parts] == [1, 1]
    assert [group.count for group in groups(store)] == [2]
    assert len(pauses) == 3


def test_who_collides_again_and_again_counts_alone() -> None:
    """Recording must never fail for being counted, however many report at once."""
    errors = [an_error(number) for number in range(100)]
    parts = [{part_of(error, attempt) for error in errors} for attempt in range(6)]

    assert parts[0] == {"0"}
    assert parts[1] | parts[2] | parts[3] == {str(part) for part in range(1, SHARED_PARTS)}
    assert parts[4] == parts[5] == {error.error_id for error in errors}


def test_counters_go_by_themselves_once_no_statistic_tells_of_them(
    store: PoolErrorStore, tables: Tables, wire: Wire
) -> None:
    record(store, an_error())

    [write] = wire.of("TransactWriteItems")
    [update] = [item["Update"] for item in write["TransactItems"] if "Update" in item]
    expected = str(int((TODAY + timedelta(days=9)).timestamp()))
    assert {"N": expected} in update["ExpressionAttributeValues"].values()


HOURS_AGO = st.integers(0, 24 * 7 - 1)


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(HOURS_AGO, st.sampled_from("ab"), st.sampled_from("xy")), max_size=6))
def test_counters_say_what_counting_the_errors_would(
    tables: Tables, given_errors: Sequence[tuple[int, str, str]]
) -> None:
    store = PoolErrorStore(tables, kept=KEPT)
    pool_id = f"p/{derived_slugid(given_errors).lower()}"
    errors = [
        an_error(
            (pool_id, number),
            pool_id=pool_id,
            reported=NOW - timedelta(hours=ago),
            title=title,
            extra={"code": code},
        )
        for number, (ago, title, code) in enumerate(sorted(given_errors, reverse=True))
    ]
    record(store, *errors)

    counted = store.counts.groups(pool_id, days_until(NOW), after=None, limit=100)
    within = [error for error in errors if error.reported >= days_until(NOW)[0]]
    assert sum(group.count for group in counted) == len(within)
    for group in counted:
        alike = [error for error in within if group_of(error).alike == group.alike]
        assert group.count == len(alike)
        assert (group.first, group.last) == (alike[0].reported, alike[-1].reported)
