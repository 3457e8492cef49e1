"""Changing a pool's definition: what becomes of its launch configs, and who must hear of it.

Reading, deciding and writing are repeated when somebody else changed the pool meanwhile; a
definition is replaced as a whole, so nothing of either caller is mixed.
Where to read next: ``core.definition``, ``store.pools``.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from worker_manager.api import audit
from worker_manager.api.refusals import Refusal, not_found, unavailable
from worker_manager.core import events
from worker_manager.core.definition import Difference, Parts, compare, keep_modified
from worker_manager.core.errors import ConflictError
from worker_manager.core.messages import pool_changed
from worker_manager.core.model import NULL_PROVIDER, Pool
from worker_manager.queues import Message
from worker_manager.store.outbox_items import outbox_key
from worker_manager.store.pools import PoolChange
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime

    from worker_manager.api.deps import ApiDeps
    from worker_manager.api.routing import Call
    from worker_manager.api.schemas import CreateWorkerPoolRequest
    from worker_manager.core.audit import Action
    from worker_manager.core.model import Json

ATTEMPTS = 6
"""How often a change is decided anew when others change the same pool at the same time."""


def new_pool(pool_id: str, body: CreateWorkerPoolRequest, parts: Parts, now: datetime) -> Pool:
    """The first version of a pool."""
    return Pool(
        pool_id=pool_id,
        provider_id=body.provider_id,
        description=body.description,
        owner=body.owner,
        email_on_error=body.email_on_error,
        config=parts.root,
        heads=parts.heads,
        created=now,
        modified=now,
        version=1,
    )


def replaced(before: Pool, body: CreateWorkerPoolRequest, parts: Parts, now: datetime) -> Pool:
    """The next version of a pool, with another definition."""
    return replace(
        new_pool(before.pool_id, body, parts, now),
        heads=keep_modified(before.heads, parts.heads),
        created=before.created,
        version=before.version + 1,
        previous_provider_ids=previous_providers(before, body.provider_id),
    )


def previous_providers(before: Pool, provider_id: str) -> tuple[str, ...]:
    """Who may still have machines of the pool after it moves to ``provider_id``.

    The null provider never has any, so it is not remembered.
    """
    if before.provider_id == provider_id:
        return before.previous_provider_ids
    gone = {before.provider_id, provider_id}
    kept = [name for name in before.previous_provider_ids if name not in gone]
    if before.provider_id != NULL_PROVIDER:
        kept.append(before.provider_id)
    return tuple(kept)


def deleted(before: Pool, now: datetime) -> Pool:
    """The pool given to the null provider, without launch configs; the rest stays readable."""
    return replace(
        before,
        provider_id=NULL_PROVIDER,
        heads=(),
        modified=now,
        version=before.version + 1,
        previous_provider_ids=previous_providers(before, NULL_PROVIDER),
    )


def is_same(pool: Pool, asked: Pool) -> bool:
    """Whether a pool is what ``asked`` describes; the order of launch configs has no meaning."""

    def essence(one: Pool) -> tuple[Any, ...]:
        heads = {h.launch_config_id: (h.location, h.manager, h.digest) for h in one.heads}
        return one.provider_id, one.description, one.owner, one.email_on_error, one.config, heads

    return essence(pool) == essence(asked)


def created_events(pool: Pool) -> list[Json]:
    """What is told of a new pool: itself, then each launch config."""
    told = events.pool_event(
        events.POOL_CREATED,
        pool.pool_id,
        pool.provider_id,
        created=pool.created,
        version=pool.version,
    )
    return [told, *_launch_config_events(pool, compare((), pool.heads))]


def updated_events(before: Pool, after: Pool) -> list[Json]:
    """What is told of a change, with the provider before it, changed or not."""
    told = events.pool_event(
        events.POOL_UPDATED,
        after.pool_id,
        after.provider_id,
        created=after.created,
        version=after.version,
        previous=before.provider_id,
    )
    return [told, *_launch_config_events(after, compare(before.heads, after.heads))]


def _launch_config_events(pool: Pool, difference: Difference) -> Iterator[Json]:
    for name, ids in (
        (events.LAUNCH_CONFIG_UPDATED, difference.updated),
        (events.LAUNCH_CONFIG_CREATED, difference.created),
        (events.LAUNCH_CONFIG_ARCHIVED, difference.archived),
    ):
        for launch_config_id in ids:
            yield events.launch_config_event(
                name,
                pool.pool_id,
                pool.provider_id,
                launch_config_id,
                created=pool.created,
                version=pool.version,
            )


def create(call: Call, deps: ApiDeps, pool: Pool, bodies: Mapping[str, Json]) -> Pool:
    """Write a pool that does not exist; one that is the same already is told of again.

    Refused with a 409 if it exists with another definition.
    """
    for _ in range(ATTEMPTS):
        there = deps.stores.pools.get(pool.pool_id)
        if there is not None:
            if not is_same(there, pool):
                raise Refusal("RequestConflict", "Worker pool already exists")
            told = created_events(there)
            with after_commit("publishing the creation of a pool again"):
                deps.outbox.send(outbox_key(told, there.modified), told)
            return there
        entry = audit.of_pool(call, deps, "created", before=None, after=pool, bodies=bodies)
        change = PoolChange(
            after=pool,
            before=None,
            bodies=bodies,
            events=created_events(pool),
            also=deps.audit.writes(entry),
        )
        try:
            deps.stores.pools.save(change)
        except ConflictError:
            continue
        audit.log(entry)
        _tell(deps, change)
        return pool
    raise unavailable()


def change(
    call: Call,
    deps: ApiDeps,
    action: Action,
    decide: Callable[[Pool], Pool | None],
    *,
    bodies: Mapping[str, Json],
) -> Pool:
    """Replace the path's pool by what ``decide`` makes of it (``None``: it is right as it is)."""
    for _ in range(ATTEMPTS):
        before = deps.stores.pools.get(call.pool_id)
        if before is None:
            raise not_found(f"Worker pool {call.pool_id!r} does not exist")
        after = decide(before)
        if after is None:
            return before
        entry = audit.of_pool(call, deps, action, before=before, after=after, bodies=bodies)
        made = PoolChange(
            after=after,
            before=before,
            bodies=bodies,
            events=updated_events(before, after),
            also=deps.audit.writes(entry),
        )
        try:
            deps.stores.pools.save(made)
        except ConflictError:
            continue
        audit.log(entry)
        _tell(deps, made)
        return after
    raise unavailable()


def _tell(deps: ApiDeps, change: PoolChange) -> None:
    """Publish, and have the pool planned at once by whoever has machines of it."""
    pool = change.after
    with after_commit("publishing the change of a pool"):
        deps.outbox.send(outbox_key(change.events, pool.modified), change.events)
    message = pool_changed(pool.pool_id, pool.version, changed=pool.modified)
    for provider_id in (pool.provider_id, *pool.previous_provider_ids):
        sender = deps.senders.get(provider_id, {}).get("provision")
        if sender is None:
            continue
        with after_commit("asking for a plan of a changed pool"):
            sender.send([Message(message.to_json(), group=pool.pool_id, dedup=message.dedup)])


@contextmanager
def after_commit(step: str) -> Iterator[None]:
    """What follows a commit and repairs itself later: its failure is logged, and no one's error."""
    try:
        yield
    except Exception:
        logger.exception("left for later", step=step)
