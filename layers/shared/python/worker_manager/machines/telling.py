"""Events about machines, for whoever looks after them.

Where to read next: ``worker_manager.core.events``, of all others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from worker_manager.core.events import (
    MACHINE_VERDICT,
    MACHINES_FREED,
    MACHINES_HELD,
    machine_event,
)
from worker_manager.core.moments import to_wire

if TYPE_CHECKING:
    from datetime import datetime

    from worker_manager.machines.breaker import Trouble
    from worker_manager.machines.looks import Change
    from worker_manager.machines.memory import Watch


def verdict_event(change: Change, *, at: datetime) -> dict[str, Any]:
    """Tell that a machine is in another condition than before."""
    key, found = change.key, change.found
    verdict = found.verdict if found is not None else None
    detail = {
        "workerPoolId": key.pool_id,
        "workerGroup": key.group,
        "workerId": key.worker_id,
        "timestamp": to_wire(at),
        "verdict": verdict and str(verdict.condition),
        "previous": str(change.previous),
        "reason": verdict and verdict.reason,
    }
    return machine_event(MACHINE_VERDICT, detail, key, to_wire(at))


def outage_event(queue_id: str, trouble: Trouble, watch: Watch, *, at: datetime) -> dict[str, Any]:
    """Tell that nothing is done by itself in a pool, as too much of it is bad, or is again."""
    is_held = watch.outage_since is not None
    bad = trouble.together if is_held else trouble.bad
    within = " within an hour" if is_held else ""
    detail = {
        "workerPoolId": queue_id,
        "timestamp": to_wire(at),
        "machines": trouble.machines,
        "bad": bad,
        "reason": f"{bad} of {trouble.machines} machines are bad{within}",
    }
    name = MACHINES_HELD if is_held else MACHINES_FREED
    return machine_event(name, detail, queue_id, to_wire(at))
