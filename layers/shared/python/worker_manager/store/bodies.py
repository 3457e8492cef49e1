"""Bodies of launch configs: one item each, archived ones too until nothing refers to them.

Where to read next: ``pools``, which writes them with a pool's definition.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from pynamodb.exceptions import PutError, UpdateError

from worker_manager.core.definition import digest
from worker_manager.core.errors import DuplicateError
from worker_manager.store.pool_items import BODY, to_launch_config
from worker_manager.store.transactions import is_condition_failure

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from datetime import datetime

    from pynamodb.expressions.condition import Condition
    from pynamodb.expressions.update import Action

    from worker_manager.core.model import Json, LaunchConfig, LaunchConfigHead, Pool
    from worker_manager.store.tables import PoolItem, Tables

PARALLEL = 8


class Bodies:
    """Table ``pools``, bodies."""

    def __init__(self, tables: Tables) -> None:
        """Over bound tables."""
        self._model = tables.pools

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

    def _write_bodies(self, before: Pool | None, after: Pool, bodies: Mapping[str, Json]) -> None:
        """Write what must be there before ``after`` is committed instead of ``before``.

        Raises ``DuplicateError`` if a launch config id stands for other content, archived or not.
        """
        known = {head.launch_config_id: head.digest for head in before.heads} if before else {}
        new = []
        for head in after.heads:
            was = known.get(head.launch_config_id)
            if was is None:
                new.append(head)
            elif was != head.digest:
                raise DuplicateError(_other_content(head.launch_config_id))
        _for_each(new, lambda head: self._put_body(after, head, bodies[head.launch_config_id]))
        if before is not None:
            stay = {head.launch_config_id for head in after.heads}
            gone = [head for head in before.heads if head.launch_config_id not in stay]
            _for_each(gone, lambda head: self._keep_manager(after.pool_id, head))

    def _keep_manager(self, pool_id: str, head: LaunchConfigHead) -> None:
        """Write to the body of a launch config that goes what its head says of it.

        Not in the commit, as a transaction has no room for all.  If that fails, it means nothing:
        while there is a head, that counts.  Of two changes at once the later head stays.
        """
        modified = self._model.modified
        self._update_body(
            pool_id,
            head.launch_config_id,
            self._model.manager.set(head.manager),
            modified.set(head.modified),
            condition=self._model.body.exists()
            & (modified.does_not_exist() | (modified <= head.modified)),
        )

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
