"""What a client asks of DynamoDB: requests counted, capacity units computed from item sizes.

Emulators report consumed capacity wrongly, so a hook on the client works it out by the rules of
the DynamoDB Developer Guide: "Item sizes and formats" (bytes of an item), "Read operations" and
"Write operations" (units of a request).  Read next: ``item_bytes``, then ``units_of``.
"""

from __future__ import annotations

import math
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

READ_UNIT = 4_096
WRITE_UNIT = 1_024
"""Bytes that one unit covers."""


@dataclass(frozen=True, slots=True)
class Units:
    """Capacity units of one request.

    ``exact`` is false where the request and its answer do not show every byte that counts: a
    query that filters or projects, an update, a write whose old item is larger.  The units are
    then the least it may have cost.
    """

    read: float = 0.0
    write: float = 0.0
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Call:
    """One request, with its parameters and its answer."""

    operation: str
    asked: Mapping[str, Any]
    answer: Mapping[str, Any]

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables that it touched."""
        return tables_of(self.asked)

    @property
    def units(self) -> Units:
        """What it cost; worked out when asked, not while something is being timed."""
        return units_of(self.operation, self.asked, self.answer)

    @property
    def is_write(self) -> bool:
        """Whether it may change an item."""
        return not (self.operation.endswith("GetItem") or self.operation in ("Query", "Scan"))


@dataclass(slots=True)
class Meter:
    """Every call of the clients it is attached to, in order of their answers."""

    calls: list[Call] = field(default_factory=list)
    _mine: threading.local = field(default_factory=threading.local)

    def attach(self, client: Any) -> None:
        """Count what this DynamoDB client does from now on."""
        client.meta.events.register("before-parameter-build.dynamodb", self._asked)
        client.meta.events.register("after-call.dynamodb", self._answered)

    @contextmanager
    def recording(self) -> Iterator[list[Call]]:
        """The calls that this thread makes inside."""
        calls: list[Call] = []
        self._mine.calls = calls
        try:
            yield calls
        finally:
            self._mine.calls = None

    def _asked(self, params: Mapping[str, Any], context: dict[str, Any], **_: Any) -> None:
        context["asked"] = params

    def _answered(
        self, model: Any, parsed: Mapping[str, Any], context: Mapping[str, Any], **_: Any
    ) -> None:
        call = Call(model.name, context["asked"], parsed)
        self.calls.append(call)
        if (mine := getattr(self._mine, "calls", None)) is not None:
            mine.append(call)


def item_bytes(item: Mapping[str, Any]) -> int:
    """Size of an item in DynamoDB's JSON: names and values."""
    return sum(len(name.encode()) + _value_bytes(value) for name, value in item.items())


def _value_bytes(typed: Mapping[str, Any]) -> int:
    """Size of one typed value, as ``{"S": "text"}``."""
    ((kind, value),) = typed.items()
    match kind:
        case "S":
            return len(value.encode())
        case "N":
            return _number_bytes(value)
        case "B":
            return len(value)
        case "BOOL" | "NULL":
            return 1
        case "SS" | "NS" | "BS":
            return sum(_value_bytes({kind[0]: member}) for member in value)
        case "L":
            return 3 + sum(1 + _value_bytes(member) for member in value)
        case "M":
            return 3 + len(value) + item_bytes(value)
    raise ValueError(f"unknown DynamoDB type {kind!r}")


def _number_bytes(text: str) -> int:
    """A byte for two significant digits, one more, and one for a sign."""
    sign, digits, _ = Decimal(text).normalize().as_tuple()
    return math.ceil(len(digits) / 2) + 1 + sign


def read_units(size: int, *, consistent: bool) -> float:
    """Units to read so many bytes; nothing found is read for the price of one unit."""
    return max(1, math.ceil(size / READ_UNIT)) * (1.0 if consistent else 0.5)


def write_units(size: int) -> float:
    """Units to write so many bytes, without what an index adds."""
    return float(max(1, math.ceil(size / WRITE_UNIT)))


def tables_of(asked: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the tables that a request touches."""
    if "TransactItems" in asked:
        writes = (next(iter(entry.values())) for entry in asked["TransactItems"])
        return tuple(sorted({write["TableName"] for write in writes}))
    if "RequestItems" in asked:
        return tuple(sorted(asked["RequestItems"]))
    return (asked["TableName"],) if "TableName" in asked else ()


def units_of(operation: str, asked: Mapping[str, Any], answer: Mapping[str, Any]) -> Units:
    """Units of one request, from its parameters and its answer."""
    match operation:
        case "GetItem":
            return _got(asked, [answer.get("Item", {})])
        case "Query" | "Scan":
            return _queried(asked, answer)
        case "BatchGetItem":
            return _batch_got(asked, answer)
        case "PutItem":
            return Units(write=write_units(item_bytes(asked["Item"])))
        case "UpdateItem" | "DeleteItem":
            return Units(write=write_units(_changed_bytes(asked)), exact=False)
        case "BatchWriteItem":
            entries = [entry for part in asked["RequestItems"].values() for entry in part]
            return _written(entries, factor=1)
        case "TransactWriteItems":
            return _written(asked["TransactItems"], factor=2)
    return Units()


def _got(asked: Mapping[str, Any], items: Iterable[Mapping[str, Any]]) -> Units:
    consistent = bool(asked.get("ConsistentRead"))
    units = sum(read_units(item_bytes(item), consistent=consistent) for item in items)
    return Units(read=units, exact=not _projects(asked))


def _queried(asked: Mapping[str, Any], answer: Mapping[str, Any]) -> Units:
    """A page costs the sum of its items' bytes, rounded up once."""
    size = sum(item_bytes(item) for item in answer.get("Items", ()))
    shown = answer.get("ScannedCount", 0) == answer.get("Count", 0) and not _projects(asked)
    return Units(read=read_units(size, consistent=bool(asked.get("ConsistentRead"))), exact=shown)


def _batch_got(asked: Mapping[str, Any], answer: Mapping[str, Any]) -> Units:
    """Each item is rounded up by itself, and each key without an item costs the least."""
    read, exact = 0.0, True
    for table, part in asked["RequestItems"].items():
        found = list(answer.get("Responses", {}).get(table, ()))
        left = len(answer.get("UnprocessedKeys", {}).get(table, {}).get("Keys", ()))
        absent = max(0, len(part["Keys"]) - len(found) - left)
        units = _got(part, [*found, *({} for _ in range(absent))])
        read, exact = read + units.read, exact and units.exact
    return Units(read=read, exact=exact)


def _projects(asked: Mapping[str, Any]) -> bool:
    return "ProjectionExpression" in asked or "AttributesToGet" in asked


def _changed_bytes(asked: Mapping[str, Any]) -> int:
    values = asked.get("ExpressionAttributeValues", {})
    return item_bytes(asked.get("Key", {})) + sum(_value_bytes(value) for value in values.values())


def _written(entries: Iterable[Mapping[str, Any]], *, factor: int) -> Units:
    write, exact = 0.0, True
    for entry in entries:
        ((kind, request),) = entry.items()
        if "Item" in request:
            write += factor * write_units(item_bytes(request["Item"]))
        else:
            write += factor * write_units(_changed_bytes(request))
            exact = exact and kind == "ConditionCheck"
    return Units(write=write, exact=exact)
