from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.factories import NOW, POOL_ID, a_head, a_pool
from tests.store.sizes import LARGEST, item_size
from tests.store.wire import half_processed
from worker_manager.core import events
from worker_manager.core.definition import assemble, compare, digest, take_apart
from worker_manager.core.errors import ConflictError, DuplicateError
from worker_manager.core.model import NULL_PROVIDER, Location, Pool
from worker_manager.core.plans import Control
from worker_manager.store.places import PlaceStore
from worker_manager.store.pools import PoolChange, PoolStore

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.store.wire import Wire
    from worker_manager.core.model import Json
    from worker_manager.store.tables import Tables

HOUR = timedelta(hours=1)
BODY = {"region": "us-east-1", "launchConfig": {"ImageId": "ami-1", "ratio": 1.0, "n": 1}}
LONGEST = "x" * 38


@pytest.fixture
def store(tables: Tables) -> PoolStore:
    return PoolStore(tables)


@pytest.fixture
def places(tables: Tables) -> PlaceStore:
    return PlaceStore(tables)


def with_bodies(bodies: Mapping[str, Json], **overrides: Any) -> Pool:
    """A pool whose launch configs have these bodies."""
    heads = [
        a_head(name, digest=digest(body), location=Location(body.get("region", "us-east-1")))
        for name, body in bodies.items()
    ]
    return a_pool(heads=heads, **overrides)


def save(
    store: PoolStore,
    bodies: Mapping[str, Json],
    *,
    before: Pool | None = None,
    told: list[Json] | None = None,
    **overrides: Any,
) -> Pool:
    if before is not None:
        overrides = {"version": before.version + 1} | overrides
    after = with_bodies(bodies, **overrides)
    store.save(PoolChange(after=after, before=before, bodies=bodies, events=told or []))
    return after


def an_event(name: str = "one") -> Json:
    return events.launch_config_event(
        events.LAUNCH_CONFIG_CREATED, POOL_ID, "aws", name, created=NOW, version=1
    )


def test_a_pool_comes_back_as_it_was_written(store: PoolStore) -> None:
    pool = save(
        store,
        {"lc-b": BODY, "lc-a": BODY},
        config={"minCapacity": 1, "maxCapacity": 9, "scalingRatio": 1.0, "odd": [1, 1.0, None]},
        description="é",
        email_on_error=True,
        previous_provider_ids=("google",),
    )

    found = store.get(POOL_ID)

    assert found == pool
    assert json.dumps(found.config) == json.dumps(pool.config)


def test_an_unknown_pool_is_none(store: PoolStore) -> None:
    assert store.get(POOL_ID) is None
    assert store.get_with_control(POOL_ID) == (None, Control(POOL_ID))
    assert store.control(POOL_ID) == Control(POOL_ID)
    assert store.body(POOL_ID, "lc-a", now=NOW) is None
    assert store.bodies(POOL_ID, [], now=NOW) == {}


def test_limits_of_a_launch_config_come_back_as_they_were_given(store: PoolStore) -> None:
    manager = {"initialWeight": 1.0, "maxCapacity": 5, "custom": {"a": [1.50]}}
    pool = a_pool(heads=[a_head(manager=manager, digest=digest(BODY))])
    store.save(PoolChange(after=pool, before=None, bodies={"lc-a": BODY}, events=[]))

    found = store.get(POOL_ID)

    assert found is not None
    assert json.dumps(found.heads[0].manager) == json.dumps(manager)


def test_numbers_of_a_body_keep_their_form(store: PoolStore) -> None:
    """DynamoDB's own numbers turn 1.0 into 1, which is another launch config."""
    save(store, {"lc-a": BODY})

    assert json.dumps(store.body(POOL_ID, "lc-a", now=NOW)) == json.dumps(BODY)


def test_a_pool_is_created_once(store: PoolStore) -> None:
    save(store, {"lc-a": BODY})

    with pytest.raises(ConflictError):
        save(store, {"lc-a": BODY}, description="another")
    found = store.get(POOL_ID)
    assert found is not None
    assert found.description == ""


def test_of_two_updates_of_one_version_the_second_is_a_conflict(store: PoolStore) -> None:
    first = save(store, {"lc-a": BODY})
    second = save(store, {"lc-a": BODY}, before=first, description="second")

    with pytest.raises(ConflictError):
        save(store, {"lc-a": BODY}, before=first, description="third")
    assert store.get(POOL_ID) == second


def test_other_content_under_an_active_id_is_refused_and_nothing_written(
    store: PoolStore, wire: Wire
) -> None:
    before = save(store, {"lc-a": BODY})
    wire.calls.clear()

    with pytest.raises(DuplicateError, match="lc-a"):
        save(store, {"lc-a": BODY | {"region": "eu-west-1"}}, before=before)
    assert wire.calls == []


def test_other_content_under_an_archived_id_is_refused(store: PoolStore) -> None:
    """The reference's rule too: an id never stands for other content while its row exists."""
    first = save(store, {"lc-a": BODY, "lc-b": BODY})
    second = save(store, {"lc-b": BODY}, before=first)

    with pytest.raises(DuplicateError, match="lc-a"):
        save(store, {"lc-a": BODY | {"region": "eu-west-1"}, "lc-b": BODY}, before=second)
    assert store.get(POOL_ID) == second
    assert store.body(POOL_ID, "lc-a", now=NOW) == BODY


def test_a_number_in_another_form_is_other_content(store: PoolStore) -> None:
    before = save(store, {"lc-a": {"n": 1}})

    with pytest.raises(DuplicateError):
        save(store, {"lc-a": {"n": 1.0}}, before=before)


def test_an_archived_launch_config_keeps_its_body_and_may_return(store: PoolStore) -> None:
    first = save(store, {"lc-a": BODY, "lc-b": BODY})
    second = save(store, {"lc-b": BODY}, before=first)
    store.expire_body(POOL_ID, "lc-a", datetime.now(UTC) + HOUR)
    assert store.body(POOL_ID, "lc-a", now=NOW) == BODY
    assert store.body_ends(POOL_ID) == {"lc-a": True, "lc-b": False}

    save(store, {"lc-a": BODY, "lc-b": BODY}, before=second)

    assert store.body_ends(POOL_ID) == {"lc-a": False, "lc-b": False}


def with_limit(
    store: PoolStore, *names: str, limit: int, before: Pool | None = None, at: datetime = NOW
) -> Pool:
    """A pool whose launch configs have this maximum since ``at``."""
    heads = [
        a_head(name, digest=digest(BODY), manager={"maxCapacity": limit}, modified=at)
        for name in names
    ]
    after = a_pool(heads=heads, version=before.version + 1 if before else 1)
    bodies = dict.fromkeys(names, BODY)
    store.save(PoolChange(after=after, before=before, bodies=bodies, events=[]))
    return after


def kept(store: PoolStore, name: str = "lc-a") -> tuple[Json, datetime | None]:
    """What is kept of an archived launch config's head."""
    found = store.bodies(POOL_ID, [name], now=NOW)[name]
    return found.manager, found.modified


def test_an_archived_launch_config_keeps_what_its_head_said(store: PoolStore) -> None:
    first = with_limit(store, "lc-a", "lc-b", limit=5, at=NOW + HOUR)
    assert kept(store) == ({}, None)

    with_limit(store, "lc-b", limit=5, before=first)

    assert kept(store) == ({"maxCapacity": 5}, NOW + HOUR)
    assert kept(store, "lc-b") == ({}, None)


def test_one_that_was_archived_twice_keeps_what_was_said_last(store: PoolStore) -> None:
    pool = with_limit(store, "lc-a", limit=5)
    pool = with_limit(store, limit=0, before=pool)
    pool = with_limit(store, "lc-a", limit=7, before=pool, at=NOW + HOUR)
    with_limit(store, limit=0, before=pool)

    assert kept(store) == ({"maxCapacity": 7}, NOW + HOUR)


def test_of_two_who_archive_the_slower_changes_nothing(store: PoolStore) -> None:
    seen = with_limit(store, "lc-a", limit=5)
    pool = with_limit(store, "lc-a", limit=7, before=seen, at=NOW + HOUR)
    with_limit(store, limit=0, before=pool)

    with pytest.raises(ConflictError):
        with_limit(store, limit=0, before=seen)

    assert kept(store) == ({"maxCapacity": 7}, NOW + HOUR)


def test_more_launch_configs_can_be_archived_than_a_transaction_takes(store: PoolStore) -> None:
    names = [f"lc-{n}" for n in range(120)]
    pool = with_limit(store, *names, limit=5)

    with_limit(store, limit=0, before=pool)

    archived = store.bodies(POOL_ID, now=NOW)
    assert {config.manager["maxCapacity"] for config in archived.values()} == {5}
    assert archived.keys() == set(names)


def test_launch_configs_that_no_cloud_launches_are_nowhere(
    store: PoolStore, places: PlaceStore
) -> None:
    head = a_head(digest=digest({}), location=Location(""))
    pool = a_pool(heads=[head], provider_id="static")
    store.save(PoolChange(after=pool, before=None, bodies={"lc-a": {}}, events=[]))
    moved = a_pool(heads=(), previous_provider_ids=("static",), version=2)
    store.save(PoolChange(after=moved, before=pool, bodies={}, events=[]))

    [member] = places.of_provider("static")[0]
    assert (member.previous, member.places) == (True, frozenset())


def test_an_expired_body_is_gone_though_its_item_lingers(store: PoolStore) -> None:
    """DynamoDB takes days to remove what expired."""
    first = save(store, {"lc-a": BODY, "lc-b": BODY})
    second = save(store, {"lc-b": BODY}, before=first)
    store.expire_body(POOL_ID, "lc-a", NOW - HOUR)
    other = BODY | {"region": "eu-west-1"}

    assert store.body(POOL_ID, "lc-a", now=NOW) is None
    save(store, {"lc-a": other, "lc-b": BODY}, before=second)
    assert store.body(POOL_ID, "lc-a", now=NOW) == other


def test_the_end_of_a_body_is_set_once(store: PoolStore, tables: Tables) -> None:
    save(store, {"lc-a": BODY})
    store.expire_body(POOL_ID, "lc-a", NOW + HOUR)
    store.expire_body(POOL_ID, "lc-a", NOW + 5 * HOUR)
    store.expire_body(POOL_ID, "lc-none", NOW)

    assert tables.pools.get(POOL_ID, "body#lc-a").ttl == (NOW + HOUR).timestamp()
    assert tables.pools.count(POOL_ID, tables.pools.sk.startswith("body#")) == 1


def test_a_change_and_its_events_are_written_together(store: PoolStore, places: PlaceStore) -> None:
    first = save(store, {"lc-a": BODY}, told=[an_event("one"), an_event("two")])

    with pytest.raises(ConflictError):
        save(store, {"lc-a": BODY}, told=[an_event("three")])
    save(store, {"lc-a": BODY}, before=first)

    assert [list(one.events) for one in places.unpublished()] == [
        [an_event("one"), an_event("two")]
    ]


def test_a_crash_between_bodies_and_commit_leaves_nothing_that_counts(
    store: PoolStore, wire: Wire
) -> None:
    def crash(*_: object) -> Any:
        raise RuntimeError("crash")

    wire.inject("TransactWriteItems", crash)
    with pytest.raises(RuntimeError):
        save(store, {"lc-a": BODY})

    assert store.get(POOL_ID) is None
    assert list(store.ids()) == []
    save(store, {"lc-a": BODY})


def test_pool_and_control_are_one_consistent_request(store: PoolStore, wire: Wire) -> None:
    pool = save(store, {"lc-a": BODY})
    wire.calls.clear()

    assert store.get_with_control(POOL_ID) == (pool, Control(POOL_ID))
    ((operation, parameters),) = wire.calls
    assert operation == "BatchGetItem"
    ((_, asked),) = parameters["RequestItems"].items()
    assert asked["ConsistentRead"] is True


def test_keys_that_a_batch_did_not_answer_are_asked_again(store: PoolStore, wire: Wire) -> None:
    bodies = {f"lc-{number:03d}": BODY | {"n": number} for number in range(150)}
    pool = save(store, bodies)
    wire.inject("BatchGetItem", half_processed, half_processed, half_processed)
    wire.calls.clear()

    found = store.bodies(POOL_ID, bodies, now=NOW)

    assert {name: config.body for name, config in found.items()} == bodies
    wire.inject("BatchGetItem", half_processed)
    assert store.get_with_control(POOL_ID) == (pool, Control(POOL_ID))


def test_bodies_tell_when_they_were_created(store: PoolStore) -> None:
    first = save(store, {"lc-a": BODY}, modified=NOW)
    save(store, {"lc-a": BODY, "lc-b": BODY}, before=first, modified=NOW + HOUR)

    created = {name: config.created for name, config in store.bodies(POOL_ID, now=NOW).items()}

    assert created == {"lc-a": NOW, "lc-b": NOW + HOUR}


def test_all_pools_are_listed_in_order_page_by_page(store: PoolStore) -> None:
    names = [f"proj/p{number:02d}" for number in range(12)]
    for name in reversed(names):
        save(store, {}, pool_id=name)

    assert list(store.ids()) == names
    assert list(store.ids(after="proj/p04", limit=3)) == ["proj/p05", "proj/p06", "proj/p07"]
    assert list(store.ids(after="proj/p11")) == []


def test_a_pool_is_a_member_of_its_provider_wherever_it_has_launch_configs(
    store: PoolStore, places: PlaceStore
) -> None:
    first = save(store, {"lc-a": BODY, "lc-b": BODY | {"region": "us-west-2"}})
    save(store, {"lc-c": BODY | {"region": "eu-west-1"}}, before=first)

    (member,), _ = places.of_provider("aws")

    assert (member.pool_id, member.previous) == (POOL_ID, False)
    assert member.places == {"us-east-1", "us-west-2", "eu-west-1"}


def test_a_pool_that_moves_stays_a_member_of_the_provider_before(
    store: PoolStore, places: PlaceStore
) -> None:
    first = save(store, {"lc-a": BODY})
    second = save(
        store,
        {"lc-b": BODY | {"region": "project-1"}},
        before=first,
        provider_id="google",
        previous_provider_ids=("aws",),
    )
    (before,), _ = places.of_provider("aws")
    (now,), _ = places.of_provider("google")
    assert (before.previous, set(before.places)) == (True, {"us-east-1"})
    assert (now.previous, set(now.places)) == (False, {"project-1"})

    store.drop_previous(second, store.control(POOL_ID), "aws")

    assert places.of_provider("aws") == ([], {})
    assert store.get(POOL_ID) == replace(second, previous_provider_ids=(), version=3)
    with pytest.raises(ConflictError):
        store.drop_previous(second, store.control(POOL_ID), "aws")


def test_a_provider_left_earlier_gets_no_places_of_a_later_one(
    store: PoolStore, places: PlaceStore
) -> None:
    first = save(store, {"lc-a": BODY})
    elsewhere = {"lc-b": BODY | {"region": "project-1"}}
    moved: dict[str, Any] = {"provider_id": "google", "previous_provider_ids": ("aws",)}
    second = save(store, elsewhere, before=first, **moved)
    save(store, elsewhere, before=second, **moved)

    (before,), _ = places.of_provider("aws")
    (now,), _ = places.of_provider("google")
    assert (set(before.places), set(now.places)) == ({"us-east-1"}, {"project-1"})


def test_a_pool_that_returns_is_no_previous_member_any_more(
    store: PoolStore, places: PlaceStore
) -> None:
    first = save(store, {"lc-a": BODY})
    second = save(store, {}, before=first, provider_id="g", previous_provider_ids=("aws",))
    save(store, {"lc-a": BODY}, before=second, previous_provider_ids=("g",))

    (member,), _ = places.of_provider("aws")

    assert not member.previous


def test_a_deleted_pool_is_a_member_of_its_last_provider_until_removed(
    store: PoolStore, places: PlaceStore
) -> None:
    first = save(store, {"lc-a": BODY})
    deleted = save(
        store, {}, before=first, provider_id=NULL_PROVIDER, previous_provider_ids=("aws",)
    )
    assert places.of_provider(NULL_PROVIDER) == ([], {})
    with pytest.raises(ConflictError):
        store.remove(first)
    assert list(store.ids()) == [POOL_ID]

    store.remove(deleted)

    assert store.get(POOL_ID) is None
    assert list(store.ids()) == []


def test_a_head_of_a_real_launch_config_takes_at_most_150_bytes(
    store: PoolStore, tables: Tables
) -> None:
    manager = {"initialWeight": 0.75, "maxCapacity": 250, "capacityPerInstance": 1}
    heads = [
        a_head(f"lc-{number:020x}", manager=manager, location=Location("ap-southeast-2"))
        for number in range(300)
    ]
    heads = [replace(head, digest=digest({"n": n})) for n, head in enumerate(heads)]
    bodies = {head.launch_config_id: {"n": n} for n, head in enumerate(heads)}
    store.save(PoolChange(after=a_pool(heads=heads), before=None, bodies=bodies, events=[]))

    stored = tables.pools.get(POOL_ID, "pool").serialize()

    assert len(stored["heads"]["S"]) / len(heads) <= 150


def large_config(first: int) -> dict[str, Any]:
    """Three hundred launch configs, 1 MB in all, as a real pool has them."""
    return {
        "minCapacity": 0,
        "maxCapacity": 1000,
        "launchConfigs": [
            {
                "region": ("us-east-1", "us-west-2", "eu-central-1")[number % 3],
                "launchConfig": {"ImageId": f"ami-{number:017x}", "ratio": 1.0},
                "workerConfig": {"text": f"{number}" + "c" * 3400},
                "workerManager": {
                    "launchConfigId": f"{LONGEST[:32]}-{number:05d}",
                    "initialWeight": 1.0,
                    "maxCapacity": 10,
                },
            }
            for number in range(first, first + 300)
        ],
    }


def test_a_pool_of_300_launch_configs_and_1_mb_is_created_read_and_replaced(
    store: PoolStore, places: PlaceStore, tables: Tables
) -> None:
    pool_id = LONGEST + "/" + LONGEST
    stored: Pool | None = None
    for first in (0, 10, 310):
        config = large_config(first)
        assert len(json.dumps(config)) > 1_000_000
        parts = take_apart(pool_id, config, now=NOW, location_of=lambda b: Location(b["region"]))
        after = a_pool(
            pool_id,
            heads=parts.heads,
            config=parts.root,
            provider_id=LONGEST,
            version=stored.version + 1 if stored else 1,
            modified=NOW + timedelta(seconds=first),
        )
        difference = compare(stored.heads if stored else (), after.heads)
        told = [
            events.launch_config_event(
                name, pool_id, LONGEST, each, created=NOW, version=after.version
            )
            for name, ids in (
                (events.LAUNCH_CONFIG_CREATED, difference.created),
                (events.LAUNCH_CONFIG_UPDATED, difference.updated),
                (events.LAUNCH_CONFIG_ARCHIVED, difference.archived),
            )
            for each in ids
        ]
        store.save(PoolChange(after=after, before=stored, bodies=parts.bodies, events=told))

        stored = store.get(pool_id)
        assert stored == after
        bodies = store.bodies(pool_id, [head.launch_config_id for head in stored.heads], now=NOW)
        read = assemble(stored.config, stored.heads, {n: c.body for n, c in bodies.items()})
        assert json.dumps(read, sort_keys=True) == json.dumps(config, sort_keys=True)

    assert len(store.bodies(pool_id, now=NOW)) == 610
    assert max(item_size(item.serialize()) for item in tables.pools.query(pool_id)) < LARGEST
    outbox = [item.serialize() for item in tables.providers.query("#outbox")]
    assert [len(one.events) for one in places.unpublished()] == [300, 310, 600]
    assert max(map(item_size, outbox)) < LARGEST


def test_a_change_of_limits_alone_writes_no_body(store: PoolStore, wire: Wire) -> None:
    before = save(store, {f"lc-{number}": BODY for number in range(20)})
    wire.calls.clear()
    limited = tuple(replace(head, manager={"maxCapacity": 3}) for head in before.heads)
    after = replace(before, heads=limited, version=2)

    store.save(PoolChange(after=after, before=before, bodies={}, events=[]))

    assert [operation for operation, _ in wire.calls] == ["TransactWriteItems"]
    assert store.get(POOL_ID) == after
