"""Events on their way to EventBridge: batches within its limits, refusals, failures."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from moto import mock_aws

from tests.adapters.recording import RecordingClient
from worker_manager.bus import EventBridgeBus

if TYPE_CHECKING:
    from worker_manager.core.model import Json


def an_event(number: int = 0, *, padding: int = 0) -> Json:
    return {
        "id": f"id-{number}",
        "name": "worker-running",
        "detail": {"workerId": f"i-{number}", "padding": "x" * padding},
    }


def all_accepted(_number: int, call: dict[str, Any]) -> dict[str, Any]:
    return {"Entries": [{"EventId": "1"} for _ in call["Entries"]]}


def sizes(client: RecordingClient) -> list[int]:
    return [len(call["Entries"]) for call in client.calls]


def test_an_event_is_sent_with_its_name_its_detail_and_its_id() -> None:
    client = RecordingClient(all_accepted)

    assert EventBridgeBus(client, "events").publish([an_event(7)]) == {"id-7"}

    [[entry]] = [call["Entries"] for call in client.calls]
    assert json.loads(entry.pop("Detail")) == {"workerId": "i-7", "padding": "", "eventId": "id-7"}
    assert entry == {
        "EventBusName": "events",
        "Source": "worker-manager",
        "DetailType": "worker-running",
    }


def test_the_real_client_takes_what_is_sent() -> None:
    with mock_aws():
        client = boto3.client("events")
        client.create_event_bus(Name="events")
        bus = EventBridgeBus(client, "events")
        assert len(bus.publish([an_event(number) for number in range(12)])) == 12


def test_nothing_to_publish_is_no_call() -> None:
    client = RecordingClient(all_accepted)
    assert EventBridgeBus(client, "events").publish([]) == set()
    assert client.calls == []


def test_a_call_takes_ten_events() -> None:
    client = RecordingClient(all_accepted)
    accepted = EventBridgeBus(client, "events").publish([an_event(n) for n in range(23)])
    assert len(accepted) == 23
    assert sizes(client) == [10, 10, 3]


def test_a_call_takes_256_kilobytes() -> None:
    client = RecordingClient(all_accepted)
    events = [an_event(n, padding=100_000) for n in range(5)]
    EventBridgeBus(client, "events").publish(events)
    assert sizes(client) == [2, 2, 1]
    for call in client.calls:
        assert sum(len(e["Detail"]) + len(e["DetailType"]) for e in call["Entries"]) < 256 * 1024


def test_what_is_not_ascii_counts_with_all_its_bytes() -> None:
    client = RecordingClient(all_accepted)
    events = [{**an_event(n), "detail": {"title": "ü" * 30_000}} for n in range(2)]
    EventBridgeBus(client, "events").publish(events)
    assert sizes(client) == [1, 1]


def test_only_those_that_were_accepted_are_named() -> None:
    def every_other(_number: int, call: dict[str, Any]) -> dict[str, Any]:
        refused = {"ErrorCode": "ThrottlingException", "ErrorMessage": "slow down"}
        return {
            "Entries": [refused if n % 2 else {"EventId": "1"} for n in range(len(call["Entries"]))]
        }

    bus = EventBridgeBus(RecordingClient(every_other), "events")

    assert bus.publish([an_event(n) for n in range(4)]) == {"id-0", "id-2"}


@pytest.mark.parametrize(
    "error",
    [
        ClientError({"Error": {"Code": "ThrottlingException", "Message": ""}}, "PutEvents"),
        EndpointConnectionError(endpoint_url="https://events"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_call_that_fails_accepts_nothing_and_stops_no_other(error: Exception) -> None:
    def first_fails(number: int, call: dict[str, Any]) -> dict[str, Any]:
        if number == 1:
            raise error
        return all_accepted(number, call)

    bus = EventBridgeBus(RecordingClient(first_fails), "events")

    assert bus.publish([an_event(n) for n in range(12)]) == {"id-10", "id-11"}
