from __future__ import annotations

from typing import Any

import pytest

from worker_manager.core.errors import InputInvalidError, NotFoundError
from worker_manager.queue.requests import QuarantineWorker, parse

POOL = "proj-x/builders"
PARTS = ("proj-x", "builders")
WORKER = (*PARTS, "us-west-2", "i-1")


def quarantine(world: Any, until: str, info: str = "broken disk") -> Any:
    body = {"quarantineUntil": until, "quarantineInfo": info}
    return world.queue.quarantine_worker(*WORKER, body, client_id="sheriff")


def test_a_worker_is_known_from_its_first_call_even_without_work(world: Any) -> None:
    world.claim()

    assert world.queue.list_workers(*PARTS) == {
        "workers": [
            {
                "workerGroup": "us-west-2",
                "workerId": "i-1",
                "firstClaim": "2026-11-30T12:00:00.000Z",
                "lastDateActive": "2026-11-30T12:00:00.000Z",
            }
        ]
    }


def test_a_list_shows_the_latest_task(world: Any) -> None:
    world.create("one")
    world.clock.advance(seconds=1)
    second = world.create("two")
    world.claim()
    world.claim()

    (worker,) = world.queue.list_workers(*PARTS)["workers"]

    assert worker["latestTask"] == {"taskId": second, "runId": 0}


def test_activity_is_written_at_most_once_an_interval(world: Any) -> None:
    world.claim()
    world.clock.advance(seconds=59)
    world.claim()
    early = world.queue.get_worker(*WORKER)
    world.clock.advance(seconds=1)
    world.claim()
    late = world.queue.get_worker(*WORKER)

    assert early["lastDateActive"] == "2026-11-30T12:00:00.000Z"
    assert late["lastDateActive"] == "2026-11-30T12:01:00.000Z"
    assert late["firstClaim"] == "2026-11-30T12:00:00.000Z"
    assert late["expires"] == "2026-12-01T12:01:00.000Z"


def test_renewing_a_claim_counts_as_activity(world: Any) -> None:
    task_id = world.create("one")
    world.claim()
    world.clock.advance(minutes=10)
    world.queue.reclaim_task(task_id, 0)

    assert world.queue.get_worker(*WORKER)["lastDateActive"] == "2026-11-30T12:10:00.000Z"


def test_a_worker_has_its_twenty_latest_tasks_oldest_first(world: Any) -> None:
    ids = []
    for number in range(22):
        ids.append(world.create(number))
        world.clock.advance(seconds=1)
        world.claim()

    recent = world.queue.get_worker(*WORKER)["recentTasks"]

    assert recent == [{"taskId": task_id, "runId": 0} for task_id in ids[2:]]


def test_a_silent_worker_is_forgotten_after_a_day(world: Any) -> None:
    world.claim()
    world.clock.advance(days=1, seconds=1)

    assert world.queue.list_workers(*PARTS) == {"workers": []}
    with pytest.raises(NotFoundError):
        world.queue.get_worker(*WORKER)


def test_a_quarantined_worker_gets_no_work_but_is_seen_and_finishes_what_it_has(
    world: Any,
) -> None:
    task_id = world.create("one")
    world.claim()
    quarantine(world, "2026-12-30T00:00:00.000Z")
    world.create("two")
    world.clock.advance(minutes=10)

    assert world.claim() == []
    assert world.queue.get_worker(*WORKER)["lastDateActive"] == "2026-11-30T12:10:00.000Z"
    assert world.queue.reclaim_task(task_id, 0)["runId"] == 0
    assert world.queue.report_completed(task_id, 0)["status"]["state"] == "completed"


def test_a_quarantined_worker_is_never_forgotten(world: Any) -> None:
    world.claim()
    quarantine(world, "3026-11-30T00:00:00.000Z")
    world.clock.advance(days=400)

    (worker,) = world.queue.list_workers(*PARTS)["workers"]

    assert worker["quarantineUntil"] == "3026-11-30T00:00:00.000Z"
    stored = world.table.items.get(f"{POOL}#workers", "us-west-2#i-1")
    assert stored.ttl > world.clock.now.timestamp()


def test_a_quarantine_ends_by_itself_and_is_then_not_listed(world: Any) -> None:
    world.create("one")
    world.claim("i-2")
    world.create("two")
    world.claim()
    quarantine(world, "2026-11-30T13:00:00.000Z")
    world.create("three")
    world.clock.advance(hours=1)

    (first, _) = world.queue.list_workers(*PARTS)["workers"]

    assert "quarantineUntil" not in first
    assert len(world.claim()) == 1


def test_lifting_a_quarantine_is_a_quarantine_until_the_past(world: Any) -> None:
    world.claim()
    quarantine(world, "3026-11-30T00:00:00.000Z")
    quarantine(world, "2026-11-30T00:00:00.000Z")
    world.create("one")

    assert len(world.claim()) == 1


def test_lists_can_be_of_quarantined_or_of_other_workers_only(world: Any) -> None:
    world.claim("i-1")
    world.claim("i-2")
    quarantine(world, "2026-12-30T00:00:00.000Z")

    def ids(quarantined: bool | None) -> list[str]:
        page = world.queue.list_workers(*PARTS, quarantined=quarantined)
        return [worker["workerId"] for worker in page["workers"]]

    assert ids(True) == ["i-1"]
    assert ids(False) == ["i-2"]
    assert ids(None) == ["i-1", "i-2"]


def test_pages_cover_every_worker_once(world: Any) -> None:
    for number in range(7):
        world.claim(f"i-{number}")
    seen, token = [], None

    while True:
        page = world.queue.list_workers(*PARTS, limit=3, continuation_token=token)
        seen += [worker["workerId"] for worker in page["workers"]]
        token = page.get("continuationToken")
        if token is None:
            break

    assert seen == [f"i-{number}" for number in range(7)]


def test_a_worker_that_never_called_cannot_be_quarantined(world: Any) -> None:
    with pytest.raises(NotFoundError):
        quarantine(world, "2026-12-30T00:00:00.000Z")


@pytest.mark.parametrize("limit", [0, 1001])
def test_a_page_size_out_of_range_is_refused(world: Any, limit: int) -> None:
    with pytest.raises(InputInvalidError):
        world.queue.list_workers(*PARTS, limit=limit)


def test_a_worker_on_the_wire_has_what_clients_read(world: Any) -> None:
    task_id = world.create("one")
    world.claim()

    answer = quarantine(world, "2026-12-30T00:00:00.000Z")

    assert answer == world.queue.get_worker(*WORKER)
    assert answer == {
        "provisionerId": "proj-x",
        "workerType": "builders",
        "taskQueueId": POOL,
        "workerGroup": "us-west-2",
        "workerId": "i-1",
        "recentTasks": [{"taskId": task_id, "runId": 0}],
        "expires": "2026-12-01T12:00:00.000Z",
        "quarantineUntil": "2026-12-30T00:00:00.000Z",
        "firstClaim": "2026-11-30T12:00:00.000Z",
        "lastDateActive": "2026-11-30T12:00:00.000Z",
        "quarantineDetails": [
            {
                "clientId": "sheriff",
                "updatedAt": "2026-11-30T12:00:00.000Z",
                "quarantineUntil": "2026-12-30T00:00:00.000Z",
                "quarantineInfo": "broken disk",
            }
        ],
    }


def test_workers_are_listed_by_group_and_then_by_id(world: Any) -> None:
    """Whoever merges this list with another relies on it."""
    names = [("us", "b"), ("us-a", "a"), ("us", "a-b"), ("us", "a"), ("US", "z"), ("us_a", "a")]
    for group, worker_id in names:
        world.queue.claim_work(POOL, {"workerGroup": group, "workerId": worker_id})

    found = world.queue.list_workers(*PARTS)["workers"]

    assert [(one["workerGroup"], one["workerId"]) for one in found] == sorted(names)


@pytest.mark.parametrize("until", [-698_403_611_208, 1_800_000_000, "1800000000", "tomorrow", None])
def test_a_time_is_a_date_time_and_no_number(until: object) -> None:
    with pytest.raises(InputInvalidError, match=r"quarantineUntil: .*date-time"):
        parse(QuarantineWorker, {"quarantineUntil": until, "quarantineInfo": ""})
