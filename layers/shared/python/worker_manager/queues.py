"""Messages over SQS: sent to FIFO queues per pool, to standard ones with a delay; and read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from worker_manager.metrics import meter
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from worker_manager.core.model import Json

ENTRIES = 10
BYTES = 250_000
LONGEST_DELAY = 900
"""Seconds that SQS can hold a message back."""


_ReadT = TypeVar("_ReadT")


class NotSentError(RuntimeError):
    """SQS did not take some messages; the caller's own trigger will be repeated."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message body; ``group`` and ``dedup`` for FIFO queues, ``delay`` seconds for standard."""

    body: Json
    group: str | None = None
    dedup: str | None = None
    delay: int = 0


class Sender(Protocol):
    """One queue to send to."""

    def send(self, messages: Iterable[Message]) -> None:
        """Send all; raises ``NotSentError`` in the end if any was refused."""
        ...


class SqsSender:
    """An SQS queue."""

    def __init__(self, client: Any, url: str) -> None:
        """``client`` is a boto3 client for SQS."""
        self._client = client
        self._url = url

    def send(self, messages: Iterable[Message]) -> None:
        """Send in batches that keep SQS's limits; a refused message keeps back no other one."""
        refused: list[str] = []
        for batch in _batches(messages):
            entries = [_entry(number, message) for number, message in enumerate(batch)]
            answer = self._client.send_message_batch(QueueUrl=self._url, Entries=entries)
            refused += [failure["Code"] for failure in answer.get("Failed", ())]
        if refused:
            raise NotSentError(f"{len(refused)} messages refused: {refused[0]}")


def _entry(number: int, message: Message) -> dict[str, Any]:
    entry: dict[str, Any] = {"Id": str(number), "MessageBody": _text(message.body)}
    if message.group is not None:
        entry["MessageGroupId"] = message.group
        entry["MessageDeduplicationId"] = message.dedup
    elif message.delay:
        entry["DelaySeconds"] = min(message.delay, LONGEST_DELAY)
    return entry


def read_records(event: Json, read: Callable[[Any], _ReadT]) -> tuple[dict[str, _ReadT], list[str]]:
    """What ``read`` makes of each record's JSON, by message id, and ids of what it cannot read."""
    found: dict[str, _ReadT] = {}
    failed = []
    for record in event["Records"]:
        try:
            found[record["messageId"]] = read(json.loads(record["body"]))
        except Exception:
            meter.crashed()
            logger.exception("a message failed, it comes again", body=record["body"])
            failed.append(record["messageId"])
    return found, failed


def come_again(ids: Iterable[str]) -> dict[str, Any]:
    """The answer that has SQS deliver these messages of a batch once more."""
    return {"batchItemFailures": [{"itemIdentifier": name} for name in ids]}


def _text(body: Json) -> str:
    return json.dumps(body, separators=(",", ":"))


def _batches(messages: Iterable[Message]) -> Iterator[Sequence[Message]]:
    batch: list[Message] = []
    size = 0
    for message in messages:
        length = len(_text(message.body).encode())
        if batch and (len(batch) == ENTRIES or size + length > BYTES):
            yield batch
            batch, size = [], 0
        batch.append(message)
        size += length
    if batch:
        yield batch
