"""The wire between the stores and DynamoDB: every request seen, faults put in where wanted."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pynamodb.connection import Connection

    Call = Callable[[str, dict[str, Any]], dict[str, Any]]
    Fault = Callable[[Call, str, dict[str, Any]], dict[str, Any]]


@dataclass
class Wire:
    """``calls`` are operations with their parameters, failed ones included."""

    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    done: dict[str, Any] = field(default_factory=dict)
    """Transactions that went through, by their client request token."""
    faults: defaultdict[str, deque[Fault]] = field(default_factory=lambda: defaultdict(deque))

    def tap(self, connection: Connection, put_back: Any) -> None:
        """Stand between ``connection`` and its client until ``put_back`` undoes it."""
        client: Any = connection.client
        original: Call = client._make_api_call

        def direct(operation: str, parameters: dict[str, Any]) -> dict[str, Any]:
            """As DynamoDB, and unlike moto, honour client request tokens."""
            token = parameters.get("ClientRequestToken")
            if token is None or token not in self.done:
                answer = original(operation, parameters)
                if token is not None:
                    self.done[token] = parameters
                return answer
            if self.done[token] != parameters:
                return refused("IdempotentParameterMismatchException")(
                    original, operation, parameters
                )
            return {}

        def call(operation: str, parameters: dict[str, Any]) -> dict[str, Any]:
            self.calls.append((operation, parameters))
            if self.faults[operation]:
                return self.faults[operation].popleft()(direct, operation, parameters)
            return direct(operation, parameters)

        put_back.setattr(client, "_make_api_call", call)

    def of(self, operation: str) -> list[dict[str, Any]]:
        """Parameters of every request of one kind."""
        return [parameters for name, parameters in self.calls if name == operation]

    def inject(self, operation: str, *faults: Fault) -> None:
        """Let the next requests of one kind go wrong, one after the other."""
        self.faults[operation].extend(faults)


def refused(code: str) -> Fault:
    """The request is refused and nothing done."""

    def fault(_: Call, operation: str, __: dict[str, Any]) -> dict[str, Any]:
        raise ClientError({"Error": {"Code": code, "Message": "injected"}}, operation)

    return fault


def cancelled(*codes: str) -> Fault:
    """The transaction is cancelled for these reasons, one an item."""

    def fault(_: Call, operation: str, __: dict[str, Any]) -> dict[str, Any]:
        answer: Any = {
            "Error": {"Code": "TransactionCanceledException", "Message": "injected"},
            "CancellationReasons": [{"Code": code, "Message": "injected"} for code in codes],
        }
        raise ClientError(answer, operation)

    return fault


def lost(call: Call, operation: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """The request is done and its answer lost; it is sent again."""
    call(operation, parameters)
    return call(operation, parameters)


def half_processed(call: Call, operation: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """A batch of which every second key was left for another time."""
    ((table, asked),) = parameters["RequestItems"].items()
    keys = asked["Keys"]
    now = {table: {**asked, "Keys": keys[::2]}}
    answer = call(operation, {**parameters, "RequestItems": now})
    later = {table: {**asked, "Keys": keys[1::2]}} if keys[1::2] else {}
    return {**answer, "UnprocessedKeys": later}
