"""Definitions of worker pools: one item with the heads, one a launch config with its body.

Bodies are written first and never change; the commit of a pool change is one transaction over the
pool, its memberships, its place in the list of all pools, and the events that tell of it.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pynamodb.exceptions import PutError, UpdateError

from worker_manager.core.definition import digest
from worker_manager.core.errors import DuplicateError
from worker_manager.core.model import (
    NULL_PROVIDER,
    Control,
    Json,
    LaunchConfig,
    LaunchConfigHead,
    Pool,
)
from worker_manager.store.places import ALL, membership_item, outbox_item
from worker_manager.store.pool_items import (
    BODY,
    CONTROL,
    POOL,
    advance_control,
    new_locations,
    pool_item,
    to_control,
    to_launch_config,
    to_pool,
)
from worker_manager.store.transactions import commit, is_condition_failure

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from pynamodb.expressions.condition import Condition
    from pynamodb.expressions.update import Action
    from pynamodb.transactions import TransactWrite

    from worker_manager.store.tables import PoolItem, Tables
    from worker_manager.store.transactions import Writes

PARALLEL = 8


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


class PoolStore:
    """Table ``pools``, definitions and control items."""

    def __init__(self, tables: Tables) -> None:
        """Over bound tables; pool changes also touch the table ``providers``."""
        self._tables = tables
        self._model = tables.pools

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

    def bodies(
        self, pool_id: str, ids: Collection[str] | None = None, *, now: datetime
    ) -> dict[str, LaunchConfig]:
        """Bodies by launch config id: those of ``ids``, or all, archived ones included.

        Those that expired before ``now`` are gone, whatever still lies around.
        """
        items: Iterable[PoolItem]
        if ids is None:
            items = self._model.query(
                pool_id, self._model.sk.startswith(BODY), consistent_read=True
            )
        else:
            keys = [(pool_id, BODY + name) for name in ids]
            items = self._model.batch_get(keys, consistent_read=True) if keys else ()
        return {
            config.launch_config_id: config
            for item in items
            if item.ttl is None or item.ttl > now.timestamp()
            for config in [to_launch_config(item)]
        }

    def body(self, pool_id: str, launch_config_id: str, *, now: datetime) -> Json | None:
        """One body, archived or not."""
        found = self.bodies(pool_id, [launch_config_id], now=now).get(launch_config_id)
        return found.body if found else None

    def save(self, change: PoolChange) -> None:
        """Commit a change: all of it, or nothing but what without it means nothing.

        Raises ``DuplicateError`` if a launch config id stands for other content, archived or not,
        and ``ConflictError`` if somebody else changed the pool first.
        """
        known = {h.launch_config_id: h.digest for h in change.before.heads} if change.before else {}
        new = []
        for head in change.after.heads:
            was = known.get(head.launch_config_id)
            if was is None:
                new.append(head)
            elif was != head.digest:
                raise DuplicateError(_other_content(head.launch_config_id))
        self._put_bodies(change, new)
        self._keep_managers(change)
        commit(self._tables.connection, lambda transaction: self._fill(transaction, change))

    def ids(self, *, after: str | None = None, limit: int | None = None) -> Iterator[str]:
        """Ids of all pools, in order, beyond ``after``."""
        model = self._tables.providers
        condition = model.worker_pool_id > after if after else None
        for item in model.query(ALL, condition, limit=limit, consistent_read=True):
            yield item.worker_pool_id

    def body_ends(self, pool_id: str) -> dict[str, bool]:
        """Launch config ids of all bodies, archived ones included, and whether each has an end."""
        items = self._model.query(
            pool_id, self._model.sk.startswith(BODY), attributes_to_get=["sk", "ttl"]
        )
        return {item.sk.removeprefix(BODY): item.ttl is not None for item in items}

    def keep_body(self, pool_id: str, launch_config_id: str) -> None:
        """Take a body's end away, if it is still there."""
        self._update_body(
            pool_id,
            launch_config_id,
            self._model.ttl.remove(),
            condition=self._model.body.exists(),
        )

    def expire_body(self, pool_id: str, launch_config_id: str, at: datetime) -> None:
        """Let an archived launch config's body go at ``at``, unless that is settled already."""
        self._update_body(
            pool_id,
            launch_config_id,
            self._model.ttl.set(int(at.timestamp())),
            condition=self._model.ttl.does_not_exist() & self._model.body.exists(),
        )

    def _update_body(
        self, pool_id: str, launch_config_id: str, *actions: Action, condition: Condition
    ) -> None:
        """Change one body's item where ``condition`` holds; elsewhere nothing is to be done."""
        try:
            self._model(pool_id, BODY + launch_config_id).update(
                list(actions), condition=condition, add_version_condition=False
            )
        except UpdateError as error:
            if not is_condition_failure(error):
                raise

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

    def _put_bodies(self, change: PoolChange, heads: Sequence[LaunchConfigHead]) -> None:
        def put(head: LaunchConfigHead) -> None:
            self._put_body(change.after, head, change.bodies[head.launch_config_id])

        _for_each(heads, put)

    def _keep_managers(self, change: PoolChange) -> None:
        """Write what the heads of launch configs that go say of them to their bodies.

        Before the commit, as one transaction has no room for all.  Without it, it means nothing:
        while there is a head, that counts.  Of two changes at once the later head stays.
        """
        stay = {head.launch_config_id for head in change.after.heads}
        gone = change.before.heads if change.before else ()
        modified = self._model.modified

        def keep(head: LaunchConfigHead) -> None:
            self._update_body(
                change.after.pool_id,
                head.launch_config_id,
                self._model.manager.set(head.manager),
                modified.set(head.modified),
                condition=self._model.body.exists()
                & (modified.does_not_exist() | (modified <= head.modified)),
            )

        _for_each([head for head in gone if head.launch_config_id not in stay], keep)

    def _put_body(self, pool: Pool, head: LaunchConfigHead, body: Json) -> None:
        item = self._model(
            pool.pool_id,
            BODY + head.launch_config_id,
            body=json.dumps(body, separators=(",", ":"), ensure_ascii=False),
            created=pool.modified,
        )
        expired = self._model.ttl < int(pool.modified.timestamp())
        try:
            item.save(condition=self._model.sk.does_not_exist() | expired)
            return
        except PutError as error:
            if not is_condition_failure(error):
                raise
        stored = self._model.get(pool.pool_id, BODY + head.launch_config_id, consistent_read=True)
        if digest(json.loads(stored.body)) != head.digest:
            raise DuplicateError(_other_content(head.launch_config_id))
        if stored.ttl is not None:
            self.keep_body(pool.pool_id, head.launch_config_id)

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


def _for_each(heads: Sequence[LaunchConfigHead], write: Callable[[LaunchConfigHead], None]) -> None:
    """Write something of each head, side by side if they are many."""
    if len(heads) < PARALLEL:
        for head in heads:
            write(head)
        return
    with ThreadPoolExecutor(PARALLEL) as threads:
        list(threads.map(write, heads))


def _other_content(launch_config_id: str) -> str:
    return (
        f"launch config {launch_config_id!r} exists with other content; "
        "its content never changes, give the new one another id"
    )
