"""Taking a launch config out of use for a while, and back before its time.

Pauses are the pool's: where nothing is launched, there is nothing to pause.
Where to read next: ``launch_configs`` (how each fares), ``store.pauses``.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from worker_manager.api import audit
from worker_manager.api.definitions import after_commit
from worker_manager.api.launch_configs import existing, look, show
from worker_manager.api.plan_schemas import LaunchConfigDetail, PauseLaunchConfigRequest
from worker_manager.api.refusals import Refusal, input_error, not_found, unavailable
from worker_manager.api.routing import Call, Route
from worker_manager.core.events import LAUNCH_CONFIG_PAUSED, LAUNCH_CONFIG_RESUMED, pause_event
from worker_manager.core.messages import look_again
from worker_manager.core.moments import whole_milliseconds
from worker_manager.core.plans import Pause, pause_json
from worker_manager.core.scopes import AnyOf
from worker_manager.queues import Message
from worker_manager.store.outbox_items import outbox_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from worker_manager.api.deps import ApiDeps
    from worker_manager.core.model import Json, Pool
    from worker_manager.core.plans import Control

LONGEST_PAUSE = timedelta(days=365)

MOST_PAUSES = 300
MOST_BYTES = 100_000
"""Of one pool, at a time: they stand in its control item, which planners read and write."""

ATTEMPTS = 5

_STEER = AnyOf(
    (
        "worker-manager:manage-worker-pool:<workerPoolId>",
        "worker-manager:pause-launch-config:<workerPoolId>/<launchConfigId>",
    )
)


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
        pool, control = existing(call.pool_id, deps)
        _check(pool, name, deps)
        after = {key: value for key, value in control.pauses.items() if key != name}
        if wanted is not None:
            after[name] = wanted
            _check_room(after)
        if after == control.pauses or _write(call, deps, pool, control, after=after, now=now):
            return show(look(pool, replace(control, pauses=after), deps), name, deps)
    raise unavailable()


def _check(pool: Pool, name: str, deps: ApiDeps) -> None:
    """Refuse what could never be ordered anyway."""
    if pool.provider_id not in deps.senders:
        raise input_error(
            f"Provider {pool.provider_id!r} of the pool launches no machines: "
            "there is nothing to pause"
        )
    if name not in {head.launch_config_id for head in pool.heads}:
        raise not_found(f"Launch config {name!r} is not one that the pool uses")


def _check_room(pauses: Mapping[str, Pause]) -> None:
    if len(pauses) > MOST_PAUSES:
        raise Refusal(
            "RequestConflict", f"A pool has at most {MOST_PAUSES} paused launch configs at a time"
        )
    if len(json.dumps([pause_json(one) for one in pauses.values()])) > MOST_BYTES:
        raise Refusal(
            "RequestConflict", f"The pauses of a pool take at most {MOST_BYTES // 1000} KB"
        )


def _write(
    call: Call,
    deps: ApiDeps,
    pool: Pool,
    control: Control,
    *,
    after: Mapping[str, Pause],
    now: datetime,
) -> bool:
    """Write a pause, or its end, with its event, and have the pool planned; false if too late."""
    name = call.params["launchConfigId"]
    wanted = after.get(name)
    event = pause_event(
        LAUNCH_CONFIG_PAUSED if wanted else LAUNCH_CONFIG_RESUMED,
        pool.pool_id,
        pool.provider_id,
        name,
        at=now,
        reason=wanted.reason if wanted else f"resumed by {call.client_id}",
        until=wanted.until if wanted else None,
    )
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
    message = look_again(pool.pool_id, now, event["id"])
    with after_commit("asking for a plan of a pool that was steered"):
        sender = deps.senders[pool.provider_id]["provision"]
        sender.send([Message(message.to_json(), group=pool.pool_id, dedup=message.dedup)])
    return True


def _told(pause: Pause | None) -> Json:
    """A pause, or none, as the audit trail compares it."""
    return {"pause": pause_json(pause)} if pause is not None else {}


ROUTES: tuple[Route[ApiDeps], ...] = (
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
