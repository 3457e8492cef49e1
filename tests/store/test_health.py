from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from tests.factories import NOW, POOL_ID
from worker_manager.core.breaker import LONGEST_REASON
from worker_manager.core.health import BUCKET, FAILURE_KINDS, WINDOW, Health, bucket_of
from worker_manager.store.health import HealthStore, counter

if TYPE_CHECKING:
    from tests.store.wire import Wire
    from worker_manager.store.tables import Tables


@pytest.fixture
def store(tables: Tables) -> HealthStore:
    return HealthStore(tables)


def test_nothing_known_is_nothing_told(store: HealthStore) -> None:
    assert store.window(POOL_ID, NOW) == {}


def test_counts_of_the_window_add_up_by_launch_config(store: HealthStore) -> None:
    store.add(POOL_ID, "lc-a", NOW - timedelta(minutes=40), requested=5, launched=3)
    store.add(POOL_ID, "lc-a", NOW - timedelta(minutes=40), failed="no-capacity", failures=2)
    store.add(POOL_ID, "lc-a", NOW, requested=1, launched=1)
    store.add(POOL_ID, "lc-a", NOW, registered=1)
    store.add(POOL_ID, "lc-a", NOW, claimed=1)
    store.add(POOL_ID, "lc-a", NOW, failed="no-capacity")
    store.add(POOL_ID, "lc-b", NOW, failed="never-claimed", reason="the agent died")
    store.add("other/pool", "lc-a", NOW, failed="lost")

    assert store.window(POOL_ID, NOW) == {
        "lc-a": Health(
            *(6, 4, 1, 1, {"no-capacity": 3}),
            launched_at=NOW,
            registered_at=NOW,
            claimed_at=NOW,
            failed_at=NOW,
            failed_kind="no-capacity",
            failed_reason="no-capacity",
        ),
        "lc-b": Health(
            failed={"never-claimed": 1},
            failed_at=NOW,
            failed_kind="never-claimed",
            failed_reason="the agent died",
        ),
    }


def test_what_was_only_accepted_is_counted_and_proves_nothing_until_it_is_made(
    store: HealthStore,
) -> None:
    store.add(POOL_ID, "lc-a", NOW, requested=2, launched=2, is_made=False)
    assert store.window(POOL_ID, NOW)["lc-a"] == Health(2, 2)

    made = NOW + timedelta(minutes=7)
    store.made(POOL_ID, "lc-a", made)

    assert store.window(POOL_ID, made)["lc-a"] == Health(2, 2, launched_at=made)


@pytest.mark.parametrize("kind", FAILURE_KINDS)
def test_each_kind_of_failure_has_a_counter_of_its_own(store: HealthStore, kind: str) -> None:
    store.add(POOL_ID, "lc-a", NOW, failed=kind)

    assert store.window(POOL_ID, NOW)["lc-a"].failed == {kind: 1}


def test_unknown_kinds_of_failure_count_together(store: HealthStore) -> None:
    store.add(POOL_ID, "lc-a", NOW, failed="surprise")
    store.add(POOL_ID, "lc-a", NOW, failed="cloud-unavailable", failures=2)

    assert store.window(POOL_ID, NOW)["lc-a"].failed == {"other": 3}


def test_every_counter_is_an_attribute_of_the_table(tables: Tables) -> None:
    assert {counter(kind) for kind in FAILURE_KINDS} <= tables.health.get_attributes().keys()


def test_buckets_beyond_the_window_are_left_out(store: HealthStore) -> None:
    begin = NOW - timedelta(seconds=NOW.timestamp() - bucket_of(NOW))
    for ago in range(15):
        store.add(POOL_ID, "lc-a", begin - ago * BUCKET, launched=1)
    store.add(POOL_ID, "lc-a", NOW - 3 * WINDOW, launched=100)

    assert store.window(POOL_ID, NOW)["lc-a"].launched in (12, 13)


def test_what_happened_just_now_is_in_the_window_at_any_time_of_a_bucket(
    store: HealthStore,
) -> None:
    store.add(POOL_ID, "lc-a", NOW, launched=1)

    for minutes in range(55):
        assert store.window(POOL_ID, NOW + timedelta(minutes=minutes))["lc-a"].launched == 1
    assert store.window(POOL_ID, NOW + WINDOW + BUCKET) == {}


def test_each_outcome_is_known_by_when_it_came_last(store: HealthStore) -> None:
    first, last = NOW - timedelta(minutes=20), NOW - timedelta(minutes=1)
    for moment in (last, first):
        store.add(POOL_ID, "lc-a", moment, requested=2, launched=1)
        store.add(POOL_ID, "lc-a", moment, failed="lost", reason=f"at {moment:%H:%M}")
    store.add(POOL_ID, "lc-a", first, claimed=1)

    found = store.window(POOL_ID, NOW)["lc-a"]

    assert (found.launched_at, found.failed_at, found.claimed_at) == (last, last, first)
    assert (found.registered_at, found.failed_reason) == (None, f"at {last:%H:%M}")


def test_what_was_forgiven_does_not_count(store: HealthStore) -> None:
    closed = NOW - timedelta(minutes=20)
    store.add(POOL_ID, "lc-a", NOW - timedelta(minutes=30), failed="lost", failures=9)
    store.add(POOL_ID, "lc-a", NOW, registered=1)
    store.add(POOL_ID, "lc-b", NOW - timedelta(minutes=30), failed="lost", failures=9)

    found = store.window(POOL_ID, NOW, since={"lc-a": closed})

    assert (found["lc-a"].failures, found["lc-a"].registered) == (0, 1)
    assert found["lc-a"].failed_at == NOW - timedelta(minutes=30)
    assert found["lc-b"].failures == 9


def test_a_reason_is_cut(store: HealthStore) -> None:
    store.add(POOL_ID, "lc-a", NOW, failed="other", reason="x" * 5000)

    assert len(store.window(POOL_ID, NOW)["lc-a"].failed_reason) == LONGEST_REASON


def test_nothing_to_add_writes_nothing(store: HealthStore, wire: Wire) -> None:
    store.add(POOL_ID, "lc-a", NOW, launched=0)
    store.add(POOL_ID, "lc-a", NOW, failed="lost", failures=0)
    store.add(POOL_ID, "lc-a", NOW, failed=None)

    assert wire.calls == []


def test_buckets_expire_after_they_have_left_the_window(store: HealthStore, tables: Tables) -> None:
    store.add(POOL_ID, "lc-a", NOW, launched=1)

    (item,) = tables.health.query(POOL_ID)
    assert item.ttl == (NOW + 2 * WINDOW).timestamp()


def test_the_window_of_a_pool_with_many_launch_configs_is_read_to_its_end(
    store: HealthStore,
) -> None:
    for number in range(300):
        store.add(POOL_ID, f"lc-{number}", NOW, launched=1)

    assert len(store.window(POOL_ID, NOW)) == 300
