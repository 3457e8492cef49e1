"""Deleting what the registry knows.

Where to read next: ``worker_manager.registry.deletions``.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from worker_manager.api.registry_views import queue_id, worker_key
from worker_manager.registry.deletions import Deletion

if TYPE_CHECKING:
    from worker_manager.api.deps import RegistryDeps
    from worker_manager.api.routing import Call

PATIENCE = timedelta(seconds=15)
"""For how long one request deletes: its function and the front door have some more."""


def delete_provisioner(call: Call, deps: RegistryDeps) -> dict[str, Any]:
    """Forget a provisioner, its worker types and their workers.

    Who of them is in quarantine is released, what is closed is opened, and that is told.  Where
    there are too many for one request the answer is 503: the same request again goes on.
    """
    _deletion(call, deps).provisioner(call.params["provisionerId"])
    return {}


def delete_worker_type(call: Call, deps: RegistryDeps) -> dict[str, Any]:
    """Forget a worker type and its workers.

    Who of them is in quarantine is released, what is closed is opened, and that is told.  Where
    there are too many for one request the answer is 503: the same request again goes on.
    """
    _deletion(call, deps).worker_type(queue_id(call))
    return {}


def delete_worker(call: Call, deps: RegistryDeps) -> dict[str, Any]:
    """Forget a worker; if it is in quarantine it is released, and that is told."""
    _deletion(call, deps).worker(worker_key(call))
    return {}


def _deletion(call: Call, deps: RegistryDeps) -> Deletion:
    now = deps.clock()
    late = now + PATIENCE
    return Deletion(
        registry=deps.registry,
        quarantines=deps.quarantines,
        downtimes=deps.downtimes,
        backend=deps.backend,
        by=call.client_id or "anonymous",
        now=now,
        is_late=lambda: deps.clock() >= late,
    )
