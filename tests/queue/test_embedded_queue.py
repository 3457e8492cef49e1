from __future__ import annotations

import json
from typing import Any

import pytest

from worker_manager.core.errors import (
    ConflictError,
    DuplicateError,
    InputInvalidError,
    NotFoundError,
    QueueUnavailableError,
)
from worker_manager.core.ids import derived_slugid
from worker_manager.store.queue_table import QueueTable

POOL = "proj-x/builders"


def test_a_created_task_has_the_status_structure_of_taskcluster(world: Any) -> None:
    task_id = derived_slugid("one")

    answer = world.queue.create_task(task_id, world.task_body())

    assert answer["status"] == {
        "taskId": task_id,
        "provisionerId": "proj-x",
        "workerType": "builders",
        "taskQueueId": POOL,
        "schedulerId": "-",
        "projectId": "none",
        "taskGroupId": task_id,
        "deadline": "2026-12-01T12:00:00.000Z",
        "expires": "2027-12-01T12:00:00.000Z",
        "retriesLeft": 5,
        "state": "pending",
        "runs": [
            {
                "runId": 0,
                "state": "pending",
                "reasonCreated": "scheduled",
                "scheduled": "2026-11-30T12:00:00.000Z",
            }
        ],
    }
    assert world.queue.status(task_id) == answer


def test_a_definition_comes_back_with_its_defaults_and_its_numbers_as_given(world: Any) -> None:
    task = world.queue.task(world.create("one", scopes=["a:b"], priority="normal"))

    assert task["payload"] == {"seconds": 3, "ratio": 1.0}
    assert repr(task["payload"]["ratio"]) == "1.0"
    assert task["priority"] == "lowest"
    assert task["scopes"] == ["a:b"]
    assert task["dependencies"] == []
    assert (task["provisionerId"], task["workerType"]) == ("proj-x", "builders")


def test_creating_the_same_task_again_is_harmless_even_after_it_was_claimed(world: Any) -> None:
    body = world.task_body()
    task_id = derived_slugid("one")
    world.queue.create_task(task_id, body)
    world.claim()
    world.clock.advance(days=10)

    assert world.queue.create_task(task_id, body)["status"]["taskId"] == task_id
    assert len(world.status(task_id)["runs"]) >= 1


def test_another_task_under_the_same_id_is_refused(world: Any) -> None:
    task_id = world.create("one")

    with pytest.raises(DuplicateError):
        world.queue.create_task(task_id, world.task_body(payload={"seconds": 4}))


def test_claimed_work_carries_all_that_a_worker_needs(world: Any) -> None:
    task_id = world.create("one", scopes=["project:x:read"])

    (claim,) = world.claim()

    assert claim["status"]["state"] == "running"
    assert claim["runId"] == 0
    assert (claim["workerGroup"], claim["workerId"]) == ("us-west-2", "i-1")
    assert claim["takenUntil"] == "2026-11-30T12:20:00.000Z"
    assert claim["task"] == world.queue.task(task_id)
    assert claim["status"]["runs"][0] == {
        "runId": 0,
        "state": "running",
        "reasonCreated": "scheduled",
        "workerGroup": "us-west-2",
        "workerId": "i-1",
        "takenUntil": "2026-11-30T12:20:00.000Z",
        "scheduled": "2026-11-30T12:00:00.000Z",
        "started": "2026-11-30T12:00:00.000Z",
    }


def test_task_credentials_are_named_after_the_claim_and_end_with_it(world: Any) -> None:
    task_id = world.create("one", scopes=["project:x:read"])

    credentials = world.claim()[0]["credentials"]

    assert credentials["clientId"] == (f"task-client/{task_id}/0/on/us-west-2/i-1/until/1796041200")
    certificate = json.loads(credentials["certificate"])
    assert certificate["issuer"] == "queue/issuer"
    assert certificate["expiry"] == 1_796_041_200_000
    assert certificate["scopes"] == [
        f"queue:reclaim-task:{task_id}/0",
        f"queue:resolve-task:{task_id}/0",
        f"queue:create-artifact:{task_id}/0",
        "project:x:read",
    ]
    assert isinstance(credentials["accessToken"], str)
    json.dumps(credentials)


def test_no_work_is_an_empty_answer(world: Any) -> None:
    assert world.claim() == []


def test_higher_priorities_then_earlier_tasks_are_claimed_first(world: Any) -> None:
    low = world.create("low", priority="low")
    world.clock.advance(seconds=1)
    first = world.create("first", priority="high")
    world.clock.advance(seconds=1)
    second = world.create("second", priority="high")

    assert [claim["status"]["taskId"] for claim in world.claim(tasks=3)] == [first, second, low]


def test_a_worker_gets_no_more_tasks_than_it_asked_for(world: Any) -> None:
    for number in range(5):
        world.create(number)

    assert len(world.claim(tasks=3)) == 3
    assert world.counts() == (2, 3)


def test_tasks_of_other_queues_are_neither_counted_nor_claimed(world: Any) -> None:
    world.create("one", taskQueueId="proj-x/testers")

    assert world.claim() == []
    assert world.counts() == (0, 0)
    assert world.counts("proj-x/testers") == (1, 0)


def test_counts_name_the_queue_in_every_way_that_clients_read(world: Any) -> None:
    assert world.queue.task_queue_counts(POOL) == {
        "provisionerId": "proj-x",
        "workerType": "builders",
        "taskQueueId": POOL,
        "pendingTasks": 0,
        "claimedTasks": 0,
    }


@pytest.mark.parametrize("verb", ["completed", "failed"])
def test_a_reported_run_resolves_its_task_and_telling_again_is_harmless(
    world: Any, verb: str
) -> None:
    task_id = world.create("one")
    world.claim()
    world.clock.advance(minutes=1)
    report = getattr(world.queue, f"report_{verb}")

    first, again = report(task_id, 0), report(task_id, 0)

    assert first == again
    assert first["status"]["state"] == verb
    assert first["status"]["runs"][0]["reasonResolved"] == verb
    assert first["status"]["runs"][0]["resolved"] == "2026-11-30T12:01:00.000Z"
    assert world.counts() == (0, 0)


def test_a_run_is_not_resolved_in_two_ways(world: Any) -> None:
    task_id = world.create("one")
    world.claim()
    world.queue.report_completed(task_id, 0)

    with pytest.raises(ConflictError):
        world.queue.report_failed(task_id, 0)


def test_a_run_that_nobody_claimed_cannot_be_reported_or_reclaimed(world: Any) -> None:
    task_id = world.create("one")

    with pytest.raises(ConflictError):
        world.queue.report_completed(task_id, 0)
    with pytest.raises(ConflictError):
        world.queue.reclaim_task(task_id, 0)


@pytest.mark.parametrize(
    ("reason", "created"), [("worker-shutdown", "retry"), ("intermittent-task", "task-retry")]
)
def test_some_exceptions_bring_a_new_run(world: Any, reason: str, created: str) -> None:
    task_id = world.create("one", retries=1)
    world.claim()

    status = world.queue.report_exception(task_id, 0, {"reason": reason})["status"]

    assert [run["state"] for run in status["runs"]] == ["exception", "pending"]
    assert status["runs"][1]["reasonCreated"] == created
    assert status["retriesLeft"] == 0
    assert world.counts() == (1, 0)
    assert world.queue.report_exception(task_id, 0, {"reason": reason})["status"] == status


def test_without_retries_left_an_exception_is_the_end(world: Any) -> None:
    task_id = world.create("one", retries=0)
    world.claim()

    status = world.queue.report_exception(task_id, 0, {"reason": "worker-shutdown"})["status"]

    assert status["state"] == "exception"
    assert world.counts() == (0, 0)


def test_other_exceptions_bring_no_new_run(world: Any) -> None:
    task_id = world.create("one")
    world.claim()

    status = world.queue.report_exception(task_id, 0, {"reason": "malformed-payload"})["status"]

    assert (status["state"], len(status["runs"])) == ("exception", 1)


def test_a_reclaimed_task_stays_claimed_longer_and_brings_new_credentials(world: Any) -> None:
    task_id = world.create("one")
    (claim,) = world.claim()
    world.clock.advance(minutes=15)

    renewed = world.queue.reclaim_task(task_id, 0)
    world.clock.advance(minutes=10)

    assert renewed["takenUntil"] == "2026-11-30T12:35:00.000Z"
    assert "task" not in renewed
    assert renewed["credentials"]["clientId"] != claim["credentials"]["clientId"]
    assert world.counts() == (0, 1)


def test_a_claim_that_ran_out_is_pending_again_when_somebody_counts(world: Any) -> None:
    task_id = world.create("one")
    world.claim()
    world.clock.advance(minutes=20)

    assert world.counts() == (1, 0)
    runs = world.status(task_id)["runs"]
    assert [run["state"] for run in runs] == ["exception", "pending"]
    assert runs[0]["reasonResolved"] == "claim-expired"
    assert runs[1]["reasonCreated"] == "retry"
    with pytest.raises(ConflictError):
        world.queue.reclaim_task(task_id, 0)
    with pytest.raises(ConflictError):
        world.queue.report_completed(task_id, 0)


def test_a_claim_that_ran_out_can_be_claimed_without_anybody_counting(world: Any) -> None:
    task_id = world.create("one")
    world.claim("i-1")
    world.clock.advance(minutes=21)

    (claim,) = world.claim("i-2")

    assert (claim["status"]["taskId"], claim["runId"]) == (task_id, 1)


def test_reading_tells_that_a_claim_ran_out_before_anything_is_written(world: Any) -> None:
    task_id = world.create("one")
    world.claim()
    world.clock.advance(minutes=30)

    before = world.status(task_id)
    world.counts()

    assert before["runs"][0]["resolved"] == "2026-11-30T12:20:00.000Z"
    assert world.status(task_id) == before


def test_a_task_past_its_deadline_is_neither_counted_nor_claimed(world: Any) -> None:
    task_id = world.create("one")
    world.clock.advance(hours=24)

    assert world.counts() == (0, 0)
    assert world.claim() == []
    status = world.status(task_id)
    assert status["state"] == "exception"
    assert status["runs"][0]["reasonResolved"] == "deadline-exceeded"


def test_a_claim_never_outlasts_the_deadline(world: Any) -> None:
    task_id = world.create("one")
    world.clock.advance(hours=23, minutes=50)

    (claim,) = world.claim()
    world.clock.advance(minutes=10)

    assert claim["takenUntil"] == "2026-12-01T12:00:00.000Z"
    assert world.counts() == (0, 0)
    assert [run["reasonResolved"] for run in world.status(task_id)["runs"]] == ["deadline-exceeded"]


def test_an_expired_task_is_gone_though_its_item_lingers(world: Any) -> None:
    task_id = world.create("one", expires="2026-12-02T00:00:00.000Z")
    world.clock.advance(days=2)

    with pytest.raises(NotFoundError):
        world.queue.status(task_id)


def test_lines_whose_task_is_gone_are_dropped_and_hide_nothing(world: Any) -> None:
    claimed = world.create("claimed")
    world.claim()
    waiting = world.create("waiting")
    for task_id in (claimed, waiting):
        for sk in ("definition", "status"):
            world.table.items(f"task#{task_id}", sk).delete()
    world.create("good")
    world.clock.advance(minutes=30)

    assert len(world.claim(tasks=2)) == 1
    assert world.counts() == (0, 1)
    assert len(list(world.table.items.query(f"{POOL}#pending"))) == 0


@pytest.mark.parametrize("call", ["status", "task"])
def test_an_unknown_task_is_not_found(world: Any, call: str) -> None:
    with pytest.raises(NotFoundError):
        getattr(world.queue, call)(derived_slugid("none"))


def test_an_unknown_run_is_not_found(world: Any) -> None:
    task_id = world.create("one")

    with pytest.raises(NotFoundError):
        world.queue.report_completed(task_id, 1)
    with pytest.raises(NotFoundError):
        world.queue.reclaim_task(task_id, -1)


def test_a_change_that_always_loses_its_race_says_that_the_queue_is_unavailable(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = world.create("one")
    world.claim()

    def lose(*_: object, **__: object) -> None:
        raise ConflictError("somebody was faster")

    monkeypatch.setattr(QueueTable, "replace", lose)

    with pytest.raises(QueueUnavailableError):
        world.queue.report_completed(task_id, 0)


@pytest.mark.parametrize(
    ("field", "overrides"),
    [
        ("taskQueueId", {"taskQueueId": "nothing"}),
        ("taskQueueId", {"provisionerId": "other", "workerType": "builders"}),
        ("deadline", {"deadline": "2026-11-30T11:00:00.000Z"}),
        ("deadline", {"deadline": "2026-12-10T12:00:00.000Z"}),
        ("deadline", {"deadline": "soon"}),
        ("deadline", {"deadline": "9999-12-31T12:00:00.000Z"}),
        ("created", {"created": "0001-01-01T00:00:00+14:00"}),
        ("expires", {"expires": "9999-12-31T23:59:59-14:00"}),
        ("expires", {"expires": "2026-11-30T12:00:00.000Z"}),
        ("retries", {"retries": 50}),
        ("priority", {"priority": "urgent"}),
        ("dependencies", {"dependencies": [derived_slugid("other")]}),
        ("payload", {"payload": "text"}),
        ("metadata.owner", {"metadata": {"name": "n", "description": "d", "source": "s"}}),
        ("colour", {"colour": "red"}),
        ("scopes.0", {"scopes": ["line\nbreak"]}),
        ("body", {"payload": {"blob": "x" * 200_000}}),
    ],
)
def test_a_wrong_definition_is_refused_by_the_name_of_its_field(
    world: Any, field: str, overrides: dict[str, Any]
) -> None:
    with pytest.raises(InputInvalidError) as refused:
        world.queue.create_task(derived_slugid("one"), world.task_body(**overrides))

    assert refused.value.field == field
    assert world.counts() == (0, 0)


def test_a_task_id_that_is_no_slugid_is_refused(world: Any) -> None:
    with pytest.raises(InputInvalidError):
        world.queue.create_task("one", world.task_body())


@pytest.mark.parametrize("tasks", [0, 33, "1"])
def test_a_worker_may_not_ask_for_nonsense(world: Any, tasks: object) -> None:
    with pytest.raises(InputInvalidError):
        world.queue.claim_work(POOL, {"workerGroup": "g", "workerId": "w", "tasks": tasks})


def test_an_unknown_exception_reason_is_refused(world: Any) -> None:
    task_id = world.create("one")
    world.claim()

    with pytest.raises(InputInvalidError):
        world.queue.report_exception(task_id, 0, {"reason": "bored"})


def test_the_queue_says_that_it_is_alive(world: Any) -> None:
    world.clock.advance(seconds=90)

    assert world.queue.ping() == {"alive": True, "uptime": 90.0}
