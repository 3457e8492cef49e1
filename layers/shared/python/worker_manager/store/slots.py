"""Who holds room in a store of a cloud that pools share and that fills up.

A counter for each store, and an item for each order with the machines that still hold a slot; both
change in one transaction, so that orders sent at the same time never hold more than there is room
for, and a slot given back twice is free once.  What a crash never gave back is taken back by its
age.  Where to read next: ``providers.protocol.Slots``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pynamodb.exceptions import TransactWriteError

from worker_manager.core.errors import ConflictError
from worker_manager.store.transactions import commit

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from pynamodb.connection import Connection
    from pynamodb.transactions import TransactWrite

    from worker_manager.store.tables import ProviderItem, Tables

SLOTS = "#slots#"
"""Begins the partition of a provider's stores: there ``used#<store>`` and ``<store>#<order>``."""


class SlotStore:
    """Table ``providers``, items of slots."""

    def __init__(self, tables: Tables) -> None:
        """Over bound tables."""
        self._connection: Connection = tables.connection
        self._model = tables.providers

    def take(
        self,
        provider_id: str,
        name: str,
        order_id: str,
        machines: Collection[str],
        *,
        most: int,
        now: datetime,
    ) -> bool:
        """Hold a slot for each machine of an order; false if fewer are free.

        An order that holds, or held, slots of this store already keeps what it has.
        """
        model, partition, count = self._model, SLOTS + provider_id, len(machines)
        if self._order(partition, name, order_id) is not None:
            return True

        def fill(transaction: TransactWrite) -> None:
            transaction.update(
                model(partition, f"used#{name}"),
                [model.slots.add(count)],
                condition=model.slots.does_not_exist() | (model.slots <= most - count),
            )
            transaction.save(
                model(
                    partition, f"{name}#{order_id}", slots=count, holders=set(machines), since=now
                ),
                condition=model.worker_pool_id.does_not_exist(),
            )

        if count > most:
            return False
        try:
            commit(self._connection, fill)
        except ConflictError:
            return self._order(partition, name, order_id) is not None
        except TransactWriteError:
            # So many are at it that it is as good as full: who waits a little finds out.
            return False
        return True

    def give_back(
        self, provider_id: str, name: str, order_id: str, machines: Collection[str]
    ) -> None:
        """Free the slots that these machines of an order still hold."""
        partition = SLOTS + provider_id
        while item := self._order(partition, name, order_id):
            freed = (item.holders or set()).intersection(machines)
            if not freed or self._free(item, name, freed):
                return

    def used(self, provider_id: str, name: str) -> int:
        """How many slots of a store are held."""
        item = self._item(SLOTS + provider_id, f"used#{name}")
        return int(item.slots or 0) if item is not None else 0

    def keep_only(self, provider_id: str, order_id: str, machines: Collection[str]) -> None:
        """Free whatever an order holds but the slots of these machines."""
        for item in self._model.query(
            SLOTS + provider_id,
            filter_condition=self._model.worker_pool_id.contains(f"#{order_id}"),
            consistent_read=True,
        ):
            name, _, order = item.worker_pool_id.rpartition("#")
            others = (item.holders or set()).difference(machines)
            if order == order_id and others:
                self.give_back(provider_id, name, order_id, others)

    def names(self, provider_id: str) -> frozenset[str]:
        """The stores in which orders of a provider have, or had, slots."""
        begins = "used#"
        used = self._model.query(
            SLOTS + provider_id, self._model.worker_pool_id.startswith(begins), consistent_read=True
        )
        return frozenset(item.worker_pool_id.removeprefix(begins) for item in used)

    def take_back(self, provider_id: str, *, before: datetime) -> int:
        """Free what orders hold since before a moment, and forget them; the number of slots."""
        partition, freed = SLOTS + provider_id, 0
        for item in self._model.query(partition, consistent_read=True):
            if item.since is None or item.since >= before:
                continue
            held = item.holders or set()
            if held and not self._free(item, item.worker_pool_id.rpartition("#")[0], held):
                continue
            freed += len(held)
            item.delete(condition=self._model.slots == 0)
        return freed

    def _free(self, item: ProviderItem, name: str, machines: Collection[str]) -> bool:
        """Take slots from an order; false if it holds others by now than ``item`` says."""
        model, count = self._model, len(machines)

        def fill(transaction: TransactWrite) -> None:
            transaction.update(
                model(item.provider_id, item.worker_pool_id),
                [model.slots.add(-count), model.holders.delete(set(machines))],
                condition=model.slots == item.slots,
            )
            transaction.update(model(item.provider_id, f"used#{name}"), [model.slots.add(-count)])

        try:
            commit(self._connection, fill)
        except ConflictError:
            return False
        return True

    def _order(self, partition: str, name: str, order_id: str) -> ProviderItem | None:
        return self._item(partition, f"{name}#{order_id}")

    def _item(self, partition: str, key: str) -> ProviderItem | None:
        try:
            return self._model.get(partition, key, consistent_read=True)
        except self._model.DoesNotExist:
            return None
