"""What is done when our own events say that a worker ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from tests.events import a_bus_event
from tests.factories import NOW, a_worker
from worker_manager.core import events
from worker_manager.core.errors import QueueUnavailableError
from worker_manager.core.model import WorkerKey
from worker_manager.reconcile.worker_ends import EndDeps, WorkerEnd, end_workers, read_end

if TYPE_CHECKING:
    from datetime import datetime

FIRST = WorkerKey("proj-x/pool-1", "us-east-1", "i-1")
SECOND = WorkerKey("proj-x/pool-1", "us-east-1", "i-2")


class Told:
    """Stands in for registry and queue; what is told of one worker fails."""

    def __init__(self, *, fails: WorkerKey | None = None) -> None:
        self.fails = fails
        self.gone_at: dict[WorkerKey, datetime] = {}
        self.resolved: list[WorkerKey] = []

    def gone(self, key: WorkerKey, *, at: datetime) -> None:
        self.gone_at[key] = at

    def worker_gone(self, queue_id: str, group: str, worker_id: str, *, gone: datetime) -> int:
        assert gone == NOW
        key = WorkerKey(queue_id, group, worker_id)
        if key == self.fails:
            raise QueueUnavailableError("too busy")
        self.resolved.append(key)
        return 1

    def deps(self, *, has_queue: bool = True) -> EndDeps:
        return EndDeps(cast("Any", self), cast("Any", self) if has_queue else None)


@pytest.mark.parametrize("name", [events.WORKER_STOPPED, events.WORKER_REMOVED])
def test_an_end_is_read_from_our_own_events(name: str) -> None:
    event = events.worker_event(name, a_worker(), at=NOW, reason="gone")

    end = read_end(a_bus_event(name, event["detail"]))

    assert end == WorkerEnd(FIRST, NOW)


def test_claims_are_resolved_and_the_worker_is_gone_since_its_event() -> None:
    told = Told()

    assert end_workers({"m-1": WorkerEnd(FIRST, NOW)}, told.deps()) == []

    assert told.resolved == [FIRST]
    assert told.gone_at == {FIRST: NOW}


def test_a_worker_whose_end_fails_comes_again_alone() -> None:
    told = Told(fails=FIRST)
    ends = {"m-1": WorkerEnd(FIRST, NOW), "m-2": WorkerEnd(SECOND, NOW)}

    assert end_workers(ends, told.deps()) == ["m-1"]

    assert told.gone_at == {SECOND: NOW}


def test_where_tasks_are_elsewhere_only_the_registry_hears_of_an_end() -> None:
    told = Told()

    end_workers({"m-1": WorkerEnd(FIRST, NOW)}, told.deps(has_queue=False))

    assert (told.resolved, told.gone_at) == ([], {FIRST: NOW})
