"""Metering what functions of ours use while they run: every call to AWS and to the task queue.

Units of DynamoDB are computed from items (``units``, ``writes``): around each write the item is
looked at before and after, which is neither counted nor timed.  Functions are called one after
the other, so that the processor time of this process is theirs.
"""

from __future__ import annotations

import io
import json
import logging
import threading
import time
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field, replace
from math import ceil
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import requests
from botocore.client import BaseClient
from botocore.exceptions import ClientError

from tests.benchmarks.units import units_of
from tests.benchmarks.usage import Usage
from tests.benchmarks.writes import LocalIndex, units_of_change
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

CHUNK = 65_536
"""Bytes of a message or an event that are charged as one."""

_ASK: Callable[..., Any] = BaseClient._make_api_call  # type: ignore[attr-defined]
_SEND = requests.Session.send


@dataclass
class Reading:
    """What was used between the beginning and the end of ``Meter.reading``."""

    usage: Usage = field(default_factory=Usage)
    metrics: set[tuple[str, ...]] = field(default_factory=set)
    """Custom metrics: namespace, name, then dimensions with their values."""


@dataclass(frozen=True, slots=True)
class _Table:
    """Keys and local indexes of a table."""

    keys: tuple[str, ...]
    indexes: tuple[LocalIndex, ...]


class Meter:
    """Counts while ``attached``; what is charged is in the ``reading`` that is open."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._usage = Usage()
        self._tables: dict[str, _Table] = {}
        self._own_seconds = 0.0
        self._reads = False

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Sit between our code and its clients until the end of the block."""

        def ask(client: BaseClient, operation: str, params: Mapping[str, Any]) -> Any:
            if not self._reads:
                return _ASK(client, operation, params)
            return self._ask(client, operation, params)

        def send(session: requests.Session, *args: Any, **named: Any) -> requests.Response:
            self._add(Usage(asked_queue=1))
            return _SEND(session, *args, **named)

        with (
            patch.object(BaseClient, "_make_api_call", ask),
            patch.object(requests.Session, "send", send),
        ):
            yield

    @contextmanager
    def reading(self) -> Iterator[Reading]:
        """One call of a function; its lines of log are read instead of shown."""
        lines = io.StringIO()
        handler = logger.registered_handler
        assert isinstance(handler, logging.StreamHandler)
        shown = handler.setStream(lines)
        disabled = logging.root.manager.disable
        logging.disable(logging.NOTSET)
        self._usage, self._own_seconds, self._reads = Usage(), 0.0, True
        result = Reading()
        began = time.process_time()
        try:
            with redirect_stdout(lines):
                yield result
        finally:
            seconds = time.process_time() - began - self._own_seconds
            self._reads = False
            logging.disable(disabled)
            handler.setStream(shown)
            text = lines.getvalue()
            result.metrics = metrics_in(text)
            result.usage = self._usage + replace(
                Usage(), calls=1, cpu_seconds=max(0.0, seconds), log_bytes=len(text.encode())
            )

    def _add(self, usage: Usage) -> None:
        with self._lock:
            self._usage += usage

    def _ask(self, client: BaseClient, operation: str, params: Mapping[str, Any]) -> Any:
        service = client.meta.service_model.service_name
        changes = self._looked_at(client, operation, params) if service == "dynamodb" else []
        try:
            answer = _ASK(client, operation, params)
        except ClientError:
            refused = sum(units_of_change(before, before) for _, _, before in changes)
            self._add(Usage(write_units=refused))
            self._add(Usage(**{f"asked_{service}": 1}) if service in _WAITED_FOR else Usage())
            raise
        began = time.thread_time()
        self._add(Usage(**{f"asked_{service}": 1}) if service in _WAITED_FOR else Usage())
        match service:
            case "dynamodb":
                self._add(self._units(client, operation, params, answer, changes))
            case "sqs":
                self._add(_sent(params))
            case "events":
                self._add(Usage(events=sum(_chunks(e["Detail"]) for e in params["Entries"])))
            case "s3":
                put = operation.startswith("Put")
                self._add(Usage(s3_puts=int(put), s3_gets=int(not put)))
        self._own_seconds += time.thread_time() - began
        return answer

    def _looked_at(
        self, client: BaseClient, operation: str, params: Mapping[str, Any]
    ) -> list[tuple[str, Mapping[str, Any], Any]]:
        """Table, key and present item of each write in a request."""
        began = time.thread_time()
        found = [
            (name, key, self._item(client, name, key))
            for name, key in self._written(client, operation, params)
        ]
        self._own_seconds += time.thread_time() - began
        return found

    def _units(
        self,
        client: BaseClient,
        operation: str,
        params: Mapping[str, Any],
        answer: Any,
        changes: Sequence[tuple[str, Mapping[str, Any], Any]],
    ) -> Usage:
        if not changes:
            return Usage(read_units=units_of(operation, params, answer).read)
        factor = 2 if operation == "TransactWriteItems" else 1
        return Usage(
            write_units=factor
            * sum(
                units_of_change(
                    before, self._item(client, name, key), self._table(client, name).indexes
                )
                for name, key, before in changes
            )
        )

    def _written(
        self, client: BaseClient, operation: str, params: Mapping[str, Any]
    ) -> Iterator[tuple[str, Mapping[str, Any]]]:
        match operation:
            case "PutItem" | "UpdateItem" | "DeleteItem":
                yield self._target(client, params)
            case "TransactWriteItems":
                for entry in params["TransactItems"]:
                    yield self._target(client, next(iter(entry.values())))
            case "BatchWriteItem":
                for name, entries in params["RequestItems"].items():
                    for entry in entries:
                        write = next(iter(entry.values()))
                        yield self._target(client, {**write, "TableName": name})

    def _target(
        self, client: BaseClient, write: Mapping[str, Any]
    ) -> tuple[str, Mapping[str, Any]]:
        name = write["TableName"]
        if "Key" in write:
            return name, write["Key"]
        return name, {key: write["Item"][key] for key in self._table(client, name).keys}

    def _item(self, client: BaseClient, name: str, key: Mapping[str, Any]) -> Any:
        asked = {"TableName": name, "Key": key, "ConsistentRead": True}
        return _ASK(client, "GetItem", asked).get("Item")

    def _table(self, client: BaseClient, name: str) -> _Table:
        if name not in self._tables:
            found = _ASK(client, "DescribeTable", {"TableName": name})["Table"]
            keys = tuple(part["AttributeName"] for part in found["KeySchema"])
            self._tables[name] = _Table(
                keys,
                tuple(
                    _index(keys, described) for described in found.get("LocalSecondaryIndexes", ())
                ),
            )
        return self._tables[name]


_WAITED_FOR = frozenset({"dynamodb", "sqs", "events", "s3", "ec2"})


def _index(keys: Sequence[str], described: Mapping[str, Any]) -> LocalIndex:
    (key,) = (
        part["AttributeName"] for part in described["KeySchema"] if part["KeyType"] == "RANGE"
    )
    shown = described["Projection"].get("NonKeyAttributes", ())
    return LocalIndex(key, frozenset({*keys, key, *shown}))


def _sent(params: Mapping[str, Any]) -> Usage:
    """A batch is charged by its size altogether."""
    fifo = params["QueueUrl"].endswith(".fifo")
    messages = len(params["Entries"])
    size = sum(len(entry["MessageBody"].encode()) for entry in params["Entries"])
    return Usage(
        sqs_sent=max(1, ceil(size / CHUNK)),
        fifo_messages=messages if fifo else 0,
        standard_messages=0 if fifo else messages,
    )


def _chunks(text: str) -> int:
    return max(1, ceil(len(text.encode()) / CHUNK))


def metrics_in(text: str) -> set[tuple[str, ...]]:
    """Custom metrics that CloudWatch makes of lines in its embedded metric format."""
    found: set[tuple[str, ...]] = set()
    for line in text.splitlines():
        if '"_aws"' not in line:
            continue
        values = json.loads(line)
        for directive in values["_aws"]["CloudWatchMetrics"]:
            for dimensions in directive["Dimensions"]:
                where = [f"{name}={values[name]}" for name in sorted(dimensions)]
                found |= {
                    (directive["Namespace"], metric["Name"], *where)
                    for metric in directive["Metrics"]
                }
    return found
