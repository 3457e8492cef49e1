from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.factories import NOW, POOL_ID
from worker_manager.core.events import error_events
from worker_manager.core.ids import derived_slugid
from worker_manager.core.model import PoolError
from worker_manager.store.places import PlaceStore
from worker_manager.store.pool_errors import LONGEST, PoolErrorStore, sort_key

if TYPE_CHECKING:
    from tests.store.wire import Wire
    from worker_manager.store.tables import Tables

KEPT = timedelta(days=7)


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
        "extra": {"code": "X", "ratio": 1.0},
        "launch_config_id": "lc-a",
    }
    return PoolError(**(values | overrides))


def record(store: PoolErrorStore, error: PoolError) -> str | None:
    return store.record(error, error_events(error, "aws"))


def test_an_error_comes_back_as_it_was_recorded(store: PoolErrorStore) -> None:
    record(store, an_error())

    assert list(store.newest_first(POOL_ID)) == [an_error()]


def test_an_error_is_recorded_together_with_its_event(
    store: PoolErrorStore, tables: Tables
) -> None:
    key = record(store, an_error())

    (waiting,) = PlaceStore(tables).unpublished()
    assert waiting.key == key
    assert waiting.events == error_events(an_error(), "aws")


def test_an_error_that_is_reported_again_is_recorded_and_told_once(
    store: PoolErrorStore, tables: Tables
) -> None:
    """Report B19 (#7129): hundreds of mails a day with the same text."""
    record(store, an_error())

    assert record(store, an_error(description="again")) is None
    assert list(store.newest_first(POOL_ID)) == [an_error()]
    assert len(list(PlaceStore(tables).unpublished())) == 1


def test_an_error_whose_event_was_published_is_not_told_again(
    store: PoolErrorStore, tables: Tables
) -> None:
    places = PlaceStore(tables)
    places.published(str(record(store, an_error())))

    record(store, an_error())

    assert list(places.unpublished()) == []


def test_long_texts_are_cut(store: PoolErrorStore) -> None:
    record(store, an_error(kind="k" * 500, title="t" * 500, description="é" * 50_000))

    (error,) = store.newest_first(POOL_ID)
    assert (len(error.kind), len(error.title), len(error.description)) == (128, 128, LONGEST)


def test_an_error_without_launch_config_or_extra_comes_back_alike(store: PoolErrorStore) -> None:
    error = an_error(launch_config_id=None, extra={})
    record(store, error)

    assert list(store.newest_first(POOL_ID)) == [error]


def test_errors_of_a_pool_come_newest_first_from_any_place_on(store: PoolErrorStore) -> None:
    errors = [an_error(n, reported=NOW + timedelta(seconds=n)) for n in range(6)]
    for error in errors:
        record(store, error)
    record(store, an_error(pool_id="other/pool"))

    newest = list(reversed(errors))
    assert list(store.newest_first(POOL_ID)) == newest
    assert list(store.newest_first(POOL_ID, before=sort_key(newest[2]))) == newest[3:]
    assert list(store.newest_first(POOL_ID, before=sort_key(newest[-1]))) == []


def test_more_errors_than_fit_into_an_answer_are_read_to_the_end(
    store: PoolErrorStore, tables: Tables, wire: Wire
) -> None:
    """One answer of DynamoDB ends at 1 MB."""
    for number in range(60):
        error = an_error(number, extra={"text": "x" * 20_000})
        tables.pool_errors(
            POOL_ID,
            sort_key(error),
            reported=NOW,
            kind="k",
            title="t",
            description="d",
            extra=dict(error.extra),
        ).save()
    wire.calls.clear()

    assert sum(1 for _ in store.newest_first(POOL_ID)) == 60
    assert len(wire.of("Query")) > 1


def test_errors_expire(store: PoolErrorStore, tables: Tables) -> None:
    record(store, an_error())

    assert tables.pool_errors.get(POOL_ID, sort_key(an_error())).ttl == (NOW + KEPT).timestamp()


def test_recent_errors_are_read_no_further_back_and_no_more_than_asked_for(
    store: PoolErrorStore, wire: Wire
) -> None:
    errors = [an_error(n, reported=NOW + timedelta(seconds=n)) for n in range(6)]
    for error in errors:
        record(store, error)
    wire.calls.clear()

    assert store.since(POOL_ID, NOW + timedelta(seconds=3), limit=9) == errors[:2:-1]
    assert store.since(POOL_ID, NOW, limit=2) == errors[:3:-1]
    assert store.since(POOL_ID, NOW + timedelta(minutes=1), limit=9) == []
    assert [parameters["Limit"] for _, parameters in wire.calls] == [9, 2, 9]
