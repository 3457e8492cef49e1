"""Which providers fail: written when it changes, once a minute while it goes on, gone with it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from pynamodb.exceptions import DeleteError, UpdateError

from tests.factories import NOW
from tests.store.wire import refused
from worker_manager.store.places import PlaceStore
from worker_manager.store.provider_status import (
    LONGEST_REASON,
    REFRESH,
    UNSEEN,
    Activity,
    Failing,
    ProviderStatusStore,
)

if TYPE_CHECKING:
    from tests.store.wire import Wire
    from worker_manager.store.tables import Tables

SECOND = timedelta(seconds=1)


@pytest.fixture
def store(tables: Tables) -> ProviderStatusStore:
    return ProviderStatusStore(tables)


@pytest.fixture
def other(tables: Tables) -> ProviderStatusStore:
    """That of another container."""
    return ProviderStatusStore(tables)


def fails(
    store: ProviderStatusStore,
    now: datetime = NOW,
    activity: Activity = Activity.LIST,
    reason: str = "refused",
) -> bool:
    return store.failed("aws", activity, kind="not-authorized", reason=reason, now=now)


def test_a_provider_that_was_never_said_to_fail_does_not(store: ProviderStatusStore) -> None:
    assert store.failing("aws", NOW) == []


def test_a_failure_keeps_its_beginning_and_says_when_it_was_last_seen(
    store: ProviderStatusStore,
) -> None:
    fails(store)
    fails(store, NOW + REFRESH, reason="refused otherwise")

    assert store.failing("aws", NOW + REFRESH) == [
        Failing(Activity.LIST, NOW, NOW + REFRESH, "not-authorized", "refused otherwise")
    ]
    assert store.failing("aws-2", NOW) == []


def test_what_goes_on_is_written_once_a_minute(store: ProviderStatusStore, wire: Wire) -> None:
    written = [fails(store, NOW + n * SECOND) for n in range(121)]

    assert sum(written) == len(wire.of("UpdateItem")) - 1 == 3, "the first is written anew"
    assert [n for n, wrote in enumerate(written) if wrote] == [0, 60, 120]


def test_another_reason_is_written_at_once(store: ProviderStatusStore) -> None:
    assert fails(store)
    assert fails(store, NOW + SECOND, reason="refused otherwise")


def test_a_provider_that_works_costs_one_read_a_minute(
    store: ProviderStatusStore, wire: Wire
) -> None:
    for n in range(121):
        assert not store.recovered("aws", Activity.LIST, now=NOW + n * SECOND)

    assert [operation for operation, _ in wire.calls] == ["GetItem"] * 3


def test_a_success_ends_a_failure_at_once(store: ProviderStatusStore) -> None:
    fails(store)

    assert store.recovered("aws", Activity.LIST, now=NOW + SECOND)
    assert store.failing("aws", NOW + SECOND) == []
    assert not store.is_failing_here("aws")


def test_another_containers_success_ends_it_too(
    store: ProviderStatusStore, other: ProviderStatusStore
) -> None:
    assert not other.recovered("aws", Activity.LIST, now=NOW)
    fails(store, NOW + SECOND)

    assert not other.recovered("aws", Activity.LIST, now=NOW + 2 * SECOND)
    assert other.recovered("aws", Activity.LIST, now=NOW + REFRESH)
    assert store.failing("aws", NOW + REFRESH) == []


def test_a_success_at_one_activity_says_nothing_of_another(store: ProviderStatusStore) -> None:
    fails(store, NOW + SECOND, Activity.TERMINATE)
    fails(store, NOW, Activity.LIST)
    assert [one.activity for one in store.failing("aws", NOW + SECOND)] == ["list", "terminate"]

    store.recovered("aws", Activity.LIST, now=NOW + 2 * SECOND)

    assert [one.activity for one in store.failing("aws", NOW + SECOND)] == ["terminate"]
    assert store.is_failing_here("aws")
    assert not store.is_failing_here("aws-2")


def test_a_failure_that_is_seen_while_a_success_is_written_stays(
    store: ProviderStatusStore, other: ProviderStatusStore, wire: Wire
) -> None:
    fails(other)

    def seen_meanwhile(call: Any, operation: str, parameters: dict[str, Any]) -> Any:
        answer = call(operation, parameters)
        fails(other, NOW + REFRESH)
        return answer

    wire.inject("GetItem", seen_meanwhile)

    assert not store.recovered("aws", Activity.LIST, now=NOW + REFRESH)

    assert len(store.failing("aws", NOW + REFRESH)) == 1


@pytest.mark.parametrize("activity", Activity)
def test_what_nobody_sees_fail_any_more_has_ended(
    store: ProviderStatusStore, activity: Activity
) -> None:
    """B18: a key is repaired while nothing is wanted, so that nothing is launched or deleted."""
    fails(store, activity=activity)

    assert len(store.failing("aws", NOW + UNSEEN[activity] - SECOND)) == 1
    assert store.failing("aws", NOW + UNSEEN[activity]) == []


def test_what_fails_again_long_after_it_was_last_seen_begins_anew(
    store: ProviderStatusStore, other: ProviderStatusStore
) -> None:
    fails(store)
    month = NOW + timedelta(days=30)

    fails(other, month)
    fails(other, month + REFRESH)

    (found,) = store.failing("aws", month + REFRESH)
    assert (found.since, found.seen) == (month, month + REFRESH)


def test_a_failure_that_could_not_be_written_is_written_the_next_time(
    store: ProviderStatusStore, wire: Wire
) -> None:
    wire.inject("UpdateItem", refused("Broken"))
    with pytest.raises(UpdateError):
        fails(store)

    assert fails(store, NOW + SECOND)


def test_a_success_that_could_not_be_written_is_written_the_next_time(
    store: ProviderStatusStore, wire: Wire
) -> None:
    fails(store)
    wire.inject("DeleteItem", refused("Broken"))
    with pytest.raises(DeleteError):
        store.recovered("aws", Activity.LIST, now=NOW)

    assert store.recovered("aws", Activity.LIST, now=NOW + SECOND)


def test_a_reason_has_its_length(store: ProviderStatusStore) -> None:
    fails(store, reason="x" * 10_000)

    assert len(store.failing("aws", NOW)[0].reason) == LONGEST_REASON


def test_a_status_is_no_member_of_its_provider(store: ProviderStatusStore, tables: Tables) -> None:
    fails(store)

    assert PlaceStore(tables).of_provider("aws") == ([], {})
