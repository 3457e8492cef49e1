"""A Taskcluster queue elsewhere: what the registry makes of one that fails, lags or forgets."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.registry.queue_world import BUSY, IDLE, POOL
from tests.registry_tables import quarantines_of
from worker_manager.core.activity import Activity
from worker_manager.core.errors import QueueUnavailableError
from worker_manager.core.ids import derived_slugid
from worker_manager.core.model import WorkerKey
from worker_manager.registry.backends import remote as backend
from worker_manager.registry.declarations import Declarations
from worker_manager.registry.figures import holds_task
from worker_manager.registry.observations import UNKNOWN, Kind, Observation
from worker_manager.taskcluster.queue_http import QueueHttp

if TYPE_CHECKING:
    from tests.registry.queue_world import World
    from worker_manager.core.activity import SeenWorker


def late() -> bool:
    return True


def test_what_changed_nothing_writes_nothing(remote: World, monkeypatch: Any) -> None:
    remote.create()
    remote.poll(BUSY)
    remote.poll(IDLE)
    remote.look()
    remote.clock.advance(minutes=5)
    remote.poll(IDLE)
    version = remote.known(IDLE).version, remote.known(BUSY).version

    report = remote.look()

    assert (remote.known(IDLE).version, remote.known(BUSY).version) == version
    assert report == {"queues": 1, "failed": 0, "left": 0, "workers": 2, "observed": 0, "untold": 0}


def test_a_quarantine_that_was_changed_there_is_told_here(remote: World) -> None:
    remote.poll(IDLE)
    until = remote.clock.now + timedelta(days=1)
    there = quarantines_of(remote.there)
    there.change(IDLE, until, info="", client_id="somebody", now=remote.clock.now)
    remote.look()
    assert remote.known(IDLE).quarantine_until == until

    remote.clock.advance(minutes=1)
    now = remote.clock.now
    there.change(IDLE, now, info="", client_id="somebody", now=now)
    remote.look()
    remote.look()
    assert not remote.known(IDLE).is_quarantined(now)
    history = quarantines_of(remote.here).history(IDLE)
    assert [change.client_id for change in history] == ["task-queue", "task-queue"]


def test_a_queue_that_does_not_answer_stops_no_other(remote: World) -> None:
    other = WorkerKey("proj-y/testers", "rack-1", "m-1")
    for key in (IDLE, other):
        remote.poll(key)
    remote.failing.append("/builders/workers")

    report = remote.look()

    assert (report["queues"], report["failed"]) == (1, 1)
    assert remote.here.worker(IDLE) is None
    assert remote.here.worker(other) is not None
    remote.failing[:] = ["/task-queues"]
    with pytest.raises(QueueUnavailableError):
        remote.look()


def test_a_quarantine_that_the_queue_does_not_take_is_not_recorded(remote: World) -> None:
    remote.poll(IDLE)
    remote.look()
    remote.failing.append("/workers/rack-1")

    with pytest.raises(QueueUnavailableError):
        remote.quarantine(IDLE, remote.clock.now + timedelta(days=1))
    assert remote.known(IDLE).quarantine_until is None


def test_a_lack_of_time_is_shared_by_all_queues(remote: World) -> None:
    for number in range(4):
        remote.poll(WorkerKey(f"proj-{number}/builders", "g", "w"))
    assert remote.backend.refresh(late) == {
        "queues": 0,
        "failed": 0,
        "left": 4,
        "workers": 0,
        "observed": 0,
        "untold": 0,
    }
    firsts = set()
    for _ in range(4):
        remote.asked.clear()
        remote.look()
        firsts.add(next(path for path in remote.asked if path.endswith("/workers")))
        remote.clock.advance(minutes=5)
    assert len(firsts) > 1


def test_a_quarantine_that_is_put_during_a_look_is_not_taken_for_lifted(remote: World) -> None:
    remote.poll(IDLE)
    remote.look()
    listed = remote.backend._queue.claims
    until = remote.clock.now + timedelta(days=1)

    def quarantined_meanwhile(queue_id: str) -> Any:
        remote.quarantine(IDLE, until)
        return listed(queue_id)

    remote.backend._queue.claims = quarantined_meanwhile
    remote.look()

    assert remote.known(IDLE).quarantine_until == until
    assert len(quarantines_of(remote.here).history(IDLE)) == 1


@pytest.mark.parametrize("is_declared", [True, False])
def test_a_quarantine_of_an_unknown_worker_is_told_again_if_it_could_not_be(
    remote: World, is_declared: bool
) -> None:
    remote.quarantine(IDLE, remote.clock.now + timedelta(days=9))
    if is_declared:
        Declarations(remote.here).worker(IDLE, {"capacity": 1}, now=remote.clock.now)
    remote.poll(IDLE)
    remote.failing.append("/workers/rack-1")
    assert remote.look()["failed"] == 1
    remote.failing.clear()
    remote.look()
    remote.create()

    assert remote.known(IDLE).is_quarantined(remote.clock.now)
    assert remote.poll(IDLE) == []


def test_a_queue_that_tells_nonsense_stops_no_other(
    remote: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = WorkerKey("proj-y/testers", "rack-1", "m-1")
    for key in (IDLE, other):
        remote.poll(key)
    listed = remote.backend._queue.workers

    def timeless(queue_id: str) -> list[SeenWorker]:
        found: list[SeenWorker] = listed(queue_id)
        naive = Activity(quarantine_until=datetime(2026, 12, 30))  # noqa: DTZ001
        return [replace(seen, activity=naive) if queue_id == POOL else seen for seen in found]

    monkeypatch.setattr(remote.backend._queue, "workers", timeless)

    report = remote.look()

    assert (report["queues"], report["failed"]) == (1, 1)
    assert remote.here.worker(other) is not None


def over(remote: World, count: int) -> list[tuple[str, int]]:
    """Runs that were claimed at a look, and have failed since."""
    runs = []
    for number in range(count):
        remote.create()
        runs += remote.poll(replace(BUSY, worker_id=f"m-{number}"))
    remote.look()
    for run in runs:
        remote.end(BUSY, run, "failed")
    return runs


def ends(remote: World) -> list[str | None]:
    workers, _ = remote.here.workers(POOL, limit=100)
    return [claim.state for worker in workers for claim in worker.claims]


@pytest.mark.parametrize("has_forgotten_all", [True, False])
def test_a_run_that_the_queue_has_forgotten_is_over_and_nobodys_fault(
    remote: World, has_forgotten_all: bool
) -> None:
    task_id = remote.create() if not has_forgotten_all else derived_slugid("forgotten", 1)
    taken = remote.clock.now
    remote.here.observe([Observation(BUSY, Kind.CLAIM, taken, task_id=task_id, run_id=7)])
    remote.poll(IDLE)  # so that the task queue is listed
    remote.clock.advance(minutes=5)

    assert remote.look()["untold"] == 0
    after = remote.known(BUSY)
    (claim,) = after.claims
    assert (claim.state, claim.claimed, claim.resolved) == (UNKNOWN, taken, None)
    assert (after.outcomes, after.last_seen) == ({}, taken)
    assert not holds_task(after)

    remote.asked.clear()
    remote.look()
    assert not [path for path in remote.asked if path.endswith("/status")]
    assert remote.known(BUSY).version == after.version


def test_where_time_is_short_ends_are_asked_for_at_later_looks(remote: World) -> None:
    over(remote, 6)

    def after_two() -> bool:
        return sum(path.endswith("/status") for path in remote.asked) == 2

    for told in (2, 4, 6):
        remote.asked.clear()
        remote.clock.advance(minutes=5)
        assert remote.backend.refresh(after_two)["untold"] == 6 - told
        assert ends(remote).count("failed") == told


def test_a_run_of_which_the_queue_does_not_tell_keeps_no_other_back(
    remote: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend, "ENDS_ASKED", 1)
    untold, *others = over(remote, 3)
    remote.failing.append(untold[0])
    looks = 0
    while ends(remote).count("failed") < len(others):
        looks += 1
        assert looks < 10
        remote.clock.advance(minutes=5)
        assert remote.look()["failed"] == 0


def test_an_end_that_is_none_is_not_taken_for_one(
    remote: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run,) = over(remote, 1)
    told = {"runId": 0, "state": "half-done", "resolved": "2026-11-30T12:00:00.000Z"}
    status = {"status": {"runs": [told]}}
    monkeypatch.setattr(QueueHttp, "get", lambda *_: status)

    with pytest.raises(QueueUnavailableError, match="half-done"):
        remote.backend.outcome(BUSY, *run)
