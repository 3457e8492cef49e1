"""What claims do to a worker's row in the registry, and its quarantine to them."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.registry_tables import downtimes_of
from worker_manager.core.errors import ConflictError
from worker_manager.core.moments import to_wire
from worker_manager.queue.embedded import EmbeddedQueue
from worker_manager.registry.entities import Claim, Outcomes
from worker_manager.store.queue_table import QueueTable
from worker_manager.taskcluster.credentials import Issuer

from .conftest import NOON, POOL

if TYPE_CHECKING:
    from collections.abc import Callable

MINUTE = timedelta(minutes=1)
FAR = NOON + timedelta(days=365_000)


def at_the_commit_of_a_claim(world: Any, monkeypatch: pytest.MonkeyPatch, act: Any) -> None:
    """Do something once, between the last read and the write of the next change of a task."""
    commit = world.table.replace
    pending = [act]

    def replace(*args: Any, **more: Any) -> None:
        if pending:
            pending.pop()()
        commit(*args, **more)

    monkeypatch.setattr(type(world.table), "replace", staticmethod(replace))


def test_a_call_for_work_is_a_sighting_at_all_four_levels(world: Any) -> None:
    world.claim()

    assert world.registry.provisioner("proj-x").last_seen == NOON
    assert world.registry.worker_type(POOL).last_seen == NOON
    assert [group.group for group in world.registry.groups(POOL)] == ["us-west-2"]
    worker = world.registry.worker(world.key())
    assert (worker.first_seen, worker.first_claim, worker.last_seen) == (NOON, NOON, NOON)


def test_a_renewed_claim_is_a_sighting_at_all_four_levels(world: Any) -> None:
    world.create("a")
    (claimed,) = world.claim()
    later = NOON + 3 * timedelta(hours=1)
    for _ in range(9):
        world.clock.advance(minutes=19)
        world.queue.reclaim_task(claimed["status"]["taskId"], 0)
    world.clock.advance(minutes=9)
    world.queue.reclaim_task(claimed["status"]["taskId"], 0)

    assert world.clock.now == later
    for seen in (
        world.registry.provisioner("proj-x"),
        world.registry.worker_type(POOL),
        world.registry.groups(POOL)[0],
        world.registry.worker(world.key()),
    ):
        assert later - timedelta(minutes=30) <= seen.last_seen <= later
    assert world.registry.worker(world.key()).first_claim == NOON


@pytest.mark.parametrize(
    ("end", "expected", "outcomes"),
    [
        ("report_completed", ("completed", "completed"), Outcomes(completed=1)),
        ("report_failed", ("failed", "failed"), Outcomes(failed=1)),
        ("shutdown", ("exception", "worker-shutdown"), Outcomes(exceptions=1)),
        ("cancel", ("exception", "canceled"), Outcomes(others=1)),
        ("expire", ("exception", "claim-expired"), Outcomes(exceptions=1)),
        ("gone", ("exception", "worker-shutdown"), Outcomes(exceptions=1)),
    ],
)
def test_what_a_worker_took_is_told_with_its_times_and_its_end(
    world: Any, end: str, expected: tuple[str, str], outcomes: Outcomes
) -> None:
    task_id = world.create("a")
    world.claim()
    world.clock.advance(minutes=20 if end == "expire" else 7)
    ended = world.clock.now
    reason = {"reason": "worker-shutdown"}
    acts: dict[str, Callable[[], Any]] = {
        "report_completed": lambda: world.queue.report_completed(task_id, 0),
        "report_failed": lambda: world.queue.report_failed(task_id, 0),
        "shutdown": lambda: world.queue.report_exception(task_id, 0, reason),
        "cancel": lambda: world.queue.cancel_task(task_id),
        "expire": world.counts,
        "gone": lambda: world.queue.worker_gone(POOL, "us-west-2", "i-1"),
    }
    for _ in range(2):  # a repeat counts nothing twice
        acts[end]()

    worker = world.registry.worker(world.key())
    state, why = expected
    assert worker.claims == (Claim(task_id, 0, NOON, state, why, ended),)
    assert worker.outcomes == {"2026-11-30": outcomes}


def test_a_quarantined_worker_gets_no_task_and_counts_as_seen(world: Any) -> None:
    world.create("a")
    world.quarantine(NOON + 2 * MINUTE)
    body = {"workerGroup": "us-west-2", "workerId": "i-1"}

    answer = world.queue.claim_work(POOL, body)

    assert (answer.body, answer.barred_until) == ({"tasks": []}, NOON + 2 * MINUTE)
    assert world.registry.worker(world.key()).last_seen == NOON
    assert world.counts() == (1, 0)
    world.clock.advance(minutes=2)
    assert len(world.claim()) == 1


def test_a_quarantine_never_interrupts_what_runs(world: Any) -> None:
    task_id = world.create("a")
    world.claim()
    world.quarantine(FAR)
    world.clock.advance(minutes=10)

    assert world.queue.reclaim_task(task_id, 0)["takenUntil"] == "2026-11-30T12:30:00.000Z"
    assert world.queue.report_completed(task_id, 0)["status"]["state"] == "completed"
    assert world.registry.worker(world.key()).is_quarantined(world.clock.now)


@pytest.mark.parametrize("is_known", [False, True])
def test_a_claim_in_flight_is_not_made_once_the_quarantine_is_written(
    world: Any, monkeypatch: pytest.MonkeyPatch, is_known: bool
) -> None:
    if is_known:
        world.claim()
    world.create("a")
    at_the_commit_of_a_claim(world, monkeypatch, lambda: world.quarantine(FAR))

    assert world.claim() == []
    assert world.counts() == (1, 0)
    assert len(world.claim("i-2")) == 1


def test_one_run_that_is_asked_for_is_not_claimed_once_the_quarantine_is_written(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = world.create("a")
    at_the_commit_of_a_claim(world, monkeypatch, lambda: world.quarantine(FAR))
    body = {"workerGroup": "us-west-2", "workerId": "i-1"}

    assert world.queue.claim_task(task_id, 0, body).body == {}
    assert world.counts() == (1, 0)


def test_a_claim_goes_on_when_its_worker_changed_otherwise(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.create("a")
    at_the_commit_of_a_claim(world, monkeypatch, lambda: world.quarantine(NOON - MINUTE))

    assert len(world.claim()) == 1
    assert len(world.registry.worker(world.key()).claims) == 1


def test_a_type_that_is_closed_gives_no_tasks_until_its_time(world: Any) -> None:
    task_id = world.create("a")
    downtimes = downtimes_of(world.registry)
    until = NOON + 5 * MINUTE
    downtimes.change(POOL, until, info="network down", client_id="ops/ann", now=NOON)
    body = {"workerGroup": "us-west-2", "workerId": "i-1"}

    assert world.queue.claim_work(POOL, body).barred_until == NOON + 5 * MINUTE
    assert world.queue.claim_task(task_id, 0, body).body == {}
    assert world.queue.task_queue_counts(POOL) == {
        "provisionerId": "proj-x",
        "workerType": "builders",
        "taskQueueId": POOL,
        "pendingTasks": 1,
        "claimedTasks": 0,
        "closedUntil": to_wire(until),
        "closedAt": to_wire(NOON),
        "closedBy": "ops/ann",
        "closedInfo": "network down",
    }
    world.clock.advance(minutes=5)
    assert len(world.claim()) == 1


def test_the_latest_twenty_claims_are_kept_and_all_that_run(world: Any) -> None:
    for number in range(33):
        world.create(number)
        world.clock.advance(seconds=1)
    world.claim(tasks=32)
    before = world.registry.worker(world.key()).claims
    assert len(before) == 32
    for claim in (before[0], before[-1]):
        world.queue.report_completed(*claim.run)

    claims = world.registry.worker(world.key()).claims
    assert len(claims) == 31
    assert [claim.run for claim in claims] == [claim.run for claim in before[1:]]


def test_a_call_that_is_held_gets_what_comes_meanwhile(world: Any) -> None:
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            world.create("late")

    queue = EmbeddedQueue(
        world.table,
        world.registry,
        world.clock,
        Issuer("queue/issuer", "queue-issuer-access-token"),
        hold=timedelta(seconds=1.2),
        wait=wait,
    )
    body = {"workerGroup": "us-west-2", "workerId": "i-1"}

    assert len(queue.claim_work(POOL, body).body["tasks"]) == 1
    assert waits == [0.5, 0.5]
    assert queue.claim_work(POOL, body).body == {"tasks": []}
    assert waits == [0.5, 0.5, 0.5, 0.5, pytest.approx(0.2)]


def test_a_poll_without_work_reads_a_row_and_a_list_and_writes_once_in_half_an_hour(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    client = world.table.connection.client
    call = client._make_api_call

    def counted(operation: str, arguments: Any) -> Any:
        made.append(operation)
        return call(operation, arguments)

    world.claim("i-2")
    world.claim()
    world.clock.advance(seconds=5)
    monkeypatch.setattr(client, "_make_api_call", counted)
    for _ in range(100):
        world.claim()
    assert made.count("GetItem") == 100
    assert made.count("Query") <= 101  # and once what is overdue
    assert len(made) <= 201
    made.clear()
    for _ in range(120):
        world.clock.advance(seconds=30)
        world.claim()
    rows = made.count("PutItem")
    assert rows == 2
    assert made.count("UpdateItem") <= 3 * rows


def test_who_deletes_a_worker_loses_neither_its_tasks_nor_their_ends(world: Any) -> None:
    task_id = world.create("a")
    world.claim()
    world.registry.delete_worker(world.key())

    world.queue.report_completed(task_id, 0)

    assert world.status(task_id)["state"] == "completed"
    assert world.registry.worker(world.key()) is None
    with pytest.raises(ConflictError):
        world.queue.report_failed(task_id, 0)


@pytest.mark.parametrize("failing", [1, 2, 3])
def test_tasks_claimed_before_something_failed_are_the_answer(
    world: Any, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    for number in range(3):
        world.create(number)
    replace, calls = QueueTable.replace, iter(range(1, 9))

    def throttled(*args: Any, **more: Any) -> None:
        if next(calls) == failing:
            raise OSError("throttled")
        replace(*args, **more)

    monkeypatch.setattr(QueueTable, "replace", throttled)
    if failing == 1:
        with pytest.raises(OSError, match="throttled"):
            world.claim(tasks=3)
        return
    assert len(world.claim(tasks=3)) == failing - 1
    assert world.counts() == (4 - failing, failing - 1)
