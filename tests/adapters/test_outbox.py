"""What was written is told, and forgotten only once it was accepted."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.factories import NOW, POOL_ID, a_worker
from worker_manager.core.error_groups import day_of
from worker_manager.core.events import WORKER_RUNNING, WORKER_STOPPED, error_events, worker_event
from worker_manager.core.model import PoolError, State
from worker_manager.outbox import Outbox
from worker_manager.store.places import PlaceStore
from worker_manager.store.pool_errors import PoolErrorStore
from worker_manager.store.workers import WorkerStore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker_manager.core.model import Json, Worker
    from worker_manager.store.tables import Tables

DAY = timedelta(days=1)


@dataclass
class ChoosyBus:
    """Refuses the ids it is told to; ``meanwhile`` happens while it is at work."""

    refused: set[str] = field(default_factory=set)
    published: list[str] = field(default_factory=list)
    meanwhile: Any = None

    def publish(self, events: Sequence[Json]) -> set[str]:
        if self.meanwhile is not None:
            self.meanwhile()
        accepted = {event["id"] for event in events} - self.refused
        self.published += [event["id"] for event in events if event["id"] in accepted]
        return accepted


@dataclass
class Told:
    outbox: Outbox
    bus: ChoosyBus
    workers: WorkerStore
    places: PlaceStore
    errors: PoolErrorStore


@pytest.fixture
def told(tables: Tables) -> Told:
    bus = ChoosyBus()
    workers = WorkerStore(tables, kept=DAY)
    places = PlaceStore(tables)
    errors = PoolErrorStore(tables, kept=DAY)
    outbox = Outbox(bus=bus, places=places, workers=workers, errors=errors)
    return Told(outbox, bus, workers, places, errors)


def with_events(worker_id: str, *names: str, **overrides: Any) -> Worker:
    worker = a_worker(worker_id, **overrides)
    events = [
        worker_event(name, replace(worker, version=number), at=NOW, reason="a reason")
        for number, name in enumerate(names)
    ]
    return replace(worker, unsent=tuple(events))


def an_error(error_id: str = "e-1") -> PoolError:
    return PoolError(error_id, POOL_ID, NOW, "no-capacity", "No room", "none at all")


def unsent(told: Told, worker: Worker) -> list[str]:
    stored = told.workers.get(worker.key)
    assert stored is not None
    return [event["id"] for event in stored.unsent]


def test_accepted_events_are_cleared_and_refused_ones_kept(told: Told) -> None:
    fine, refused = with_events("i-1", WORKER_RUNNING), with_events("i-2", WORKER_RUNNING)
    told.bus.refused = {refused.unsent[0]["id"]}
    for worker in (fine, refused):
        assert told.workers.put_new(worker)

    told.outbox.send_workers([fine, refused, a_worker("i-3")])

    assert unsent(told, fine) == []
    assert unsent(told, refused) == [refused.unsent[0]["id"]]


def test_a_row_of_which_one_event_was_refused_keeps_them_all(told: Told) -> None:
    worker = with_events("i-1", WORKER_RUNNING, WORKER_STOPPED)
    told.bus.refused = {worker.unsent[1]["id"]}
    told.workers.put_new(worker)

    told.outbox.send_workers([worker])

    assert unsent(told, worker) == [event["id"] for event in worker.unsent]


def test_a_row_that_moved_on_meanwhile_keeps_its_own_events(told: Told) -> None:
    worker, other = with_events("i-1", WORKER_RUNNING), with_events("i-2", WORKER_RUNNING)
    later = worker_event(WORKER_STOPPED, replace(worker, version=9), at=NOW, reason="a reason")
    for row in (worker, other):
        told.workers.put_new(row)
    told.bus.meanwhile = lambda: told.workers.change(
        worker, state=State.STOPPED, unsent=(*worker.unsent, later)
    )

    told.outbox.send_workers([worker, other])

    assert unsent(told, worker) == [worker.unsent[0]["id"], later["id"]]
    assert unsent(told, other) == []


def test_a_stopped_worker_leaves_the_live_ones_with_its_last_event(told: Told) -> None:
    worker = with_events("i-1", WORKER_STOPPED, state=State.STOPPED)
    told.workers.put_new(worker)
    assert len(list(told.workers.live(POOL_ID))) == 1

    told.outbox.send_workers(told.workers.live(POOL_ID))

    assert list(told.workers.live(POOL_ID)) == []


def test_an_error_is_recorded_told_and_cleared_once(told: Told) -> None:
    told.outbox.report(an_error(), "aws")
    told.outbox.report(an_error(), "aws")

    assert [error.error_id for error in told.errors.newest_first(POOL_ID)] == ["e-1"]
    assert len(told.bus.published) == 1
    assert list(told.places.unpublished()) == []


def test_an_error_that_could_not_be_told_waits_in_the_outbox(told: Told) -> None:
    bus = told.bus
    bus.meanwhile = lambda: bus.refused.update(
        event["id"] for item in told.places.unpublished() for event in item.events
    )

    told.outbox.report(an_error(), "aws")

    (item,) = told.places.unpublished()
    assert item.created == NOW
    bus.meanwhile, bus.refused = None, set()
    assert told.outbox.send(item.key, item.events)
    assert list(told.places.unpublished()) == []


def test_an_error_written_with_its_transition_waits_until_it_is_told(told: Told) -> None:
    worker = a_worker()
    told.workers.put_new(worker)

    after = told.outbox.change_and_record(worker, an_error(), "aws", state=State.STOPPED)
    assert told.outbox.change_and_record(worker, an_error("e-2"), "aws", capacity=9) is None

    assert (
        after
        == told.workers.get(worker.key)
        == replace(worker, state=State.STOPPED, version=worker.version + 1)
    )
    assert [error.error_id for error in told.errors.newest_first(POOL_ID)] == ["e-1"]
    assert len(list(told.places.unpublished())) == 1

    told.outbox.tell(an_error(), "aws")

    assert list(told.places.unpublished()) == []
    assert told.bus.published == [event["id"] for event in error_events(an_error(), "aws")]


def test_a_row_changes_although_an_error_like_its_own_was_reported_later(told: Told) -> None:
    worker = a_worker()
    told.workers.put_new(worker)
    told.outbox.report(replace(an_error("e-2"), reported=NOW + DAY / 24), "aws")

    assert told.outbox.change_and_record(worker, an_error(), "aws", state=State.STOPPED)

    (group,) = told.errors.counts.groups(POOL_ID, [day_of(NOW)], after=None, limit=9)
    assert (group.count, group.newest) == (2, "e-2")


def test_several_events_of_one_item_are_cleared_only_together(told: Told) -> None:
    told.outbox.report(an_error(), "aws")
    events = [{"id": "x", "name": "n", "detail": {}}, {"id": "y", "name": "n", "detail": {}}]
    told.bus.refused = {"y"}

    assert not told.outbox.send("some#key", events)
    told.bus.refused = set()
    assert told.outbox.send("some#key", events)
