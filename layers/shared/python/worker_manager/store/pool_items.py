"""Definitions of pools as items and back: the short form of heads, and texts of bodies.

Where to read next: ``pools``, which reads and writes them.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from worker_manager.core.breaker import Breaker
from worker_manager.core.model import (
    NULL_PROVIDER,
    Json,
    LaunchConfig,
    LaunchConfigHead,
    Location,
    Pool,
)
from worker_manager.core.moments import from_wire
from worker_manager.core.plans import Control, Pause

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pynamodb.expressions.update import Action
    from pynamodb.transactions import TransactWrite

    from worker_manager.store.tables import PoolItem

POOL = "pool"
CONTROL = "ctl"
BODY = "body#"
"""Sort keys of a definition, of its control item and, followed by an id, of a body."""

MANY_BREAKERS = 100
SHORT_REASON = 30
"""From how many breakers on their reasons are cut, and to how many characters."""


def pool_item(model: type[PoolItem], pool: Pool) -> PoolItem:
    """The item of a pool's definition."""
    return model(
        pool.pool_id,
        POOL,
        version=pool.version,
        provider_id=pool.provider_id,
        description=pool.description,
        owner=pool.owner,
        email_on_error=pool.email_on_error,
        config=pool.config,
        heads=[_head_json(head) for head in pool.heads],
        previous=list(pool.previous_provider_ids),
        created=pool.created,
        modified=pool.modified,
    )


def _head_json(head: LaunchConfigHead) -> list[Any]:
    return [
        head.launch_config_id,
        head.location,
        head.capacity_per_instance,
        round(head.modified.timestamp(), 3),
        head.digest,
        head.manager,
        head.offering,
    ]


def _to_head(stored: Sequence[Any]) -> LaunchConfigHead:
    name, location, capacity, modified, fingerprint, manager, *rest = stored
    return LaunchConfigHead(
        launch_config_id=name,
        location=Location(location),
        manager=manager,
        capacity_per_instance=capacity,
        modified=datetime.fromtimestamp(modified, UTC),
        digest=fingerprint,
        offering=rest[0] if rest else "",
    )


def to_pool(item: PoolItem) -> Pool:
    """A pool's definition as a value."""
    return Pool(
        pool_id=item.worker_pool_id,
        provider_id=item.provider_id or NULL_PROVIDER,
        description=item.description or "",
        owner=item.owner or "",
        email_on_error=bool(item.email_on_error),
        config=item.config or {},
        heads=tuple(_to_head(stored) for stored in item.heads or ()),
        created=_required(item.created),
        modified=_required(item.modified),
        version=int(item.version or 0),
        previous_provider_ids=tuple(item.previous or ()),
    )


def new_locations(provider_id: str, after: Pool, before: Pool | None) -> set[Location]:
    """Where a change of a definition may bring machines of one provider.

    The provider just left may have got some by the definition that is replaced; those left
    earlier have no part in it.  What no cloud launches is nowhere.
    """
    heads: Sequence[LaunchConfigHead] = ()
    if provider_id == after.provider_id:
        heads = after.heads
    elif before is not None and provider_id == before.provider_id:
        heads = before.heads
    return {head.location for head in heads if head.location}


def to_control(item: PoolItem) -> Control:
    """A control item as a value."""
    return Control(
        pool_id=item.worker_pool_id,
        version=int(item.version or 0),
        open_plans=item.open_plans or {},
        reasons_hash=item.reasons_hash or "",
        breakers={
            name: Breaker.from_json(stored) for name, stored in (item.breakers or {}).items()
        },
        pauses={name: to_pause(stored) for name, stored in (item.pauses or {}).items()},
        probed=item.probed,
        probe_wait=timedelta(seconds=float(item.probe_wait or 0)),
    )


def memory(model: type[PoolItem], after: Control) -> list[Action]:
    """What sets the part of a control item that every tick may write: reasons and breakers.

    Pauses are not in it: whoever pauses writes them, whatever the planners do meanwhile.
    """
    return [
        model.reasons_hash.set(after.reasons_hash),
        model.breakers.set(_stored_breakers(after.breakers)),
        model.probed.set(after.probed) if after.probed else model.probed.remove(),
        model.probe_wait.set(after.probe_wait.total_seconds()),
    ]


def _stored_breakers(breakers: Mapping[str, Breaker]) -> dict[str, Any]:
    """Breakers as they are stored: of very many the reasons are cut, so that an item holds them."""
    stored = {name: breaker.to_json() for name, breaker in breakers.items()}
    if len(stored) <= MANY_BREAKERS:
        return stored
    return {name: {**one, "reason": one["reason"][:SHORT_REASON]} for name, one in stored.items()}


def to_pause(stored: Json) -> Pause:
    """From what ``pause_json`` made."""
    return Pause(
        until=from_wire(stored["until"]),
        reason=stored["reason"],
        by=stored["by"],
        since=from_wire(stored["since"]),
    )


def advance_control(
    transaction: TransactWrite, model: type[PoolItem], before: Control, after: Control
) -> None:
    """Add the control item's step from ``before`` to ``after``, if nobody was faster."""
    seen = model.version == before.version
    if before.version == 0:
        seen = model.version.does_not_exist() | seen
    transaction.update(
        model(before.pool_id, CONTROL),
        [
            model.version.set(after.version),
            model.open_plans.set(dict(after.open_plans)),
            *memory(model, after),
        ],
        condition=seen,
        add_version_condition=False,
    )


def to_launch_config(item: PoolItem) -> LaunchConfig:
    """A launch config with its body."""
    return LaunchConfig(
        pool_id=item.worker_pool_id,
        launch_config_id=item.sk.removeprefix(BODY),
        body=json.loads(item.body or "{}"),
        created=_required(item.created),
        manager=item.manager or {},
        modified=item.modified,
    )


def _required(moment: datetime | None) -> datetime:
    if moment is None:
        raise ValueError("an item without its time")
    return moment
