from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker_manager.core.errors import ConflictError
from worker_manager.core.moments import from_wire, to_wire, whole_milliseconds
from worker_manager.core.scopes import satisfies
from worker_manager.queue import records, tasks
from worker_manager.queue.requests import scopes_to_create
from worker_manager.queue.tasks import RunState, Task
from worker_manager.store.queue_rows import Listed

if TYPE_CHECKING:
    from collections.abc import Callable

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
TIMEOUT = timedelta(minutes=20)
RETRIES = 2
DEFINITION = {
    "taskQueueId": "proj-x/builders",
    "provisionerId": "proj-x",
    "workerType": "builders",
    "schedulerId": "-",
    "projectId": "none",
    "taskGroupId": "group",
    "priority": "medium",
    "retries": RETRIES,
    "deadline": to_wire(NOON + timedelta(hours=5)),
    "expires": to_wire(NOON + timedelta(days=30)),
    "scopes": ["project:x:read"],
    "routes": ["index.x"],
}

STEPS: dict[str, Callable[[Task, datetime], Task]] = {
    "claim": lambda task, now: tasks.claim(task, "g", "w", now=now, timeout=TIMEOUT),
    "claim run": lambda task, now: tasks.claim_run(
        task, task.last.run_id, "g", "other", now=now, timeout=TIMEOUT
    ),
    "reclaim": lambda task, now: tasks.reclaim(task, task.last.run_id, now=now, timeout=TIMEOUT),
    "wait": lambda task, _: task,
    "cancel": tasks.cancel,
    "abandon": lambda task, now: tasks.abandon(task, "g", "w", gone=now, now=now),
}
ENDS = (tasks.COMPLETED, tasks.FAILED, *tasks.EXCEPTIONS.values())


def step(task: Task, name: str | tasks.Resolution, now: datetime) -> Task:
    if isinstance(name, tasks.Resolution):
        return tasks.resolve(task, task.last.run_id, name, now=now)
    return STEPS[name](task, now)


@given(st.lists(st.tuples(st.sampled_from([*STEPS, *ENDS]), st.integers(1, 40)), max_size=30))
def test_whatever_happens_a_task_is_in_one_list_or_in_none_and_only_its_last_run_is_open(
    happenings: list[tuple[str | tasks.Resolution, int]],
) -> None:
    now = NOON
    task = tasks.schedule("id", DEFINITION, now)

    for name, minutes in happenings:
        now += timedelta(minutes=minutes)
        task = tasks.settle(task, now)
        try:
            after = step(task, name, now)
        except ConflictError:
            after = task
        assert after.runs[: len(task.runs) - 1] == task.runs[:-1]
        task = after

        line = records.line_of(task)
        assert (line is None) == (task.last.state not in tasks.OPEN)
        if line is not None:
            assert (line.listed is Listed.CLAIMED) == (task.last.state is RunState.RUNNING)
            assert now <= line.until <= task.deadline
            assert (line.holder == "") == (line.listed is Listed.PENDING)
        assert all(run.state not in tasks.OPEN for run in task.runs[:-1])
        assert [run.run_id for run in task.runs] == list(range(len(task.runs)))
        assert 0 <= task.retries_left == RETRIES - (len(task.runs) - 1)
        assert tasks.settle(task, now) == task
        assert records.from_stored(records.to_stored(task)) == task


@given(
    st.lists(st.integers(0, 400), min_size=1, max_size=6),
    st.booleans(),
)
def test_time_does_the_same_to_a_task_however_often_one_looks(
    looks: list[int], claimed: bool
) -> None:
    task = tasks.schedule("id", DEFINITION, NOON)
    if claimed:
        task = tasks.claim(task, "g", "w", now=NOON, timeout=TIMEOUT)
    seen = task

    for minutes in sorted(looks):
        seen = tasks.settle(seen, NOON + timedelta(minutes=minutes))

    assert seen == tasks.settle(task, NOON + timedelta(minutes=max(looks)))


def test_lists_sort_by_priority_and_then_by_time() -> None:
    def order(priority: str, minutes: int) -> str:
        definition = DEFINITION | {"priority": priority}
        line = records.line_of(tasks.schedule("id", definition, NOON + timedelta(minutes=minutes)))
        assert line is not None
        return line.order

    expected = [order(priority, at) for priority in tasks.PRIORITIES for at in (0, 1, 1000)]

    assert sorted(expected) == expected


def test_whoever_creates_a_task_needs_all_that_the_task_may_do() -> None:
    needed = scopes_to_create(DEFINITION)
    enough = (
        "project:x:*",
        "queue:route:index.*",
        "queue:create-task:project:none",
        "queue:scheduler-id:-",
        "queue:create-task:high/proj-x/builders",
    )

    assert satisfies(enough, needed)
    assert satisfies(["*"], needed)
    for left_out in enough:
        assert not satisfies([scope for scope in enough if scope != left_out], needed)
    assert not satisfies([*enough[:-1], "queue:create-task:low/proj-x/builders"], needed)


@given(st.datetimes(datetime(2000, 1, 1), datetime(2999, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001
def test_a_moment_survives_the_wire_to_the_millisecond(moment: datetime) -> None:
    assert from_wire(to_wire(moment)) == whole_milliseconds(moment)
    assert len(to_wire(moment)) == len("2026-11-30T12:00:00.000Z")


def test_a_time_without_a_zone_is_no_moment() -> None:
    with pytest.raises(ValueError, match="zone"):
        from_wire("2026-11-30T12:00:00.000")
