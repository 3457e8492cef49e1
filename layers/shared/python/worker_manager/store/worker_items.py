"""Rows of workers as items and back.

Where to read next: ``workers``, which reads and writes them.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from worker_manager.core.model import Location, State, Surplus, Worker, WorkerKey
from worker_manager.core.moments import from_wire, to_wire

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from worker_manager.store.tables import WorkerItem

_PLAIN = [
    "provider_id",
    "capacity",
    "created",
    "modified",
    "expires",
    "version",
    "launch_config_id",
    "order_id",
    "deadline",
    "launched",
    "registered",
    "boot_time",
    "rebooted",
    "first_claim",
    "quarantine_until",
    "stopping_since",
    "stop_reason",
    "stopped_by",
    "decision",
    "secret_hash",
    "previous_secret_hash",
    "secret_rotated",
]
"""Fields that are stored under their own name, as they are."""


def sort_key(key: WorkerKey) -> str:
    """Where a worker stands in its pool's list."""
    return f"{key.group}#{key.worker_id}"


def attributes(worker: Worker, *, kept: timedelta) -> dict[str, Any]:
    """The item's attributes, without keys; absent ones are ``None``.

    ``kept`` is how long the row of a stopped worker stays.
    """
    values: dict[str, Any] = {name: getattr(worker, name) for name in _PLAIN}
    values["state"] = worker.state.value
    values["location"] = worker.location
    values["registration_seconds"] = worker.registration.total_seconds()
    values["reregistration_seconds"] = worker.reregistration.total_seconds()
    values["inactivity_seconds"] = worker.queue_inactivity.total_seconds()
    values["identity"] = dict(worker.identity) or None
    values["registrations"] = _registrations_json(worker)
    values["unsent"] = list(worker.unsent) or None
    values["surplus"] = _surplus_json(worker.surplus)
    finished = worker.state is State.STOPPED
    if finished and not worker.unsent:
        values["live"] = None
    else:
        values["live"] = f"{worker.location}#{to_wire(worker.created)}#{worker.key.worker_id}"
    values["ttl"] = int((worker.modified + kept).timestamp()) if finished else None
    return values


def to_worker(item: WorkerItem) -> Worker:
    """A worker from its item, whole or projected; what is missing has its default."""
    group, _, worker_id = item.sk.partition("#")
    location = item.location or (item.live or "").partition("#")[0]
    stored = item.attribute_values
    given: dict[str, Any] = {
        name: value for name in _PLAIN if (value := stored.get(name)) is not None
    }
    for name in ("capacity", "version"):
        given[name] = int(given[name])
    if item.registration_seconds is not None:
        given["registration"] = timedelta(seconds=item.registration_seconds)
    if item.reregistration_seconds is not None:
        given["reregistration"] = timedelta(seconds=item.reregistration_seconds)
    if item.inactivity_seconds is not None:
        given["queue_inactivity"] = timedelta(seconds=item.inactivity_seconds)
    return Worker(
        key=WorkerKey(item.worker_pool_id, group, worker_id),
        location=Location(location),
        state=state_of(item),
        identity=item.identity or {},
        registrations=_registrations(item),
        unsent=tuple(item.unsent or ()),
        surplus=_surplus(item.surplus),
        **given,
    )


def state_of(item: WorkerItem) -> State:
    """A worker's state.

    Rows of static workers once said ``running`` from the start; one that never registered is not.
    """
    state = State(item.state)
    is_nowhere = not item.location and (item.live or "#").startswith("#")
    if state is State.RUNNING and is_nowhere and not item.attribute_values.get("registered"):
        return State.CREATED
    return state


def _registrations_json(worker: Worker) -> list[str] | None:
    """Nothing where the last one says it all, as of nearly every machine of a cloud."""
    if len(worker.registrations) <= 1:
        return None
    return [to_wire(one) for one in worker.registrations]


def _registrations(item: WorkerItem) -> tuple[datetime, ...]:
    if item.registrations:
        return tuple(from_wire(one) for one in item.registrations)
    return (item.registered,) if item.registered else ()


def _surplus_json(surplus: Surplus | None) -> Mapping[str, Any] | None:
    if surplus is None:
        return None
    return {
        "terminate": surplus.terminate,
        "reason": surplus.reason,
        "decided": to_wire(surplus.decided),
    }


def _surplus(stored: Mapping[str, Any] | None) -> Surplus | None:
    if stored is None:
        return None
    return Surplus(stored["terminate"], stored["reason"], from_wire(stored["decided"]))
