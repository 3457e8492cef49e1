"""Many claimers at once.  Each request is atomic, as in DynamoDB; their order is the threads'."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from moto.core.botocore_stubber import BotocoreStubber

from worker_manager.core.errors import ConflictError
from worker_manager.core.ids import derived_slugid

POOL = "proj-x/builders"
NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
TASKS, CLAIMERS = 40, 8


@pytest.fixture
def _atomic_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """moto copies the table for each transaction and puts the copy back if it fails."""
    lock, answer = threading.Lock(), BotocoreStubber.process_request

    def one_by_one(self: BotocoreStubber, request: Any) -> Any:
        with lock:
            return answer(self, request)

    monkeypatch.setattr(BotocoreStubber, "process_request", one_by_one)


@pytest.mark.usefixtures("_atomic_requests")
def test_of_many_claimers_each_task_goes_to_one_and_counts_stay_disjoint(world: Any) -> None:
    ids = {world.create(number) for number in range(TASKS)}
    done = threading.Event()
    seen: list[tuple[int, int]] = []

    def watch() -> None:
        while not done.is_set():
            seen.append(world.counts())

    def work(number: int) -> list[str]:
        mine: list[str] = []
        while claims := world.claim(f"i-{number}", tasks=1 + number % 3):
            mine += [claim["status"]["taskId"] for claim in claims]
        return mine

    watcher = threading.Thread(target=watch)
    watcher.start()
    with ThreadPoolExecutor(CLAIMERS) as pool:
        claimed = [task_id for mine in pool.map(work, range(CLAIMERS)) for task_id in mine]
    done.set()
    watcher.join()

    assert Counter(claimed) == Counter(ids)
    assert all(0 <= pending <= TASKS and 0 <= taken <= TASKS for pending, taken in seen)
    assert all(pending + taken <= TASKS for pending, taken in seen)
    assert world.counts() == (0, TASKS)


@pytest.mark.usefixtures("_atomic_requests")
def test_reports_reclaims_and_expiry_at_once_leave_each_task_in_one_place(world: Any) -> None:
    ids = [world.create(number, retries=2) for number in range(12)]
    assert len(world.claim(tasks=12)) == 12
    outcomes: Counter[str] = Counter()

    def try_all(number: int) -> None:
        calls = [
            lambda task_id: world.queue.report_completed(task_id, 0),
            lambda task_id: world.queue.report_failed(task_id, 0),
            lambda task_id: world.queue.reclaim_task(task_id, 0),
            lambda task_id: world.queue.report_exception(task_id, 0, {"reason": "worker-shutdown"}),
        ]
        for position, task_id in enumerate(ids):
            try:
                calls[(number + position) % len(calls)](task_id)
                outcomes["done"] += 1
            except ConflictError:
                outcomes["refused"] += 1

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(try_all, range(4)))

    states = Counter(world.status(task_id)["state"] for task_id in ids)
    assert outcomes["done"] >= len(ids)
    assert states["running"] == 0
    assert world.counts() == (states["pending"], 0)
    assert sum(states.values()) == len(ids)


@pytest.mark.usefixtures("_atomic_requests")
def test_of_many_equal_creations_one_task_comes(world: Any) -> None:
    task_id, body = derived_slugid("one"), world.task_body()

    with ThreadPoolExecutor(CLAIMERS) as pool:
        answers = list(pool.map(lambda _: world.queue.create_task(task_id, body), range(CLAIMERS)))

    assert all(answer == answers[0] for answer in answers)
    assert world.counts() == (1, 0)


@pytest.mark.usefixtures("_atomic_requests")
def test_once_a_quarantine_was_answered_its_worker_gets_nothing_more(world: Any) -> None:
    for number in range(TASKS):
        world.create(number)
    begun = threading.Barrier(3)

    def work() -> int:
        begun.wait()
        mine = 0
        while claims := world.claim():
            mine += len(claims)
        return mine

    def quarantine() -> int:
        begun.wait()
        world.quarantine(NOON + timedelta(hours=1))
        return len(world.table.held(POOL, "us-west-2#i-1"))

    with ThreadPoolExecutor(3) as pool:
        workers = [pool.submit(work) for _ in range(2)]
        held = pool.submit(quarantine).result()
        claimed = sum(worker.result() for worker in workers)

    assert claimed == held
    assert world.claim() == []
    assert world.registry.worker(world.key()).is_quarantined(NOON)
