"""Two pools of machines in the registry's tables: one has too few, the other too many."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tests.api.registry_world import BASE
from worker_manager.core.ids import derived_slugid
from worker_manager.core.model import WorkerKey
from worker_manager.core.moments import to_wire
from worker_manager.registry.observations import Kind, Observation
from worker_manager.store.load_table import LoadTable

if TYPE_CHECKING:
    from tests.api.registry_world import RegistryApi

BUSY, IDLE = "racks/busy", "racks/idle"
HAD = {BUSY: 8, IDLE: 14}
HOUR = timedelta(hours=1)


def policy_of(queue_id: str) -> str:
    return f"{BASE}/hardware/pools/{queue_id}/policy"


def put_racks(api: RegistryApi, *, days: int = 7) -> None:
    """With as many days of load behind them; each machine did one task of half an hour lately."""
    for queue_id, machines in HAD.items():
        api.ok("PUT", policy_of(queue_id), {"mix": {"machineClasses": ["mini"]}})
        _put_load(api, queue_id, machines, days)
        for number in range(machines):
            key = WorkerKey(queue_id, "rack-1", f"m{number:02}")
            run: dict[str, Any] = {"task_id": derived_slugid(f"{key}"), "run_id": 0}
            began = api.clock.now - HOUR - number * timedelta(minutes=1)
            ended = began + HOUR / 2
            api.registry.observe(
                [
                    Observation(key, Kind.CLAIM, began, **run),
                    Observation(key, Kind.RESOLVE, ended, **run, state="completed"),
                    Observation(key, Kind.IDLE, api.clock.now),
                ]
            )


def _put_load(api: RegistryApi, queue_id: str, machines: int, days: int) -> None:
    """Whole rows at once, as single samples would take long."""
    model = LoadTable(api.registry.table)._model
    first = api.clock.now.replace(minute=0) - days * 24 * HOUR
    with model.batch_write() as batch:
        for hour in range(days * 24):
            is_day = hour % 24 < 10 and queue_id == BUSY
            pending, claimed = (4, machines) if is_day else (0, 2)
            figures = f"{pending} {claimed} {machines} 0"
            slots: dict[str, Any] = {f"m{minute:02}": figures for minute in range(0, 60, 5)}
            batch.save(model(f"{queue_id}#load", to_wire(first + hour * HOUR), **slots))
