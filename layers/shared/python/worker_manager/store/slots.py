"""Who holds room in a store of a cloud that pools share and that fills up.

A counter for each store, and an item for each order with what it still holds; both change in one
transaction, so that orders sent at the same time never hold more than there is room for.  What a
crash never gave back is taken back by its age.  Where to read next: ``providers.protocol.Slots``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker_manager.core.errors import ConflictError
from worker_manager.store.transactions import commit

if TYPE_CHECKING:
    from datetime import datetime

    from pynamodb.connection import Connection
    from pynamodb.transactions import TransactWrite

    from worker_manager.store.tables import Tables

SLOTS = "#slots#"
"""Begins the partition of a provider's stores: there ``used#<store>`` and ``<store>#<order>``."""


class SlotStore:
    """Table ``providers``, items of slots."""

    def __init__(self, tables: Tables) -> None:
        """Over bound tables."""
        self._connection: Connection = tables.connection
        self._model = tables.providers

    def take(
        self, provider_id: str, name: str, order_id: str, count: int, *, most: int, now: datetime
    ) -> bool:
        """Hold ``count`` slots for an order; false if fewer are free.

        An order that holds, or held, slots of this store already keeps what it has.
        """
        model, partition = self._model, SLOTS + provider_id
        if self._held(partition, f"{name}#{order_id}") is not None:
            return True

        def fill(transaction: TransactWrite) -> None:
            transaction.update(
                model(partition, f"used#{name}"),
                [model.slots.add(count)],
                condition=model.slots.does_not_exist() | (model.slots <= most - count),
            )
            transaction.save(
                model(partition, f"{name}#{order_id}", slots=count, since=now),
                condition=model.worker_pool_id.does_not_exist(),
            )

        if count > most:
            return False
        try:
            commit(self._connection, fill)
        except ConflictError:
            return self._held(partition, f"{name}#{order_id}") is not None
        return True

    def give_back(self, provider_id: str, name: str, order_id: str, count: int) -> None:
        """Free ``count`` slots of an order; of more than it holds, all that it holds."""
        partition, key = SLOTS + provider_id, f"{name}#{order_id}"
        while count > 0 and (held := self._held(partition, key)):
            freed = min(count, held)
            if self._free(partition, name, key, held=held, freed=freed):
                return

    def used(self, provider_id: str, name: str) -> int:
        """How many slots of a store are held."""
        return self._held(SLOTS + provider_id, f"used#{name}") or 0

    def take_back(self, provider_id: str, *, before: datetime) -> int:
        """Free what orders hold since before a moment, and forget them; the number of slots."""
        partition, freed = SLOTS + provider_id, 0
        for item in self._model.query(partition, consistent_read=True):
            key = item.worker_pool_id
            if item.since is None or item.since >= before:
                continue
            name = key.rpartition("#")[0]
            held = int(item.slots or 0)
            if held and not self._free(partition, name, key, held=held, freed=held):
                continue
            freed += held
            item.delete(condition=self._model.slots == 0)
        return freed

    def _free(self, partition: str, name: str, key: str, *, held: int, freed: int) -> bool:
        """Take slots from an order that holds ``held``; false if it holds others by now."""
        model = self._model

        def fill(transaction: TransactWrite) -> None:
            transaction.update(
                model(partition, key), [model.slots.add(-freed)], condition=model.slots == held
            )
            transaction.update(model(partition, f"used#{name}"), [model.slots.add(-freed)])

        try:
            commit(self._connection, fill)
        except ConflictError:
            return False
        return True

    def _held(self, partition: str, key: str) -> int | None:
        """What an item counts; ``None`` if there is none."""
        try:
            item = self._model.get(partition, key, consistent_read=True)
        except self._model.DoesNotExist:
            return None
        return int(item.slots or 0)
