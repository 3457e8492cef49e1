"""Quarantines over the table: of anybody, with their history, their events and their end."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.registry.held_world import DAY, HOUR, KEY, NOON, POOL, World
from tests.registry_tables import a_registry, downtimes_of, quarantines_of
from worker_manager.core.errors import NotFoundError
from worker_manager.core.model import WorkerKey
from worker_manager.registry.entities import Metadata
from worker_manager.registry.windows import is_worker_listed

if TYPE_CHECKING:
    from worker_manager.store.tables import Tables


@pytest.fixture
def world(tables: Tables) -> World:
    return World(tables)


def test_a_worker_nobody_has_seen_can_be_put_aside(world: World) -> None:
    world.change(NOON + HOUR)

    worker = world.registry.worker(KEY)
    assert worker is not None
    assert worker.is_quarantined(NOON)
    assert (worker.first_seen, worker.last_seen, worker.first_claim) == (None, None, None)
    assert world.registry.worker_type(POOL) is None
    assert [line.key for line in world.quarantines.listed(limit=9)[0]] == [KEY]


def test_each_change_is_kept_with_its_reason_the_newest_first(world: World) -> None:
    world.change(NOON + HOUR, info="", client_id="a")
    world.change(NOON + DAY, info="still bad", client_id="b", now=NOON + HOUR / 2)
    world.change(NOON, info="mended", client_id="c", now=NOON + HOUR)

    history = world.quarantines.history(KEY)
    assert [(one.client_id, one.info, one.until) for one in history] == [
        ("c", "mended", NOON),
        ("b", "still bad", NOON + DAY),
        ("a", "[unspecified]", NOON + HOUR),
    ]
    assert world.quarantines.listed(limit=9)[0] == []
    assert world.names() == ["worker-quarantined", "worker-quarantined", "worker-released"]


def test_only_the_latest_hundred_changes_are_kept(world: World) -> None:
    for number in range(103):
        world.change(NOON + HOUR, info=f"{number}", now=NOON + timedelta(seconds=number))

    history = world.quarantines.history(KEY, limit=1000)
    assert [one.info for one in history] == [f"{number}" for number in range(102, 2, -1)]


def test_saying_the_same_again_changes_nothing_and_tells_nobody(world: World) -> None:
    for _ in range(3):
        world.change(NOON + HOUR)

    assert len(world.quarantines.history(KEY)) == 1
    assert len(world.told) == 1


def test_a_release_of_one_who_was_free_is_no_news(world: World) -> None:
    with pytest.raises(NotFoundError, match="rack-1/m-1 is not known"):
        world.change(NOON - HOUR)
    assert world.registry.worker(KEY) is None
    world.see()
    world.change(NOON - HOUR)

    assert world.told == []


def test_an_end_that_comes_by_itself_is_told_once_and_on_time(world: World) -> None:
    world.see()
    world.change(NOON + HOUR)
    assert world.quarantines.release_due(now=NOON + HOUR - timedelta(milliseconds=1)) == 0
    for _ in range(2):
        world.quarantines.release_due(now=NOON + HOUR)

    assert world.names() == ["worker-quarantined", "worker-released"]
    detail = world.told[-1]["detail"]
    assert detail["workerId"] == "m-1"
    assert "clientId" not in detail
    assert world.quarantines.listed(limit=9)[0] == []
    end, begin = world.quarantines.history(KEY)
    assert (end.client_id, end.info, end.at) == (
        "the end of its time",
        "its time is over",
        NOON + HOUR,
    )
    assert (begin.client_id, begin.until) == ("test/root", end.until)


def test_an_event_that_could_not_be_sent_waits_in_the_outbox(tables: Tables) -> None:
    registry = a_registry(tables)
    quarantines_of(registry).change(KEY, NOON + HOUR, info="noisy", client_id="test/root", now=NOON)

    assert len(list(tables.providers.query("#outbox"))) == 1


def test_a_worker_is_shown_while_it_is_held_and_for_a_day_after(world: World) -> None:
    world.see(now=NOON - 9 * DAY)
    world.change(NOON + 40 * DAY)

    def is_shown(now: datetime) -> bool:
        worker = world.registry.worker(KEY)
        assert worker is not None
        return is_worker_listed(worker, now, world.registry.windows, is_hardware=False)

    assert is_shown(NOON + 39 * DAY)
    released = NOON + 39 * DAY
    world.change(released, now=released)
    assert is_shown(released + DAY - HOUR)
    assert not is_shown(released + DAY)


def test_sightings_and_claims_do_not_touch_a_quarantine(world: World) -> None:
    world.change(NOON + DAY)
    world.see(now=NOON + HOUR)

    worker = world.registry.worker(KEY)
    assert worker is not None
    assert worker.is_quarantined(NOON + HOUR)
    assert worker.first_claim == NOON + HOUR
    item = world.registry.table.worker(KEY)
    assert item is not None
    assert item.kept > NOON + DAY + 14 * DAY


def test_what_nobody_speaks_of_is_purged_after_half_a_year(world: World) -> None:
    def word(days: float) -> datetime:
        return NOON + days * DAY

    world.see()
    world.see(key=WorkerKey("proj-y/plain", "g", "w"), now=word(10))
    metadata = Metadata({"type": "object"}, "# Docs", word(5), "test/root")
    world.declarations.put_metadata("proj-x/unseen", metadata)
    world.declarations.provisioner("proj-x", {"description": "ours"}, by="test/root", now=NOON)

    def left(days: float) -> tuple[list[str], list[str]]:
        world.declarations.purge(now=word(days))
        return (
            [one.queue_id for one in world.registry.worker_types()],
            [one.provisioner_id for one in world.registry.provisioners()],
        )

    everything = ["proj-x/builders", "proj-x/unseen", "proj-y/plain"]
    assert left(180) == (everything, ["proj-x", "proj-y"])
    assert left(181) == (everything[1:], ["proj-x", "proj-y"])
    assert left(186) == (everything[2:], ["proj-x", "proj-y"])
    assert world.declarations.metadata("proj-x/unseen") is None
    # A provisioner that was declared stays until somebody deletes it.
    assert left(1000) == ([], ["proj-x"])


def test_a_provisioner_is_known_for_as_long_as_a_type_of_it(world: World) -> None:
    for at in (NOON, NOON + 100 * DAY):
        world.declarations.worker_type("proj-x/soon", {"description": "x"}, by="ann", now=at)

    def left(days: float) -> bool:
        world.declarations.purge(now=NOON + days * DAY)
        return world.registry.provisioner("proj-x") is not None

    assert [left(0), left(200), left(281)] == [True, True, False]


def test_types_are_listed_in_order_across_pages_and_by_provisioner(world: World) -> None:
    for name in ("a/one", "a/two", "a-b/one", "b/one"):
        world.see(key=WorkerKey(name, "g", "w"))

    def ids(**asked: Any) -> list[str]:
        return [one.queue_id for one in world.registry.worker_types(**asked)]

    assert ids() == ["a-b/one", "a/one", "a/two", "b/one"]
    assert ids(provisioner_id="a") == ["a/one", "a/two"]
    assert ids(provisioner_id="a", after="a/one") == ["a/two"]
    assert ids(after="a-b/one", limit=2) == ["a/one", "a/two"]


def test_a_moment_finer_than_the_wire_is_one_and_the_same_when_said_again(world: World) -> None:
    until = NOON + HOUR + timedelta(microseconds=123)
    for info in ("noisy", "noisy", "still noisy"):
        world.change(until, info=info)

    assert [one.info for one in world.quarantines.history(KEY)] == ["still noisy", "noisy"]
    assert len(world.quarantines.listed(limit=9)[0]) == 1


def test_a_type_that_is_closed_is_not_purged_before_it_opens(world: World) -> None:
    closed = downtimes_of(world.registry)
    closed.change(POOL, NOON + 400 * DAY, info="", client_id="ops/ann", now=NOON)

    world.declarations.purge(now=NOON + 399 * DAY)
    assert world.registry.worker_type(POOL) is not None
    world.declarations.purge(now=NOON + 581 * DAY)
    assert world.registry.worker_type(POOL) is None
