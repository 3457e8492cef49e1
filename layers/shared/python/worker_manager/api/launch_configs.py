"""The launch configs of a pool one by one: how each fares.

Where to read next: ``steering`` (taking one out of use), ``core.standing`` (what a weight is made
of), ``explanations``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from worker_manager.api import paging
from worker_manager.api.plan_schemas import (
    BreakerAnswer,
    CapacityAnswer,
    HealthAnswer,
    LaunchConfigDetail,
    LaunchConfigDetailList,
    PauseAnswer,
)
from worker_manager.api.refusals import not_found
from worker_manager.api.routing import PAGING, Call, Route
from worker_manager.core.explaining import status_of
from worker_manager.core.health import Health
from worker_manager.core.ids import is_identifier
from worker_manager.core.moments import whole_milliseconds
from worker_manager.core.planning import standings
from worker_manager.core.tally import Counts
from worker_manager.observing import look_around, observe

if TYPE_CHECKING:
    from collections.abc import Mapping

    from worker_manager.api.deps import ApiDeps
    from worker_manager.core.facts import Facts
    from worker_manager.core.model import LaunchConfig, LaunchConfigHead, Pool
    from worker_manager.core.plans import Control
    from worker_manager.core.standing import Standing

_GET = "worker-manager:get-worker-pool:<workerPoolId>"


@dataclass(frozen=True, slots=True)
class Seen:
    """A pool with where each of its launch configs stands; ``is_launched`` if by anybody."""

    facts: Facts
    standings: Mapping[str, Standing]
    counts: Mapping[str, Counts]
    is_launched: bool

    @property
    def pool(self) -> Pool:
        """Its definition."""
        return self.facts.pool


def list_of_pool(call: Call, deps: ApiDeps) -> LaunchConfigDetailList:
    """A page of launch configs by id, with status, weight, health and breaker."""
    size = paging.page_size(call.query)
    after = paging.position(call.query, is_identifier) or ""
    seen = look(*existing(call.pool_id, deps), deps)
    pool = seen.pool
    active = {head.launch_config_id: head for head in pool.heads}
    if call.query.get("includeArchived") == "true":
        bodies = deps.stores.pools.bodies(pool.pool_id, now=deps.clock())
        ids = sorted(name for name in bodies.keys() | active.keys() if name > after)
    else:
        ids = sorted(name for name in active if name > after)
        bodies = deps.stores.pools.bodies(pool.pool_id, ids[:size], now=deps.clock())
    items = (_detail(seen, bodies[name], active.get(name)) for name in ids[:size])
    page = list(paging.cut(items, paging.size_of, most_bytes=deps.page_bytes))
    is_last = len(page) == len(ids)
    return LaunchConfigDetailList(
        worker_pool_launch_configs=page,
        **paging.with_token(None if is_last else page[-1].launch_config_id),
    )


def get(call: Call, deps: ApiDeps) -> LaunchConfigDetail:
    """One launch config, an archived one too while it is kept."""
    return show(look(*existing(call.pool_id, deps), deps), call.params["launchConfigId"], deps)


def look(pool: Pool, control: Control, deps: ApiDeps) -> Seen:
    """See where each launch config of a pool stands; of the queue nothing is asked."""
    now = whole_milliseconds(deps.clock())
    facts = observe(
        pool,
        control,
        look_around(pool, deps.stores, timing=deps.timing, now=now),
        stores=deps.stores,
        queue=None,
        timing=deps.timing,
        now=now,
    )
    counted = facts.tally
    found = {s.head.launch_config_id: s for s in standings(facts, counted, None)}
    return Seen(facts, found, counted.by_launch_config, pool.provider_id in deps.senders)


def existing(pool_id: str, deps: ApiDeps) -> tuple[Pool, Control]:
    """A pool's definition and control item; a 404 if there is no such pool."""
    pool, control = deps.stores.pools.get_with_control(pool_id)
    if pool is None:
        raise not_found(f"Worker pool {pool_id!r} does not exist")
    return pool, control


def show(seen: Seen, name: str, deps: ApiDeps) -> LaunchConfigDetail:
    """One launch config, archived or not; a 404 if there is none of this name."""
    body = deps.stores.pools.bodies(seen.pool.pool_id, [name], now=deps.clock()).get(name)
    if body is None:
        raise not_found(f"Launch config {name!r} does not exist")
    head = next((h for h in seen.pool.heads if h.launch_config_id == name), None)
    return _detail(seen, body, head)


def _detail(seen: Seen, config: LaunchConfig, head: LaunchConfigHead | None) -> LaunchConfigDetail:
    manager = config.manager if head is None else head.manager
    modified = config.modified if head is None else head.modified
    return LaunchConfigDetail(
        launch_config_id=config.launch_config_id,
        worker_pool_id=seen.pool.pool_id,
        is_archived=head is None,
        configuration={**config.body, **({"workerManager": dict(manager)} if manager else {})},
        created=config.created,
        last_modified=modified or config.created,
        **(_how_it_fares(seen, head) if head is not None else {"status": "archived"}),
    )


def _how_it_fares(seen: Seen, head: LaunchConfigHead) -> dict[str, Any]:
    name = head.launch_config_id
    standing = seen.standings[name]
    counts = seen.counts.get(name, Counts())
    health = seen.facts.health.get(name, Health())
    capacity = CapacityAnswer(
        running=counts.running,
        requested=counts.requested,
        stopping=counts.stopping,
        quarantined=counts.quarantined,
    )
    if not seen.is_launched:
        return {"status": "active", "capacity": capacity}
    told: dict[str, Any] = {
        "status": status_of(standing),
        "weight": round(standing.weight, 6),
        "health": HealthAnswer(
            requested=health.requested,
            launched=health.launched,
            registered=health.registered,
            claimed=health.claimed,
            failed=dict(health.failed),
            factor=round(standing.factor, 6),
        ),
        "capacity": capacity,
    }
    if standing.held is not None:
        told["held"] = standing.held.value
    if standing.pause is not None:
        pause = standing.pause
        told["pause"] = PauseAnswer(
            until=pause.until, reason=pause.reason, by=pause.by, since=pause.since
        )
    return told | _breaker(seen, standing)


def _breaker(seen: Seen, standing: Standing) -> dict[str, Any]:
    """The breaker that holds it, else what is remembered of its own."""
    breaker = standing.breaker or seen.facts.breakers.get(standing.head.launch_config_id)
    if breaker is None:
        return {}
    more: dict[str, Any] = {}
    if breaker.next_try is not None:
        more["next_try"] = breaker.next_try
    if standing.shared is not None:
        more["offering"] = standing.shared
    return {
        "breaker": BreakerAnswer(
            state=breaker.state.value,
            kind=breaker.kind,
            reason=breaker.reason,
            since=breaker.failing_since,
            **more,
        )
    }


ROUTES: tuple[Route[ApiDeps], ...] = (
    Route(
        name="listWorkerPoolLaunchConfigs",
        method="GET",
        path="/worker-pool/<workerPoolId>/launch-configs",
        handler=list_of_pool,
        scopes=_GET,
        query={**PAGING, "includeArchived": r"^(true|false)$"},
        response=LaunchConfigDetailList,
        stability="experimental",
    ),
    Route(
        name="getLaunchConfig",
        method="GET",
        path="/worker-pool/<workerPoolId>/launch-configs/<launchConfigId>",
        handler=get,
        scopes=_GET,
        response=LaunchConfigDetail,
        stability="experimental",
    ),
)
