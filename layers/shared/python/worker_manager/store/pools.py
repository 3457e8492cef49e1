"""Definitions of worker pools: one item with the heads, one a launch config with its body.

Bodies are written first and never change; the commit of a pool change is one transaction over the
pool, its memberships, its place in the list of all pools, and the events that tell of it.
Where to read next: ``bodies``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from worker_manager.core.model import NULL_PROVIDER, Json, Pool
from worker_manager.core.plans import Control
from worker_manager.store.bodies import Bodies
from worker_manager.store.outbox_items import outbox_item
from worker_manager.store.places import ALL, membership_item
from worker_manager.store.pool_items import (
    CONTROL,
    POOL,
    advance_control,
    new_locations,
    pool_item,
    to_control,
    to_pool,
)
from worker_manager.store.transactions import commit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pynamodb.transactions import TransactWrite

    from worker_manager.store.tables import Tables
    from worker_manager.store.transactions import Writes


@dataclass(frozen=True, slots=True)
class PoolChange:
    """One change of a definition.

    ``before`` is the definition it replaces, as read (``None`` when new); ``bodies`` those of the
    heads in ``after``; ``events`` what the change tells; ``also`` adds what is written with it.
    """

    after: Pool
    before: Pool | None
    bodies: Mapping[str, Json]
    events: Sequence[Json]
    also: Writes | None = None


class PoolStore(Bodies):
    """Table ``pools``, definitions, bodies and control items."""

    def __init__(self, tables: Tables) -> None:
        """Over bound tables; pool changes also touch the table ``providers``."""
        super().__init__(tables)
        self._tables = tables

    def get(self, pool_id: str) -> Pool | None:
        """The definition, read consistently."""
        try:
            return to_pool(self._model.get(pool_id, POOL, consistent_read=True))
        except self._model.DoesNotExist:
            return None

    def get_with_control(self, pool_id: str) -> tuple[Pool | None, Control]:
        """The definition and its control item, in one consistent request."""
        keys = [(pool_id, CONTROL), (pool_id, POOL)]
        found = {item.sk: item for item in self._model.batch_get(keys, consistent_read=True)}
        control = found.get(CONTROL)
        return (
            to_pool(found[POOL]) if POOL in found else None,
            to_control(control) if control else Control(pool_id),
        )

    def control(self, pool_id: str) -> Control:
        """The control item alone, read consistently."""
        try:
            return to_control(self._model.get(pool_id, CONTROL, consistent_read=True))
        except self._model.DoesNotExist:
            return Control(pool_id)

    def save(self, change: PoolChange) -> None:
        """Commit a change: all of it, or nothing but what without it means nothing.

        Raises ``DuplicateError`` if a launch config id stands for other content, archived or not,
        and ``ConflictError`` if somebody else changed the pool first.
        """
        self._write_bodies(change.before, change.after, change.bodies)
        commit(self._tables.connection, lambda transaction: self._fill(transaction, change))

    def ids(self, *, after: str | None = None, limit: int | None = None) -> Iterator[str]:
        """Ids of all pools, in order, beyond ``after``."""
        model = self._tables.providers
        condition = model.worker_pool_id > after if after else None
        for item in model.query(ALL, condition, limit=limit, consistent_read=True):
            yield item.worker_pool_id

    def drop_previous(self, pool: Pool, control: Control, provider_id: str) -> Pool:
        """Forget a previous provider of a pool, once nothing of it is left there.

        It passes the pool's fence, so that a planner who read the pool while it was still the
        provider's cannot note a plan any more: nobody would look after its machines.
        Returns the pool as it is afterwards.  Raises ``ConflictError`` if it, or ``control``,
        changed meanwhile.
        """
        left = tuple(p for p in pool.previous_provider_ids if p != provider_id)

        def fill(transaction: TransactWrite) -> None:
            transaction.update(
                self._model(pool.pool_id, POOL),
                [
                    self._model.previous.set(list(left)),
                    self._model.version.set(pool.version + 1),
                ],
                condition=self._model.version == pool.version,
                add_version_condition=False,
            )
            transaction.delete(
                self._tables.providers(provider_id, pool.pool_id), add_version_condition=False
            )
            passed = replace(control, version=control.version + 1)
            advance_control(transaction, self._model, control, passed)

        commit(self._tables.connection, fill)
        return replace(pool, previous_provider_ids=left, version=pool.version + 1)

    def remove(self, pool: Pool) -> None:
        """Remove a deleted pool for good; its workers are gone already.

        Raises ``ConflictError`` if it changed meanwhile.
        """

        def fill(transaction: TransactWrite) -> None:
            transaction.delete(
                self._model(pool.pool_id, POOL),
                condition=self._model.version == pool.version,
                add_version_condition=False,
            )
            transaction.delete(self._model(pool.pool_id, CONTROL), add_version_condition=False)
            transaction.delete(
                self._tables.providers(ALL, pool.pool_id), add_version_condition=False
            )

        commit(self._tables.connection, fill)

    def _fill(self, transaction: TransactWrite, change: PoolChange) -> None:
        after, before = change.after, change.before
        version = self._model.version
        transaction.save(
            pool_item(self._model, after),
            condition=version == before.version if before else self._model.sk.does_not_exist(),
        )
        providers = self._tables.providers
        transaction.save(providers(ALL, after.pool_id))
        for provider_id in (after.provider_id, *after.previous_provider_ids):
            if provider_id == NULL_PROVIDER:
                continue
            current = provider_id == after.provider_id
            transaction.update(
                *membership_item(
                    self._tables.providers,
                    provider_id,
                    after.pool_id,
                    locations=new_locations(provider_id, after, before),
                    previous=not current,
                ),
                add_version_condition=False,
            )
        if change.events:
            transaction.save(outbox_item(providers, change.events, after.modified))
        if change.also is not None:
            change.also(transaction)
