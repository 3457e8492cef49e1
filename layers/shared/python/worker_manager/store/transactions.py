"""Committing transactions: a failed condition is told, a mere collision is tried again."""

from __future__ import annotations

import time
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from pynamodb.exceptions import TransactWriteError
from pynamodb.transactions import TransactWrite

from worker_manager.core.errors import ConflictError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pynamodb.connection import Connection

_Item = TypeVar("_Item")

LARGEST = 100
"""Items that one transaction takes."""
ATTEMPTS = 6
_CHANCE = Random()

Writes: TypeAlias = "Callable[[TransactWrite], None]"
"""Adds some writes to a transaction, or none."""


def commit(
    connection: Connection, fill: Callable[[TransactWrite], None], *, token: str | None = None
) -> None:
    """Write all that ``fill`` adds, or nothing.

    ``token`` (at most 36 characters, derived from the content) makes a repeat after a lost
    response the same transaction.  Raises ``ConflictError`` when a condition failed; a conflict
    with another transaction is retried with growing pauses of at most 1.6 s, then raised as it is.
    """
    for attempt in range(ATTEMPTS):
        try:
            with TransactWrite(connection=connection, client_request_token=token) as transaction:
                fill(transaction)
        except TransactWriteError as error:
            codes = {reason.code for reason in error.cancellation_reasons if reason}
            if "ConditionalCheckFailed" in codes:
                raise ConflictError("a condition of the transaction failed") from error
            if not codes & {"TransactionConflict", "ThrottlingError"} or attempt == ATTEMPTS - 1:
                raise
            time.sleep(_pause(attempt))
        else:
            return


def commit_many(
    connection: Connection,
    items: Sequence[_Item],
    add: Callable[[TransactWrite, _Item], None],
    *,
    alone: Callable[[_Item], bool],
) -> list[_Item]:
    """Write items that do not depend on each other; returns those whose condition held.

    ``add`` adds an item's write to a transaction, which makes one request of a hundred.  Where a
    condition fails nothing of that request is written, and each of its items is written
    ``alone``, which says whether it was.
    """
    written: list[_Item] = []
    for start in range(0, len(items), LARGEST):
        part = items[start : start + LARGEST]
        if len(part) > 1 and _together(connection, part, add):
            written += part
        else:
            written += [item for item in part if alone(item)]
    return written


def _together(
    connection: Connection, items: Sequence[_Item], add: Callable[[TransactWrite, _Item], None]
) -> bool:
    def fill(transaction: TransactWrite) -> None:
        for item in items:
            add(transaction, item)

    try:
        commit(connection, fill)
    except ConflictError:
        return False
    return True


def retry_collisions(client: Any) -> None:
    """Let single writes of ``client`` that meet a transaction on their item try again.

    The SDK takes such an answer as final; for us it only means that somebody else was at it.
    """
    client.meta.events.register("needs-retry.dynamodb", _pause_after_collision)


def _pause_after_collision(response: Any, attempts: int, **_: object) -> float | None:
    """Seconds until the next attempt, as botocore's retry event wants them; ``None`` for none."""
    if response is None or attempts >= ATTEMPTS:
        return None
    code = response[1].get("Error", {}).get("Code")
    return _pause(attempts - 1) if code == "TransactionConflictException" else None


def _pause(attempt: int) -> float:
    longest: float = min(1.6, 0.05 * 2**attempt)
    return longest * (0.5 + _CHANCE.random() / 2)


def is_condition_failure(error: Exception) -> bool:
    """Whether a single write failed only because its condition did."""
    return getattr(error, "cause_response_code", None) == "ConditionalCheckFailedException"
