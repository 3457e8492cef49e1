from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import TYPE_CHECKING

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError, EndpointConnectionError
from botocore.session import Session
from pynamodb.exceptions import GetError, TransactWriteError

from tests.factories import NOW, POOL_ID
from tests.store.wire import cancelled, refused
from worker_manager.core.errors import ConflictError
from worker_manager.store.outages import is_outage
from worker_manager.store.tables import Tables
from worker_manager.store.transactions import ATTEMPTS, commit, commit_many, is_condition_failure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pynamodb.transactions import TransactWrite

    from tests.store.wire import Wire


def put(tables: Tables, *names: str, token: str | None = None) -> None:
    """Write items that must not be there yet, all or none."""

    def fill(transaction: TransactWrite) -> None:
        for name in names:
            item = tables.providers(POOL_ID, name, created=NOW)
            transaction.save(item, condition=tables.providers.worker_pool_id.does_not_exist())

    commit(tables.connection, fill, token=token)


def names(tables: Tables) -> list[str]:
    return [item.worker_pool_id for item in tables.providers.query(POOL_ID)]


def test_all_is_written_or_nothing(tables: Tables) -> None:
    put(tables, "a", "b")

    with pytest.raises(ConflictError):
        put(tables, "c", "a")
    assert names(tables) == ["a", "b"]


@pytest.mark.parametrize("code", ["TransactionConflict", "ThrottlingError"])
def test_a_collision_is_tried_again_with_growing_pauses(
    tables: Tables, wire: Wire, pauses: list[float], code: str
) -> None:
    wire.inject("TransactWriteItems", *[cancelled(code, "None")] * 3)

    put(tables, "a", "b")

    assert names(tables) == ["a", "b"]
    assert len(pauses) == 3
    assert all(0.025 * 2**n <= pause <= 0.05 * 2**n for n, pause in enumerate(pauses))


def test_a_collision_that_never_ends_is_told_as_an_outage(
    tables: Tables, wire: Wire, pauses: list[float]
) -> None:
    wire.inject("TransactWriteItems", *[cancelled("None", "TransactionConflict")] * ATTEMPTS)

    with pytest.raises(TransactWriteError) as caught:
        put(tables, "a", "b")

    assert len(wire.calls) == ATTEMPTS
    assert len(pauses) == ATTEMPTS - 1
    assert sum(pauses) < 4
    assert is_outage(caught.value)


def test_a_failed_condition_is_a_conflict_at_once_whatever_else_collided(
    tables: Tables, wire: Wire, pauses: list[float]
) -> None:
    wire.inject("TransactWriteItems", cancelled("TransactionConflict", "ConditionalCheckFailed"))

    with pytest.raises(ConflictError):
        put(tables, "a", "b")
    assert pauses == []


def test_every_attempt_carries_the_same_token(
    tables: Tables, wire: Wire, pauses: list[float]
) -> None:
    wire.inject("TransactWriteItems", cancelled("TransactionConflict"))

    put(tables, "a", token="same")

    tokens = [call["ClientRequestToken"] for call in wire.of("TransactWriteItems")]
    assert tokens == ["same", "same"]
    assert len(pauses) == 1


def test_what_is_wrong_with_a_request_is_neither_tried_again_nor_taken_for_a_conflict(
    tables: Tables, wire: Wire, pauses: list[float]
) -> None:
    wire.inject("TransactWriteItems", cancelled("ValidationError"), refused("AccessDenied"))

    for _ in range(2):
        with pytest.raises(TransactWriteError) as caught:
            put(tables, "a")
        assert not is_outage(caught.value)
    assert pauses == []


def put_many(tables: Tables, items: Sequence[str]) -> list[str]:
    def add(transaction: TransactWrite, name: str) -> None:
        item = tables.providers(POOL_ID, name, created=NOW)
        transaction.save(item, condition=tables.providers.worker_pool_id.does_not_exist())

    def alone(name: str) -> bool:
        try:
            put(tables, name)
        except ConflictError:
            return False
        return True

    return commit_many(tables.connection, items, add, alone=alone)


@pytest.mark.parametrize("count", [0, 1, 2, 99, 100, 101, 250])
def test_any_number_of_items_is_written_a_hundred_a_request(
    tables: Tables, wire: Wire, count: int
) -> None:
    items = [f"{number:03d}" for number in range(count)]

    assert put_many(tables, items) == items
    assert len(wire.calls) == -(-count // 100)
    assert names(tables) == items


def test_one_that_fails_leaves_the_others_written(tables: Tables) -> None:
    put(tables, "b")

    assert put_many(tables, ["a", "b", "c"]) == ["a", "c"]
    assert names(tables) == ["a", "b", "c"]


def test_only_a_failed_condition_is_one(tables: Tables, wire: Wire) -> None:
    item = tables.providers(POOL_ID, "a", created=NOW)
    item.save()
    absent = tables.providers.worker_pool_id.does_not_exist()
    with pytest.raises(Exception, match="ondition") as failed:
        item.save(condition=absent)
    assert is_condition_failure(failed.value)
    assert not is_outage(failed.value)

    wire.inject("PutItem", refused("InternalServerError"))
    with pytest.raises(Exception, match="injected") as other:
        item.save(condition=absent)
    assert not is_condition_failure(other.value)
    assert is_outage(other.value)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (EndpointConnectionError(endpoint_url="https://x"), True),
        (ConnectTimeoutError(endpoint_url="https://x"), True),
        (ClientError({"Error": {"Code": "ThrottlingException"}}, "SendMessage"), True),
        (ClientError({"Error": {"Code": "AccessDenied"}}, "SendMessage"), False),
        (ValueError("a fault of ours"), False),
    ],
)
def test_an_outage_is_told_from_a_fault(error: Exception, expected: bool) -> None:
    assert is_outage(error) is expected


def test_a_table_that_cannot_be_reached_is_an_outage(tables: Tables, wire: Wire) -> None:
    def unreachable(*_: object) -> dict[str, object]:
        raise EndpointConnectionError(endpoint_url="https://dynamodb")

    wire.inject("GetItem", unreachable)

    with pytest.raises(GetError) as caught:
        tables.providers.get(POOL_ID, "a")
    assert is_outage(caught.value)


def test_a_single_write_that_meets_a_transaction_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    collision = {"__type": "com.amazonaws.dynamodb.v20120810#TransactionConflictException"}
    answers = [(400, collision), (400, collision), (200, {})]
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.headers["X-Amz-Target"])
            self.rfile.read(int(self.headers["Content-Length"]))
            status, body = answers.pop(0)
            text = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", f"http://127.0.0.1:{server.server_port}")
        collided = Tables.bind({}, Session(), "us-east-1")
        collided.providers(POOL_ID, "a", created=NOW).save()
        collided.connection.client._endpoint.http_session.close()
        server.shutdown()

    assert asked == ["DynamoDB_20120810.PutItem"] * 3
