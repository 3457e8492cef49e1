"""From the library's nouns to bodies of the API; nowhere else do the two meet.

Where to read next: ``schemas``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from worker_manager.api.schemas import WorkerFull, WorkerPoolError, WorkerPoolFull
from worker_manager.core.model import State
from worker_manager.core.surplus import has_current_config

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from worker_manager.api.provider_schemas import ProviderStatus
    from worker_manager.core.model import Json, Pool, PoolError, Worker

STATE = rf"^({'|'.join(State)}|standalone)$"
"""Of a worker, in a query; standalone are those that have no row of ours."""
_COUNTED = {state: state for state in State} | {State.CREATED: State.REQUESTED}
"""As what each is counted: who never registered is waited for, whoever was to set it up."""


def counts(states: Iterable[tuple[State, int]]) -> dict[str, int]:
    """The nine counts, by Python name, of workers given as state and capacity."""
    number = dict.fromkeys(_COUNTED.values(), 0)
    capacity = dict.fromkeys(_COUNTED.values(), 0)
    for state, tasks in states:
        number[_COUNTED[state]] += 1
        capacity[_COUNTED[state]] += tasks
    current = sum(capacity.values()) - capacity[State.STOPPED]
    return (
        {"current_capacity": current}
        | {f"{state}_count": number[state] for state in number}
        | {f"{state}_capacity": capacity[state] for state in number}
    )


def pool_full(
    pool: Pool,
    config: Json,
    *,
    states: Iterable[tuple[State, int]] = (),
    provider_status: ProviderStatus | None = None,
) -> WorkerPoolFull:
    """A pool with its assembled config; without ``states`` its counts are zero."""
    told: dict[str, Any] = {**counts(states)}
    if provider_status is not None:
        told["provider_status"] = provider_status
    return WorkerPoolFull(
        worker_pool_id=pool.pool_id,
        provider_id=pool.provider_id,
        description=pool.description,
        created=pool.created,
        last_modified=pool.modified,
        config=dict(config),
        owner=pool.owner,
        email_on_error=pool.email_on_error,
        **told,
    )


def worker_full(
    worker: Worker, *, expires: datetime, last_checked: datetime, **also: Any
) -> WorkerFull:
    """A worker; when it was last checked, and so expires, its location knows.

    ``also`` is what only static ones have; what is ``None`` is left out.
    """
    optional = also | {
        "last_registered": worker.registered,
        "boot_time": worker.boot_time,
        "launch_config_id": worker.launch_config_id,
        "decision_id": worker.decision,
        "stop_reason": worker.stop_reason,
        "stopped_by": worker.stopped_by,
    }
    return WorkerFull(
        worker_pool_id=worker.key.pool_id,
        worker_group=worker.key.group,
        worker_id=worker.key.worker_id,
        provider_id=worker.provider_id,
        created=worker.created,
        expires=expires,
        last_modified=worker.modified,
        last_checked=last_checked,
        state=worker.state,
        capacity=worker.capacity,
        **{name: value for name, value in optional.items() if value is not None},
    )


def currency(worker: Worker, pool: Pool | None) -> dict[str, Any]:
    """Which launch config a static worker has, and whether its pool's is the same.

    Nothing where neither has any: what such a pool says is not kept with who got it.
    """
    active = {head.launch_config_id for head in pool.heads} if pool else set()
    if worker.launch_config_id is None and not active:
        return {}
    told: dict[str, Any] = {"has_current_launch_config": has_current_config(worker, active)}
    if worker.launch_config_id is not None:
        told["launch_config_id"] = worker.launch_config_id
    return told


def pool_error(error: PoolError) -> WorkerPoolError:
    """An error as its pool's owner sees it."""
    optional: dict[str, Any] = {}
    if error.launch_config_id is not None:
        optional["launch_config_id"] = error.launch_config_id
    return WorkerPoolError(
        worker_pool_id=error.pool_id,
        error_id=error.error_id,
        reported=error.reported,
        kind=error.kind,
        title=error.title,
        description=error.description,
        extra=dict(error.extra),
        **optional,
    )
