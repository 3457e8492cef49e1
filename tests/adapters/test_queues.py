"""Messages on their way to SQS: batches within its limits, FIFO, delays, refusals."""

from __future__ import annotations

import json
from typing import Any

import boto3
import pytest
from moto import mock_aws

from tests.adapters.recording import RecordingClient
from worker_manager.queues import Message, NotSentError, SqsSender

URL = "https://sqs/queue"


def sent(_number: int, _call: dict[str, Any]) -> dict[str, Any]:
    return {"Successful": []}


def entries(client: RecordingClient) -> list[list[dict[str, Any]]]:
    return [call["Entries"] for call in client.calls]


def test_a_fifo_message_has_its_group_and_the_id_of_its_content() -> None:
    client = RecordingClient(sent)
    SqsSender(client, URL).send([Message({"a": 1}, group="proj-x/pool-1", dedup="d-1", delay=9)])
    assert client.calls == [
        {
            "QueueUrl": URL,
            "Entries": [
                {
                    "Id": "0",
                    "MessageBody": '{"a":1}',
                    "MessageGroupId": "proj-x/pool-1",
                    "MessageDeduplicationId": "d-1",
                }
            ],
        }
    ]


@pytest.mark.parametrize(("asked", "given"), [(0, None), (1, 1), (900, 900), (4000, 900)])
def test_a_delay_is_at_most_what_a_queue_can_hold_back(asked: int, given: int | None) -> None:
    client = RecordingClient(sent)
    SqsSender(client, URL).send([Message({}, delay=asked)])
    [[entry]] = entries(client)
    assert entry.get("DelaySeconds") == given


def test_a_call_takes_ten_messages_with_ids_of_their_own() -> None:
    client = RecordingClient(sent)
    SqsSender(client, URL).send(Message({"n": n}) for n in range(23))
    assert [len(batch) for batch in entries(client)] == [10, 10, 3]
    for batch in entries(client):
        assert len({entry["Id"] for entry in batch}) == len(batch)
    bodies = [json.loads(entry["MessageBody"])["n"] for batch in entries(client) for entry in batch]
    assert bodies == list(range(23))


def test_a_call_takes_256_kilobytes() -> None:
    client = RecordingClient(sent)
    SqsSender(client, URL).send(Message({"x": "ü" * 20_000}) for _ in range(5))
    assert [len(batch) for batch in entries(client)] == [2, 2, 1]


def test_nothing_to_send_is_no_call() -> None:
    client = RecordingClient(sent)
    SqsSender(client, URL).send([])
    assert client.calls == []


def test_a_refused_message_is_told_after_all_others_were_sent() -> None:
    def first_refused(number: int, _call: dict[str, Any]) -> dict[str, Any]:
        failed = [{"Id": "3", "Code": "InternalError", "SenderFault": False}]
        return {"Failed": failed} if number == 1 else {"Successful": []}

    client = RecordingClient(first_refused)

    with pytest.raises(NotSentError, match="1 messages refused: InternalError"):
        SqsSender(client, URL).send(Message({"n": n}) for n in range(15))

    assert len(client.calls) == 2


def test_the_real_client_takes_what_is_sent() -> None:
    with mock_aws():
        client = boto3.client("sqs")
        fifo = client.create_queue(QueueName="q.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
        plain = client.create_queue(QueueName="q")["QueueUrl"]
        twice = [Message({"n": 1}, group="g", dedup="same")] * 2
        SqsSender(client, fifo).send(twice)
        SqsSender(client, plain).send([Message({"n": 1}), Message({"n": 2}, delay=5000)])

        def count(url: str, name: str) -> str:
            found: Any = client.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
            return str(found["Attributes"][name])

        assert count(fifo, "ApproximateNumberOfMessages") == "1"
        assert count(plain, "ApproximateNumberOfMessages") == "1"
        assert count(plain, "ApproximateNumberOfMessagesDelayed") == "1"
