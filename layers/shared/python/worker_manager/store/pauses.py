"""Pauses of launch configs, in the control item of their pool.

They are written apart from what planners write there, and conditional on what was read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker_manager.core.errors import ConflictError
from worker_manager.core.plans import pause_json
from worker_manager.store.outbox_items import outbox_item
from worker_manager.store.pool_items import CONTROL, POOL
from worker_manager.store.transactions import commit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from pynamodb.transactions import TransactWrite

    from worker_manager.core.model import Json
    from worker_manager.core.plans import Pause
    from worker_manager.store.tables import Tables


class PauseStore:
    """Table ``pools``, the pauses in control items."""

    def __init__(self, tables: Tables) -> None:
        """Over bound tables."""
        self._tables = tables

    def write(
        self,
        pool_id: str,
        before: Mapping[str, Pause],
        after: Mapping[str, Pause],
        *,
        event: Json | None,
        now: datetime,
        also: Callable[[TransactWrite], None] | None = None,
    ) -> bool:
        """Replace a pool's pauses, with the event that tells of it and what ``also`` adds.

        False, and nothing written, if somebody else changed them since ``before`` was read, or if
        the pool is gone: nothing of it may come back.
        """
        model = self._tables.pools

        def fill(transaction: TransactWrite) -> None:
            unchanged = model.pauses == _stored(before)
            if not before:
                unchanged = model.pauses.does_not_exist() | unchanged
            transaction.update(
                model(pool_id, CONTROL),
                [model.pauses.set(_stored(after))],
                condition=unchanged,
                add_version_condition=False,
            )
            transaction.condition_check(model, pool_id, POOL, model.sk.exists())
            if event is not None:
                transaction.save(outbox_item(self._tables.providers, [event], now))
            if also is not None:
                also(transaction)

        try:
            commit(self._tables.connection, fill)
        except ConflictError:
            return False
        return True


def _stored(pauses: Mapping[str, Pause]) -> dict[str, dict[str, str]]:
    return {name: pause_json(pauses[name]) for name in sorted(pauses)}
