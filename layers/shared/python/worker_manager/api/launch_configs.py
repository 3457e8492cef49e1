"""The launch configs of a pool one by one: how each fares, and taking one out of use for a while.

Where to read next: ``core.standing`` (what a weight is made of), ``explanations``.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from worker_manager.api import audit, paging
from worker_manager.api.definitions import after_commit
from worker_manager.api.plan_schemas import (
    BreakerAnswer,
    CapacityAnswer,
    HealthAnswer,
    LaunchConfigDetail,
    LaunchConfigDetailList,
    PauseAnswer,
    PauseLaunchConfigRequest,
)
from worker_manager.api.refusals import input_error, not_found, unavailable
from worker_manager.api.routing import PAGING, Call, Route
from worker_manager.core.events import LAUNCH_CONFIG_PAUSED, LAUNCH_CONFIG_RESUMED, pause_event
from worker_manager.core.explaining import status_of
from worker_manager.core.health import Health
from worker_manager.core.ids import is_identifier
from worker_manager.core.messages import look_again
from worker_manager.core.model import Pause, pause_json
from worker_manager.core.moments import whole_milliseconds
from worker_manager.core.planning import standings
from worker_manager.core.scopes import AnyOf
from worker_manager.core.tally import Counts
from worker_manager.observing import look_around, observe
from worker_manager.queues import Message
from worker_manager.store.places import outbox_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from worker_manager.api.deps import ApiDeps
    from worker_manager.core.model import Control, Json, LaunchConfig, LaunchConfigHead, Pool
    from worker_manager.core.planning import Facts
    from worker_manager.core.standing import Standing

LONGEST_PAUSE = timedelta(days=365)
ATTEMPTS = 5

_GET = "worker-manager:get-worker-pool:<workerPoolId>"
_STEER = AnyOf(
    (
        "worker-manager:manage-worker-pool:<workerPoolId>",
        "worker-manager:pause-launch-config:<workerPoolId>/<launchConfigId>",
    )
)


@dataclass(frozen=True, slots=True)
class _Seen:
    """A pool with where each of its launch configs stands; ``is_launched`` if by anybody."""

    facts: Facts
    standings: Mapping[str, Standing]
    counts: Mapping[str, Counts]
    is_launched: bool

    @property
    def pool(self) -> Pool:
        return self.facts.pool


def list_of_pool(call: Call, deps: ApiDeps) -> LaunchConfigDetailList:
    """A page of launch configs by id, with status, weight, health and breaker."""
    size = paging.page_size(call.query)
    after = paging.position(call.query, is_identifier) or ""
    seen = _look(call.pool_id, deps)
    pool = seen.pool
    active = {head.launch_config_id: head for head in pool.heads}
    if call.query.get("includeArchived") == "true":
        bodies = deps.stores.pools.bodies(pool.pool_id, now=deps.clock())
        ids = sorted(name for name in bodies.keys() | active.keys() if name > after)
    else:
        ids = sorted(name for name in active if name > after)
        bodies = deps.stores.pools.bodies(pool.pool_id, ids[:size], now=deps.clock())
    items = (_detail(seen, bodies[name], active.get(name)) for name in ids[:size])
    page = list(paging.cut(items, paging.size_of))
    is_last = len(page) == len(ids)
    return LaunchConfigDetailList(
        worker_pool_launch_configs=page,
        **paging.with_token(None if is_last else page[-1].launch_config_id),
    )


def get(call: Call, deps: ApiDeps) -> LaunchConfigDetail:
    """One launch config, an archived one too while it is kept."""
    return _one(_look(call.pool_id, deps), call.params["launchConfigId"], deps)


def pause(call: Call, deps: ApiDeps) -> LaunchConfigDetail:
    """Order nothing of a launch config for a while; what runs of it goes on.

    The pause ends by itself.  A second one replaces the first.
    """
    body: PauseLaunchConfigRequest = call.body
    now = whole_milliseconds(deps.clock())
    until = body.until or now + timedelta(seconds=body.seconds or 0)
    if not now < until <= now + LONGEST_PAUSE:
        raise input_error(f"until: must be in the future, and within {LONGEST_PAUSE.days} days")
    made = Pause(until=until, reason=body.reason, by=call.client_id or "", since=now)
    return _steer(call, deps, made, now)


def resume(call: Call, deps: ApiDeps) -> LaunchConfigDetail:
    """End a pause; of one that is not paused it is the plain answer."""
    return _steer(call, deps, None, whole_milliseconds(deps.clock()))


def _steer(call: Call, deps: ApiDeps, wanted: Pause | None, now: datetime) -> LaunchConfigDetail:
    name = call.params["launchConfigId"]
    for _ in range(ATTEMPTS):
        pool, control = deps.stores.pools.get_with_control(call.pool_id)
        if pool is None:
            raise not_found(f"Worker pool {call.pool_id!r} does not exist")
        if name not in {head.launch_config_id for head in pool.heads}:
            raise not_found(f"Launch config {name!r} is not one that the pool uses")
        if wanted is None and name not in control.pauses:
            break
        if wanted is not None and pool.provider_id not in deps.senders:
            raise input_error(f"Nobody launches machines for provider {pool.provider_id!r}")
        if _write(call, deps, (pool, control), wanted, now):
            break
    else:
        raise unavailable()
    return _one(_look(call.pool_id, deps), name, deps)


def _write(
    call: Call, deps: ApiDeps, seen: tuple[Pool, Control], wanted: Pause | None, now: datetime
) -> bool:
    """Write a pause, or its end, with its event, and have the pool planned; false if too late."""
    pool, control = seen
    name = call.params["launchConfigId"]
    event = pause_event(
        LAUNCH_CONFIG_PAUSED if wanted else LAUNCH_CONFIG_RESUMED,
        pool.pool_id,
        pool.provider_id,
        name,
        at=now,
        reason=wanted.reason if wanted else f"resumed by {call.client_id}",
        until=wanted.until if wanted else None,
    )
    kept = {key: value for key, value in control.pauses.items() if key != name}
    after = {**kept, name: wanted} if wanted else kept
    entry = audit.of_launch_config(
        call,
        deps,
        "paused" if wanted else "resumed",
        launch_config_id=name,
        before=_told(control.pauses.get(name)),
        after=_told(wanted),
    )
    written = deps.stores.pauses.write(
        pool.pool_id,
        control.pauses,
        after,
        event=event,
        now=now,
        also=deps.audit.writes(entry),
    )
    if not written:
        return False
    audit.log(entry)
    with after_commit("publishing a pause"):
        deps.outbox.send(outbox_key([event], now), [event])
    sender = deps.senders.get(pool.provider_id, {}).get("provision")
    if sender is not None:
        message = look_again(pool.pool_id, now, event["id"])
        with after_commit("asking for a plan of a pool that was steered"):
            sender.send([Message(message.to_json(), group=pool.pool_id, dedup=message.dedup)])
    return True


def _told(pause: Pause | None) -> Json:
    """A pause, or none, as the audit trail compares it."""
    return {"pause": pause_json(pause)} if pause is not None else {}


def _look(pool_id: str, deps: ApiDeps) -> _Seen:
    pool, control = deps.stores.pools.get_with_control(pool_id)
    if pool is None:
        raise not_found(f"Worker pool {pool_id!r} does not exist")
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
    return _Seen(facts, found, counted.by_launch_config, pool.provider_id in deps.senders)


def _one(seen: _Seen, name: str, deps: ApiDeps) -> LaunchConfigDetail:
    body = deps.stores.pools.bodies(seen.pool.pool_id, [name], now=deps.clock()).get(name)
    if body is None:
        raise not_found(f"Launch config {name!r} does not exist")
    head = next((h for h in seen.pool.heads if h.launch_config_id == name), None)
    return _detail(seen, body, head)


def _detail(seen: _Seen, config: LaunchConfig, head: LaunchConfigHead | None) -> LaunchConfigDetail:
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


def _how_it_fares(seen: _Seen, head: LaunchConfigHead) -> dict[str, Any]:
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


def _breaker(seen: _Seen, standing: Standing) -> dict[str, Any]:
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
            since=breaker.since,
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
    Route(
        name="pauseLaunchConfig",
        method="PUT",
        path="/worker-pool/<workerPoolId>/launch-configs/<launchConfigId>/pause",
        handler=pause,
        scopes=_STEER,
        body=PauseLaunchConfigRequest,
        response=LaunchConfigDetail,
        stability="experimental",
    ),
    Route(
        name="resumeLaunchConfig",
        method="PUT",
        path="/worker-pool/<workerPoolId>/launch-configs/<launchConfigId>/resume",
        handler=resume,
        scopes=_STEER,
        response=LaunchConfigDetail,
        stability="experimental",
    ),
)
