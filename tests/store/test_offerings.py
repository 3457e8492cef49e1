from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from pynamodb.exceptions import UpdateError

from tests.factories import NOW
from tests.store.wire import half_processed, refused
from worker_manager.core.breaker import BreakerState, credentials_key, probe, recover, trip
from worker_manager.core.health import REMEMBERED
from worker_manager.store.offerings import OfferingStore
from worker_manager.store.places import PlaceStore

if TYPE_CHECKING:
    from tests.store.wire import Wire
    from worker_manager.core.breaker import Breaker
    from worker_manager.store.tables import Tables

MINUTE = timedelta(minutes=1)
SPOT = "us-east-1/us-east-1a/m5.large/spot"
ON_DEMAND = "us-east-1/us-east-1a/m5.large/on-demand"


@pytest.fixture
def store(tables: Tables) -> OfferingStore:
    return OfferingStore(tables)


def refuse(store: OfferingStore, offering: str = SPOT, *, minutes: float = 0) -> None:
    at = NOW + minutes * MINUTE
    store.failed("aws", offering, kind="no-capacity", reason="none left", at=at)


def known(store: OfferingStore, offering: str = SPOT) -> Breaker:
    found = store.get("aws", offering)
    assert found is not None
    return found


def test_what_nobody_was_refused_is_unknown(store: OfferingStore) -> None:
    assert store.get("aws", SPOT) is None
    assert store.known("aws", [SPOT, ON_DEMAND], now=NOW) == {}


def test_a_refusal_is_known_to_all_who_ask_for_the_same_there(store: OfferingStore) -> None:
    """Report B51 (skypilot PR#6248): spot, and not the same machines on demand."""
    refuse(store)

    assert known(store) == trip(None, "no-capacity", "none left", NOW)
    assert store.known("aws", [SPOT, ON_DEMAND], now=NOW) == {SPOT: known(store)}
    assert store.known("aws", [ON_DEMAND], now=NOW) == {}
    assert store.known("google", [SPOT], now=NOW) == {}


def test_the_breaker_of_the_locations_credentials_is_asked_for_too(store: OfferingStore) -> None:
    refuse(store, credentials_key("us-east-1"))

    assert store.known("aws", [SPOT], now=NOW).keys() == {credentials_key("us-east-1")}
    assert store.known("aws", [], now=NOW) == {}


def test_a_batch_that_was_answered_in_part_is_asked_again(store: OfferingStore, wire: Wire) -> None:
    names = [f"us-east-1/{n}" for n in range(120)]
    for name in names:
        refuse(store, name)
    wire.inject("BatchGetItem", half_processed)

    assert store.known("aws", names, now=NOW).keys() == set(names)


def test_a_tick_finds_them_beside_the_members_of_its_provider(
    store: OfferingStore, tables: Tables
) -> None:
    refuse(store)
    places = PlaceStore(tables)

    assert places.survey("aws", NOW).offerings == {SPOT: known(store)}
    assert places.survey("aws").offerings == {}
    assert places.of_provider("aws") == ([], {})


def test_a_second_refusal_meanwhile_changes_nothing(store: OfferingStore, wire: Wire) -> None:
    refuse(store)
    before = known(store)
    wire.calls.clear()

    refuse(store, minutes=1)

    assert known(store) == before
    assert wire.of("UpdateItem") == []


def test_of_many_that_would_probe_one_may(store: OfferingStore) -> None:
    refuse(store)
    seen, at = known(store), NOW + 2 * MINUTE

    assert store.claim("aws", SPOT, seen, at)
    assert not store.claim("aws", SPOT, seen, at)
    assert not store.claim("aws", SPOT, seen, at + MINUTE)
    assert known(store) == probe(seen, at)


def test_who_saw_it_before_another_probe_failed_may_not_probe(store: OfferingStore) -> None:
    """All of it at one time, as a clock of milliseconds may show it."""
    refuse(store)
    seen, at = known(store), NOW + 2 * MINUTE
    assert store.claim("aws", SPOT, seen, at)
    refuse(store, minutes=2)

    assert not store.claim("aws", SPOT, seen, at)
    assert (known(store).state, known(store).step) == (BreakerState.OPEN, 1)


def test_a_claim_that_nobody_followed_up_is_due_again(store: OfferingStore) -> None:
    """A crash between the claim and the note of the plan."""
    refuse(store)
    assert store.claim("aws", SPOT, known(store), NOW + 2 * MINUTE)

    lapsed = known(store)

    assert not lapsed.is_due(NOW + 6 * MINUTE)
    assert lapsed.is_due(NOW + 7 * MINUTE)
    assert store.claim("aws", SPOT, lapsed, NOW + 7 * MINUTE)


def test_a_probe_that_got_its_machine_closes_it_for_all(store: OfferingStore) -> None:
    refuse(store)
    assert store.claim("aws", SPOT, known(store), NOW + MINUTE)
    before = known(store)

    store.worked("aws", SPOT, NOW + 2 * MINUTE)
    store.worked("aws", SPOT, NOW + 3 * MINUTE)
    store.worked("aws", ON_DEMAND, NOW)

    assert known(store) == recover(before, NOW + 2 * MINUTE)
    assert store.get("aws", ON_DEMAND) is None


def test_a_closed_one_is_known_for_as_long_as_a_window_shows_what_opened_it(
    store: OfferingStore, tables: Tables
) -> None:
    """DynamoDB drops items days after their time."""
    refuse(store)
    assert store.claim("aws", SPOT, known(store), NOW)
    store.worked("aws", SPOT, NOW)
    places = PlaceStore(tables)

    for now, kept in ((NOW + REMEMBERED, {SPOT}), (NOW + REMEMBERED + MINUTE, set())):
        assert store.known("aws", [SPOT], now=now).keys() == kept
        assert places.survey("aws", now).offerings.keys() == kept


def test_one_that_closed_and_fails_again_soon_goes_on_where_it_was(store: OfferingStore) -> None:
    refuse(store)
    assert store.claim("aws", SPOT, known(store), NOW + 2 * MINUTE)
    refuse(store, minutes=2)
    assert store.claim("aws", SPOT, known(store), NOW + 6 * MINUTE)
    store.worked("aws", SPOT, NOW + 6 * MINUTE)
    assert known(store).is_closed

    refuse(store, minutes=7)

    assert known(store).step == 1


def test_what_a_tick_counted_is_kept_unless_it_changed_meanwhile(store: OfferingStore) -> None:
    refuse(store)
    seen = known(store)
    store.counted("aws", SPOT, seen, replace(seen, machines=7))
    assert known(store).machines == 7

    assert store.claim("aws", SPOT, known(store), NOW + 2 * MINUTE)
    store.counted("aws", SPOT, seen, replace(seen, machines=9))

    assert known(store) == probe(replace(seen, machines=7), NOW + 2 * MINUTE)


def test_an_item_goes_when_nothing_of_it_matters_any_more(
    store: OfferingStore, tables: Tables
) -> None:
    refuse(store)
    (open_one,) = tables.providers.query("aws")
    assert known(store).next_try is not None
    assert store.claim("aws", SPOT, known(store), NOW)
    store.worked("aws", SPOT, NOW)
    (closed_one,) = tables.providers.query("aws")

    assert open_one.ttl > (NOW + timedelta(hours=23)).timestamp()
    assert closed_one.ttl == (NOW + REMEMBERED).timestamp()


def test_other_failures_of_a_write_are_told(store: OfferingStore, wire: Wire) -> None:
    wire.inject("UpdateItem", refused("InternalServerError"))

    with pytest.raises(UpdateError):
        refuse(store)
