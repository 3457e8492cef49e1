from __future__ import annotations

from typing import Any

import pytest

from worker_manager.core.errors import InputInvalidError
from worker_manager.queue import lists

POOL = "proj-x/builders"


def every(world: Any, limit: int) -> list[Any]:
    """All items of the list, page by page."""
    found, token = [], None
    while True:
        page = world.queue.list_claimed_tasks(POOL, limit=limit, continuation_token=token)
        found += page["tasks"]
        token = page.get("continuationToken")
        if token is None:
            return found


def test_a_claimed_task_is_listed_as_taskcluster_lists_it(world: Any) -> None:
    task_id = world.create("one")
    world.claim("i-7")
    world.create("waiting")

    assert world.queue.list_claimed_tasks(POOL) == {
        "tasks": [
            {
                "taskId": task_id,
                "runId": 0,
                "workerGroup": "us-west-2",
                "workerId": "i-7",
                "claimed": "2026-11-30T12:00:00.000Z",
                "task": world.queue.task(task_id),
            }
        ]
    }


def test_pages_of_any_size_cover_every_claim_once(world: Any) -> None:
    ids = {world.create(number) for number in range(7)}
    world.claim(tasks=7)

    for limit in (1, 3, 7, 1000):
        listed = [item["taskId"] for item in every(world, limit)]
        assert len(listed) == 7
        assert set(listed) == ids


def test_a_page_of_large_definitions_ends_early_and_the_next_goes_on(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "PAGE_CHARACTERS", 2_500)
    ids = {world.create(number, payload={"text": "x" * 1_000}) for number in range(5)}
    world.claim(tasks=5)

    first = world.queue.list_claimed_tasks(POOL)

    assert 0 < len(first["tasks"]) < 5
    assert sorted(item["taskId"] for item in every(world, 1000)) == sorted(ids)


def test_a_claim_renewed_between_two_pages_is_not_missed(world: Any) -> None:
    world.create("one")
    world.claim("i-1")
    world.clock.advance(seconds=1)
    world.create("two")
    world.claim("i-2")
    first = world.queue.list_claimed_tasks(POOL, limit=1)
    world.clock.advance(minutes=10)
    for name in ("i-1", "i-2"):
        (item,) = [one for one in every(world, 10) if one["workerId"] == name]
        world.queue.reclaim_task(item["taskId"], 0)
    rest = world.queue.list_claimed_tasks(POOL, continuation_token=first["continuationToken"])

    assert {item["workerId"] for item in first["tasks"] + rest["tasks"]} == {"i-1", "i-2"}


def test_resolved_and_overdue_claims_are_not_listed(world: Any) -> None:
    world.create("overdue")
    world.claim()
    world.clock.advance(minutes=21)
    done = world.create("done", priority="highest")
    world.claim()
    world.queue.report_completed(done, 0)

    assert world.queue.list_claimed_tasks(POOL) == {"tasks": []}


def test_a_claim_whose_task_is_gone_is_not_listed(world: Any) -> None:
    task_id = world.create("one")
    world.claim()
    for item in list(world.table.items.query(f"task#{task_id}")):
        item.delete()

    assert world.queue.list_claimed_tasks(POOL) == {"tasks": []}


def test_claims_of_other_queues_are_not_listed(world: Any) -> None:
    world.create("one")
    world.claim()

    assert world.queue.list_claimed_tasks("proj-x/others") == {"tasks": []}


@pytest.mark.parametrize("limit", [0, 1001])
def test_a_page_size_out_of_range_is_refused(world: Any, limit: int) -> None:
    with pytest.raises(InputInvalidError):
        world.queue.list_claimed_tasks(POOL, limit=limit)


def test_a_malformed_queue_is_refused(world: Any) -> None:
    with pytest.raises(InputInvalidError):
        world.queue.list_claimed_tasks("no-queue")
