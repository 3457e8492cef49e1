"""What waits: listed, claimed one by one, and not hidden by what is over."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from worker_manager.core.errors import ConflictError, InputInvalidError, NotFoundError
from worker_manager.core.ids import derived_slugid
from worker_manager.queue import ledger
from worker_manager.store.queue_rows import Listed
from worker_manager.store.queue_table import QueueTable

POOL = "proj-x/builders"
WORKER = {"workerGroup": "us-west-2", "workerId": "i-1"}
SOON = "2026-11-30T12:30:00.000Z"


def test_what_waits_is_listed_page_by_page_as_it_is_given_out(world: Any) -> None:
    late = world.create("late")
    world.clock.advance(seconds=1)
    first = world.create("first", priority="high")
    world.create("past", priority="highest", deadline="2026-11-30T12:00:02.000Z")
    world.clock.advance(seconds=1)
    world.create("claimed", priority="highest")
    world.claim()

    found: list[Any] = []
    token = None
    while page := world.queue.list_pending_tasks(POOL, limit=1, continuation_token=token):
        found += page["tasks"]
        token = page.get("continuationToken")
        if token is None:
            break

    assert [item["taskId"] for item in found] == [first, late]
    assert found[0] == {
        "taskId": first,
        "runId": 0,
        "inserted": "2026-11-30T12:00:01.000Z",
        "task": world.queue.task(first),
    }
    assert world.queue.pending_tasks(POOL) == {
        "provisionerId": "proj-x",
        "workerType": "builders",
        "taskQueueId": POOL,
        "pendingTasks": 2,
    }


@pytest.mark.parametrize(("queue_id", "limit"), [("no-queue", 1), (POOL, 0), (POOL, 1001)])
def test_a_list_of_nonsense_is_refused(world: Any, queue_id: str, limit: int) -> None:
    with pytest.raises(InputInvalidError):
        world.queue.list_pending_tasks(queue_id, limit=limit)


def test_one_run_is_claimed_by_its_name_and_asking_again_changes_nothing(world: Any) -> None:
    world.create("first", priority="highest")
    task_id = world.create("wanted")

    claim = world.queue.claim_task(task_id, 0, WORKER).body
    world.clock.advance(minutes=1)
    again = world.queue.claim_task(task_id, 0, WORKER).body

    assert claim["status"]["taskId"] == task_id
    assert claim["task"] == world.queue.task(task_id)
    assert claim["credentials"]["clientId"].startswith(f"task-client/{task_id}/0/on/us-west-2/i-1")
    assert (again["runId"], again["takenUntil"]) == (claim["runId"], claim["takenUntil"])
    assert world.counts() == (1, 1)
    with pytest.raises(ConflictError):
        world.queue.claim_task(task_id, 0, WORKER | {"workerId": "i-2"})


def test_a_run_that_is_over_or_unknown_is_not_claimed(world: Any) -> None:
    task_id = world.create("one")
    world.claim()
    world.queue.report_exception(task_id, 0, {"reason": "worker-shutdown"})

    with pytest.raises(ConflictError):
        world.queue.claim_task(task_id, 0, WORKER)
    for name, run_id in ((task_id, 2), (derived_slugid("none"), 0)):
        with pytest.raises(NotFoundError):
            world.queue.claim_task(name, run_id, WORKER)
    assert world.queue.claim_task(task_id, 1, WORKER).body["runId"] == 1


def test_a_run_whose_claim_ran_out_unnoticed_is_over_for_its_worker_too(world: Any) -> None:
    task_id = world.create("one")
    world.claim()
    world.clock.advance(minutes=21)

    assert world.queue.claim_task(task_id, 1, WORKER).body["runId"] == 1
    claims = world.registry.worker(world.key()).claims
    assert [claim.reason for claim in claims] == ["claim-expired", None]


def test_a_quarantined_worker_claims_no_run_by_its_name(world: Any) -> None:
    task_id = world.create("one")
    until = world.clock.now + timedelta(hours=1)
    world.quarantine(until)

    claims = world.queue.claim_task(task_id, 0, WORKER)

    assert (claims.body, claims.barred_until) == ({}, until)
    assert world.counts() == (1, 0)


def test_tasks_past_their_deadline_never_hide_the_others(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "LOOKAHEAD", 2)
    monkeypatch.setattr(ledger, "PASSED_AT_ONCE", 2)
    dead = [world.create(number, priority="high", deadline=SOON) for number in range(6)]
    living = world.create("living")
    world.clock.advance(minutes=30)

    (claim,) = world.claim()

    assert claim["status"]["taskId"] == living
    left = [line.task_id for line in world.table.lines(POOL, Listed.PENDING, limit=10)]
    assert len(left) == len(dead) - 2
    assert world.counts() == (0, 1)
    for task_id in dead:
        assert world.status(task_id)["runs"][0]["reasonResolved"] == "deadline-exceeded"


def test_claims_that_ran_out_count_as_pending_however_many_they_are(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "SETTLED_AT_ONCE", 2)
    for number in range(5):
        world.create(number)
    world.create("late", deadline=SOON)
    assert len(world.claim(tasks=6)) == 6
    world.clock.advance(minutes=30)

    assert world.counts() == (5, 0)


def test_a_worker_that_polls_looks_for_overdue_claims_twice_a_minute(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Listed] = []
    lines = QueueTable.lines

    def spied(self: QueueTable, queue_id: str, listed: Listed, **more: Any) -> Any:
        asked.append(listed)
        return lines(self, queue_id, listed, **more)

    monkeypatch.setattr(QueueTable, "lines", spied)
    for _ in range(10):
        world.claim()
        world.clock.advance(seconds=7.5)

    assert asked.count(Listed.PENDING) == 10
    assert asked.count(Listed.CLAIMED) == 3


def test_of_many_queues_not_all_looks_are_remembered(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "QUEUES_KEPT", 2)
    tasks = world.queue._tasks

    for number in range(5):
        tasks.settle_overdue(f"proj-x/pool-{number}")
        assert len(tasks._settled) <= 2
