"""What is done when our own events say that a worker ended."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.events import a_bus_event
from tests.factories import NOW, a_worker
from tests.registry_tables import a_registry, quarantines_of
from worker_manager.core import events
from worker_manager.core.errors import QueueUnavailableError
from worker_manager.core.model import WorkerKey
from worker_manager.reconcile.worker_ends import EndDeps, WorkerEnd, end_workers, read_end
from worker_manager.registry.observations import Kind, Observation

if TYPE_CHECKING:
    from datetime import datetime

    from worker_manager.store.tables import Tables

FIRST = WorkerKey("proj-x/pool-1", "us-east-1", "i-1")
SECOND = WorkerKey("proj-x/pool-1", "us-east-1", "i-2")
MINUTE = timedelta(minutes=1)


class FakeQueue:
    """What is told of one worker fails."""

    def __init__(self, *, fails: WorkerKey | None = None) -> None:
        self.fails = fails
        self.resolved: list[WorkerKey] = []

    def worker_gone(self, queue_id: str, group: str, worker_id: str, *, gone: datetime) -> int:
        assert gone == NOW
        key = WorkerKey(queue_id, group, worker_id)
        if key == self.fails:
            raise QueueUnavailableError("too busy")
        self.resolved.append(key)
        return 1


class World:
    """A registry that has seen both workers, and held one."""

    def __init__(self, tables: Tables) -> None:
        self.registry = a_registry(tables)
        self.quarantines = quarantines_of(self.registry)
        self.queue = FakeQueue()
        seen = [Observation(key, Kind.IDLE, NOW - MINUTE) for key in (FIRST, SECOND)]
        self.registry.observe(seen)
        for key in (FIRST, SECOND):
            until = NOW + timedelta(days=365_000)
            self.quarantines.change(
                key, until, info="noisy", client_id="test/root", now=NOW - MINUTE
            )

    def end(self, *ends: WorkerEnd, is_ours: bool = True) -> list[str]:
        queue: Any = self.queue if is_ours else None
        deps = EndDeps(self.registry, self.quarantines, queue, frozenset({"static"}))
        return end_workers({end.key.worker_id: end for end in ends}, deps)

    def is_gone(self, key: WorkerKey) -> bool:
        worker = self.registry.worker(key)
        assert worker is not None
        return worker.gone is not None

    def is_held(self, key: WorkerKey) -> bool:
        worker = self.registry.worker(key)
        assert worker is not None
        return worker.is_quarantined(NOW)


@pytest.fixture
def world(tables: Tables) -> World:
    return World(tables)


def an_end(key: WorkerKey = FIRST, *, provider: str = "aws", is_final: bool = True) -> WorkerEnd:
    return WorkerEnd(key, NOW, provider, is_final)


@pytest.mark.parametrize(
    ("name", "is_final"), [(events.WORKER_STOPPED, True), (events.WORKER_REMOVED, False)]
)
def test_an_end_is_read_from_our_own_events(name: str, is_final: bool) -> None:
    event = events.worker_event(name, a_worker(), at=NOW, reason="gone")

    assert read_end(a_bus_event(name, event["detail"])) == an_end(is_final=is_final)


def test_claims_are_resolved_and_who_is_gone_is_held_no_longer(world: World) -> None:
    for _ in range(2):
        assert world.end(an_end()) == []

    assert world.queue.resolved == [FIRST, FIRST]
    assert (world.is_gone(FIRST), world.is_held(FIRST)) == (True, False)
    assert (world.is_gone(SECOND), world.is_held(SECOND)) == (False, True)
    assert [line.key for line in world.quarantines.listed(limit=9)[0]] == [SECOND]


@pytest.mark.parametrize("end", [an_end(is_final=False), an_end(provider="static")])
def test_who_is_only_on_its_way_or_may_come_back_stays_held(world: World, end: WorkerEnd) -> None:
    assert world.end(end) == []

    assert world.queue.resolved == [FIRST]
    assert (world.is_gone(FIRST), world.is_held(FIRST)) == (False, True)


def test_a_worker_whose_end_fails_comes_again_alone(world: World) -> None:
    world.queue.fails = FIRST

    assert world.end(an_end(), an_end(SECOND)) == ["i-1"]

    assert (world.is_gone(FIRST), world.is_gone(SECOND)) == (False, True)


def test_where_tasks_are_elsewhere_only_the_registry_hears_of_an_end(world: World) -> None:
    world.end(an_end(), is_ours=False)

    assert world.queue.resolved == []
    assert (world.is_gone(FIRST), world.is_held(FIRST)) == (True, True)
