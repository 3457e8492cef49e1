from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError
from botocore.session import Session
from moto import mock_aws
from pynamodb.exceptions import TransactWriteError

from worker_manager.core.errors import ConflictError, DuplicateError
from worker_manager.store.queue_rows import Line, Listed, StoredTask
from worker_manager.store.queue_table import QueueTable
from worker_manager.store.tables import connect

if TYPE_CHECKING:
    from collections.abc import Iterator

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
POOL = "proj-x/builders"


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Iterator[QueueTable]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "dead")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "dead")
    with mock_aws():
        table = QueueTable.bind("queue-under-test", connect(Session(), "us-east-1"))
        table.items.create_table(billing_mode="PAY_PER_REQUEST", wait=True)
        yield table


def a_task(task_id: str = "one", **overrides: Any) -> StoredTask:
    fields: dict[str, Any] = {
        "task_id": task_id,
        "definition": "{}",
        "status": "pending",
        "expires": NOON + timedelta(days=30),
    }
    return StoredTask(**(fields | overrides))


def a_line(order: str = "3#a", **overrides: Any) -> Line:
    fields: dict[str, Any] = {
        "queue_id": POOL,
        "listed": Listed.PENDING,
        "order": order,
        "task_id": "one",
        "until": NOON + timedelta(hours=5),
        "deadline": NOON + timedelta(hours=5),
    }
    return Line(**(fields | overrides))


def refuse(table: QueueTable, monkeypatch: pytest.MonkeyPatch, *codes: str) -> None:
    """Let transactions be cancelled for these reasons, one an item."""

    def cancelled(operation: str, _: Any) -> Any:
        reasons = [{"Code": code, "Message": "injected"} for code in codes]
        error: Any = {
            "Error": {"Code": "TransactionCanceledException", "Message": "injected"},
            "CancellationReasons": reasons,
        }
        raise ClientError(error, operation)

    monkeypatch.setattr(table.connection.client, "_make_api_call", cancelled)


def test_a_task_is_stored_with_its_line(table: QueueTable) -> None:
    table.create(a_task(), a_line())

    assert table.read("one") == a_task(version=1)
    assert table.lines(POOL, Listed.PENDING, limit=10) == [a_line()]


def test_a_taken_id_changes_nothing(table: QueueTable) -> None:
    table.create(a_task(), a_line())

    with pytest.raises(DuplicateError):
        table.create(a_task(status="other"), a_line("4#a"))
    assert table.read("one") == a_task(version=1)
    assert table.count(POOL, Listed.PENDING, after=NOON) == 1


def test_a_task_moves_with_its_line_only_from_the_version_that_was_read(
    table: QueueTable,
) -> None:
    table.create(a_task(), a_line())
    claimed = a_line("2026#one", listed=Listed.CLAIMED)
    after = a_task(status="running", version=1)
    table.replace(after, old_line=a_line(), new_line=claimed)

    with pytest.raises(ConflictError):
        table.replace(after, old_line=a_line(), new_line=None)
    assert table.lines(POOL, Listed.PENDING, limit=10) == []
    assert table.lines(POOL, Listed.CLAIMED, limit=10) == [claimed]
    assert table.read("one") == a_task(status="running", version=2)


def test_a_line_that_stays_where_it_is_survives_a_change_of_status(table: QueueTable) -> None:
    table.create(a_task(), a_line())
    table.replace(a_task(version=1), old_line=a_line(), new_line=a_line())

    assert table.lines(POOL, Listed.PENDING, limit=10) == [a_line()]


def test_only_lines_that_still_hold_are_counted(table: QueueTable) -> None:
    for hour in range(4):
        until = NOON + timedelta(hours=hour)
        table.create(a_task(str(hour)), a_line(str(hour), task_id=str(hour), until=until))

    assert table.count(POOL, Listed.PENDING, after=NOON + timedelta(hours=1)) == 2


def test_overdue_claims_are_found_up_to_the_very_moment(table: QueueTable) -> None:
    for minute in range(3):
        order = f"2026-11-30T12:0{minute}:00.000Z#{minute}"
        table.create(a_task(str(minute)), a_line(order, listed=Listed.CLAIMED, task_id=str(minute)))

    due = table.lines(POOL, Listed.CLAIMED, limit=10, due=NOON + timedelta(minutes=1))

    assert [line.task_id for line in due] == ["0", "1"]


def test_claims_that_are_over_count_only_while_their_task_has_time(table: QueueTable) -> None:
    for minute, hours in ((0, 1), (1, -2), (59, 1)):
        order = f"2026-11-30T11:{minute:02}:00.000Z#{minute}"
        deadline = NOON + timedelta(hours=hours)
        line = a_line(order, listed=Listed.CLAIMED, task_id=str(minute), deadline=deadline)
        table.create(a_task(str(minute)), line)

    assert table.count_overdue(POOL, NOON - timedelta(minutes=30)) == 1
    assert table.count_overdue(POOL, NOON + timedelta(minutes=1)) == 2


def test_the_claims_of_one_worker_are_found_among_all(table: QueueTable) -> None:
    for number, holder in enumerate(("g#w", "g#w2", "g#w")):
        line = a_line(str(number), listed=Listed.CLAIMED, task_id=str(number), holder=holder)
        table.create(a_task(str(number)), line)

    assert [line.task_id for line in table.held(POOL, "g#w")] == ["0", "2"]
    assert table.held(POOL, "g#none") == []


def test_waiting_lines_past_their_deadline_are_read_over(table: QueueTable) -> None:
    for number in range(6):
        until = NOON + timedelta(hours=number % 3)
        table.create(a_task(str(number)), a_line(str(number), task_id=str(number), until=until))

    lines = table.living(POOL, now=NOON, limit=3, after="0")

    assert [line.task_id for line in lines] == ["1", "2", "4"]


def test_many_tasks_are_read_at_once_and_unknown_ones_left_out(table: QueueTable) -> None:
    for number in range(120):
        table.create(a_task(str(number)), None)

    found = table.read_many([*map(str, range(120)), "none"])

    assert found.keys() == set(map(str, range(120)))
    assert found["7"] == a_task("7", version=1)


def test_a_list_goes_on_after_any_of_its_lines(table: QueueTable) -> None:
    for number in range(5):
        table.create(a_task(str(number)), a_line(str(number), task_id=str(number)))

    lines = table.lines(POOL, Listed.PENDING, limit=2, after="1")

    assert [line.task_id for line in lines] == ["2", "3"]


def test_items_are_dropped_by_the_table_some_time_after_they_stop_mattering(
    table: QueueTable,
) -> None:
    table.create(a_task(), a_line())

    ttl = {item.sk: item.ttl for item in table.items.scan()}

    assert ttl["definition"] == ttl["status"] == (NOON + timedelta(days=30)).timestamp()
    assert ttl["3#a"] == (NOON + timedelta(days=1, hours=5)).timestamp()


def test_an_unknown_task_is_none(table: QueueTable) -> None:
    assert table.read("none") is None


def test_a_lost_race_is_a_conflict(table: QueueTable, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(table, monkeypatch, "None", "ConditionalCheckFailed")

    with pytest.raises(ConflictError):
        table.replace(a_task(version=1), old_line=a_line(), new_line=None)


@pytest.mark.parametrize("code", ["TransactionConflict", "ThrottlingError", "ValidationError"])
def test_a_transaction_refused_for_another_reason_is_not_taken_for_a_lost_race(
    table: QueueTable, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    monkeypatch.setattr("worker_manager.store.transactions.time.sleep", lambda _: None)
    refuse(table, monkeypatch, code, "None")

    with pytest.raises(TransactWriteError):
        table.replace(a_task(version=1), old_line=a_line(), new_line=None)
