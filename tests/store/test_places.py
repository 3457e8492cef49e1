from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.factories import NOW, POOL_ID, REGION, a_head, a_pool
from worker_manager.core.model import Location
from worker_manager.core.sightings import Baseline
from worker_manager.store.outbox_items import outbox_item, outbox_key
from worker_manager.store.places import Place, PlaceStore
from worker_manager.store.pools import PoolChange, PoolStore

if TYPE_CHECKING:
    from tests.store.wire import Wire
    from worker_manager.store.tables import Tables

MINUTE = timedelta(minutes=1)
WEST = Location("us-west-2")


@pytest.fixture
def store(tables: Tables) -> PlaceStore:
    return PlaceStore(tables)


def save_pool(tables: Tables, pool_id: str = POOL_ID, *locations: Location) -> None:
    heads = [a_head(f"lc-{name}", location=name) for name in locations or (REGION,)]
    bodies: dict[str, Any] = {head.launch_config_id: {} for head in heads}
    change = PoolChange(after=a_pool(pool_id, heads), before=None, bodies=bodies, events=[])
    PoolStore(tables).save(change)


def test_a_place_that_nobody_wrote_of_is_empty(store: PlaceStore) -> None:
    assert store.place("aws", REGION) == Place(REGION)
    assert store.of_provider("aws") == ([], {})


def test_members_and_places_of_a_provider_come_in_one_consistent_query(
    store: PlaceStore, tables: Tables, wire: Wire
) -> None:
    save_pool(tables, "a/one", REGION)
    save_pool(tables, "a/two", REGION, WEST)
    store.postpone("aws", REGION, NOW)
    store.postpone("google", WEST, NOW)
    wire.calls.clear()

    members, places = store.of_provider("aws")

    assert {m.pool_id: m.places for m in members} == {"a/one": {REGION}, "a/two": {REGION, WEST}}
    assert places == {REGION: Place(REGION, not_before=NOW)}
    ((operation, parameters),) = wire.calls
    assert (operation, parameters["ConsistentRead"]) == ("Query", True)


def test_more_members_than_fit_into_an_answer_are_read_to_the_end(
    store: PlaceStore, tables: Tables, wire: Wire
) -> None:
    """One answer of DynamoDB ends at 1 MB."""
    long = {Location(f"{number:02d}" + "x" * 1500) for number in range(10)}
    for number in range(80):
        tables.providers("aws", f"a/p{number:02d}", previous=False, places=set(long)).save()

    members, _ = store.of_provider("aws")

    assert len(members) == 80
    assert len(wire.of("Query")) > 1


def test_a_believed_list_is_the_new_baseline_and_ends_all_doubts(store: PlaceStore) -> None:
    store.held("aws", REGION, held=2, since=NOW)
    doubted = store.place("aws", REGION)
    assert (doubted.baseline.held, doubted.stale_since) == (2, NOW)
    assert doubted.stale_reason

    store.believed("aws", doubted, began=NOW + MINUTE, machines=70)

    assert store.place("aws", REGION) == Place(
        REGION, complete=NOW + MINUTE, baseline=Baseline(machines=70)
    )


def test_what_others_add_while_a_list_is_judged_is_kept(store: PlaceStore) -> None:
    store.told_to_stop("aws", REGION, 4)
    store.found_strays("aws", REGION, 2)
    read = store.place("aws", REGION)
    store.told_to_stop("aws", REGION, 3)
    store.found_strays("aws", REGION, 1)

    store.believed("aws", read, began=NOW, machines=9, strays_held=1)

    after = store.place("aws", REGION)
    assert (after.baseline, after.strays, after.strays_held) == (
        Baseline(machines=9, told=3),
        1,
        1,
    )


def test_counts_of_one_place_add_up(store: PlaceStore) -> None:
    for _ in range(3):
        store.told_to_stop("aws", REGION, 2)
        store.found_strays("aws", REGION, 5)

    place = store.place("aws", REGION)
    assert (place.baseline.told, place.strays) == (6, 15)


def test_a_place_that_cannot_be_listed_says_since_when_and_why(store: PlaceStore) -> None:
    store.believed("aws", Place(REGION), began=NOW, machines=5)

    store.stale("aws", REGION, since=NOW + MINUTE, reason="x" * 900, not_before=NOW + 2 * MINUTE)

    place = store.place("aws", REGION)
    assert (place.stale_since, place.not_before) == (NOW + MINUTE, NOW + 2 * MINUTE)
    assert place.stale_reason == "x" * 500
    assert (place.complete, place.baseline.machines) == (NOW, 5)


def test_a_pause_is_remembered_until_another_is_asked_for(store: PlaceStore) -> None:
    store.postpone("aws", REGION, NOW)
    store.postpone("aws", REGION, NOW + MINUTE)

    assert store.place("aws", REGION) == Place(REGION, not_before=NOW + MINUTE)


def test_of_two_pauses_the_longer_one_counts(store: PlaceStore) -> None:
    store.postpone("aws", REGION, NOW + 9 * MINUTE)
    store.postpone("aws", REGION, NOW + MINUTE)
    store.stale("aws", REGION, since=NOW, reason="slow", not_before=NOW + 2 * MINUTE)
    store.stale("aws", REGION, since=NOW, reason="broken")

    place = store.place("aws", REGION)
    assert place.not_before == NOW + 9 * MINUTE
    assert (place.stale_since, place.stale_reason) == (NOW, "broken")


def test_a_list_that_does_not_come_shows_like_one_that_fails() -> None:
    patience = 10 * MINUTE
    listed = Place(REGION, complete=NOW)

    assert Place(REGION).unlisted_since(NOW, patience) is None
    assert listed.unlisted_since(NOW + patience, patience) is None
    assert listed.unlisted_since(NOW + 11 * MINUTE, patience) == NOW
    failed = Place(REGION, complete=NOW, stale_since=NOW + MINUTE)
    assert failed.unlisted_since(NOW + MINUTE, patience) == NOW + MINUTE


def test_some_places_are_read_at_once(store: PlaceStore, wire: Wire) -> None:
    store.postpone("aws", REGION, NOW)
    store.postpone("aws", WEST, NOW + MINUTE)
    wire.calls.clear()

    found = store.places("aws", [WEST, REGION, Location("eu-west-1")])

    assert sorted(place.location for place in found) == [REGION, WEST]
    assert [operation for operation, _ in wire.calls] == ["BatchGetItem"]
    assert store.places("aws", []) == []


def test_unused_places_are_noted_and_taken_out_without_losing_new_ones(
    store: PlaceStore, tables: Tables
) -> None:
    save_pool(tables, POOL_ID, REGION, WEST)
    (member,), _ = store.of_provider("aws")
    store.note_empty("aws", member, empty_since={WEST: NOW}, gone=[])
    (member,), _ = store.of_provider("aws")
    assert member.empty_since == {WEST: NOW}

    tables.providers("aws", POOL_ID).update([tables.providers.places.add({"eu-west-1"})])
    store.note_empty("aws", member, empty_since={}, gone=[WEST])

    (member,), _ = store.of_provider("aws")
    assert (set(member.places), dict(member.empty_since)) == ({REGION, "eu-west-1"}, {})


def test_nothing_is_written_where_nothing_changed(
    store: PlaceStore, tables: Tables, wire: Wire
) -> None:
    save_pool(tables)
    (member,), _ = store.of_provider("aws")
    wire.calls.clear()

    store.note_empty("aws", member, empty_since={}, gone=[])

    assert wire.calls == []


def test_events_wait_in_the_outbox_oldest_first_until_published(
    store: PlaceStore, tables: Tables
) -> None:
    def put(name: str, seconds: int) -> str:
        event = {"id": name, "detail": {"n": 1.0}}
        created = NOW + timedelta(seconds=seconds)
        outbox_item(tables.providers, [event], created).save()
        return outbox_key([event], created)

    late, early = put("late", 100), put("early", -100)

    waiting = list(store.unpublished())
    assert [(one.key, one.events[0]["id"]) for one in waiting] == [(early, "early"), (late, "late")]
    assert waiting[0].created == NOW - timedelta(seconds=100)
    store.published(early)
    store.published(early)
    assert [one.key for one in store.unpublished()] == [late]


def test_only_so_many_events_are_fetched_at_once(store: PlaceStore, tables: Tables) -> None:
    for number in range(7):
        outbox_item(tables.providers, [{"id": str(number)}], NOW).save()

    assert len(list(store.unpublished(limit=5))) == 5
