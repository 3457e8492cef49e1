"""Errors of pools: recorded once each, together with the event that tells of them."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from worker_manager.core.digests import EMAIL_FAILED
from worker_manager.core.errors import ConflictError
from worker_manager.core.model import Json, PoolError
from worker_manager.core.moments import to_wire
from worker_manager.store.error_counts import ErrorCounts
from worker_manager.store.mail import due_item
from worker_manager.store.outbox_items import outbox_item, outbox_key
from worker_manager.store.transactions import commit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime, timedelta

    from pynamodb.transactions import TransactWrite

    from worker_manager.store.tables import PoolErrorItem, Tables

LONGEST = 10_240
"""Characters of a description; longer ones are cut when written, or lists could not be read."""


class PoolErrorStore:
    """Table ``pool_errors``; ``counts`` are the counters beside the errors."""

    def __init__(self, tables: Tables, *, kept: timedelta, mails: bool = False) -> None:
        """``kept`` is how long errors stay; ``mails`` whether owners are mailed of them."""
        self._tables = tables
        self._model = tables.pool_errors
        self._kept = kept
        self._mails = mails
        self.counts = ErrorCounts(tables)

    def record(self, error: PoolError, events: Sequence[Json], *, mails: bool = True) -> str | None:
        """Store an error and its events in one transaction.

        Where owners are mailed, and ``mails`` says that this one may want it, that is noted too.
        Returns the outbox key to clear after publishing, or ``None`` if the error was recorded
        before (then nothing is written).
        """
        for is_late in (False, True):
            try:
                writes = self.writes(error, events, is_late=is_late, mails=mails)
                commit(self._tables.connection, writes)
            except ConflictError:
                continue
            return outbox_key(events, error.reported)
        return None

    def writes(
        self, error: PoolError, events: Sequence[Json], *, is_late: bool, mails: bool = True
    ) -> Callable[[TransactWrite], None]:
        """What adds an error that was not recorded yet, its count and its events, to a transaction.

        A condition fails if it was recorded, or if one like it that was reported later was counted
        before: then ``is_late`` is for a second attempt.  ``mails`` as for ``record``.
        """
        item = self._model(
            error.pool_id,
            sort_key(error),
            ttl=int((error.reported + self._kept).timestamp()),
            reported=error.reported,
            kind=error.kind[:128],
            title=error.title[:128],
            description=error.description[:LONGEST],
            extra=dict(error.extra),
            launch_config_id=error.launch_config_id,
        )
        attempts = count()

        def fill(transaction: TransactWrite) -> None:
            transaction.save(item, condition=self._model.sk.does_not_exist())
            transaction.save(outbox_item(self._tables.providers, events, error.reported))
            if self._mails and mails and error.kind != EMAIL_FAILED:
                transaction.save(due_item(self._tables.providers, error))
            self.counts.add(transaction, error, attempt=next(attempts), is_late=is_late)

        return fill

    def descriptions(self, pool_id: str, errors: Iterable[tuple[datetime, str]]) -> dict[str, str]:
        """By id, what some of a pool's errors say, each named by when it was reported and its id.

        An error that is no longer there is left out.
        """
        keys = {(pool_id, f"{to_wire(reported)}#{error_id}") for reported, error_id in errors}
        items = self._model.batch_get(keys, attributes_to_get=["sk", "description"])
        return {item.sk.partition("#")[2]: item.description for item in items}

    def newest_first(self, pool_id: str, *, before: str | None = None) -> Iterator[PoolError]:
        """Errors of a pool, newest first, from before sort key ``before``."""
        condition = self._model.sk < before if before else None
        for item in self._model.query(
            pool_id, condition, scan_index_forward=False, consistent_read=True
        ):
            yield _to_error(item)

    def since(self, pool_id: str, moment: datetime, *, limit: int) -> list[PoolError]:
        """The newest errors that were reported at ``moment`` or later, at most ``limit``."""
        items = self._model.query(
            pool_id,
            self._model.sk >= to_wire(moment),
            scan_index_forward=False,
            consistent_read=True,
            limit=limit,
        )
        return [_to_error(item) for item in items]


def sort_key(error: PoolError) -> str:
    """Where an error stands in its pool's list."""
    return f"{to_wire(error.reported)}#{error.error_id}"


def _to_error(item: PoolErrorItem) -> PoolError:
    return PoolError(
        error_id=item.sk.partition("#")[2],
        pool_id=item.worker_pool_id,
        reported=item.reported,
        kind=item.kind,
        title=item.title,
        description=item.description,
        extra=item.extra or {},
        launch_config_id=item.launch_config_id,
    )
