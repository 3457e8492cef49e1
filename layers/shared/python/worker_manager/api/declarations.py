"""What people say of provisioners, worker types and workers.

Each property needs a scope of its own, ``…#<property>``, as Taskcluster's queue once had it.
Where to read next: ``worker_manager.registry.declarations``; ``deletions``, its opposite.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from worker_manager.actions.entities import Level
from worker_manager.api.actions import said_actions, worker_type_actions
from worker_manager.api.refusals import input_error, not_found
from worker_manager.api.registry_answers import provisioner, worker_answer, worker_type
from worker_manager.api.registry_schemas import (
    MetadataResponse,
    ProvisionerResponse,
    QueueWorkerResponse,
    WorkerTypeResponse,
)
from worker_manager.api.registry_views import queue_id, worker_key
from worker_manager.core.ids import is_pool_id
from worker_manager.core.scopes import AllOf
from worker_manager.registry.entities import Metadata

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from worker_manager.api.deps import RegistryAccess
    from worker_manager.api.routing import Call
    from worker_manager.core.scopes import Expression


CLOCK_SKEW = timedelta(minutes=5)
"""How far ahead of ours a machine's clock may be."""


def property_scopes(prefix: str) -> Callable[[Mapping[str, str], Any], Expression]:
    """Scopes for just the properties that a body has; ``prefix`` ends in ``#``."""

    def scopes_of(params: Mapping[str, str], payload: Any) -> Expression:
        filled = prefix
        for name, value in params.items():
            filled = filled.replace(f"<{name}>", value)
        return AllOf(tuple(f"{filled}{name}" for name in sorted(payload)))

    return scopes_of


def declare_provisioner(call: Call, deps: RegistryAccess) -> ProvisionerResponse:
    """Say something of a provisioner, seen or not.

    Lists then show it for 30 days after each sighting; before the first only with
    ``includeInactive``.  ``expires`` tells for how long instead, as that from now: less than an
    hour counts as an hour, more than 30 days as 30 days; null takes it back.  ``actions`` replace
    all that were declared there, for it and for what is in it.
    """
    now = deps.clock()
    name = call.params["provisionerId"]
    said = _said(call, now) | said_actions(call, Level.PROVISIONER, deps)
    return provisioner(deps.declarations.provisioner(name, said, by=_who(call), now=now), deps)


def declare_worker_type(call: Call, deps: RegistryAccess) -> WorkerTypeResponse:
    """Say something of a worker type, seen or not.

    Lists show it from its first sighting on, before that only with ``includeInactive``.
    ``expires`` tells for how long after each sighting, as that from now: less than an hour counts
    as an hour, more than 30 days as 30 days; null takes it back.  ``actions`` replace all that were
    declared there, for it and its workers.
    """
    now, name = deps.clock(), exact_queue_id(call)
    said = _said(call, now) | said_actions(call, Level.WORKER_TYPE, deps)
    found = deps.declarations.worker_type(name, said, by=_who(call), now=now)
    return worker_type(found, deps, actions=worker_type_actions(found, deps))


def declare_worker(call: Call, deps: RegistryAccess) -> QueueWorkerResponse:
    """Say something of a worker, which lists then show as if it was seen; what ``workerDetails``
    tell is that it was declared.

    Its end never moves backward.  A boot time or capacity that is null is taken back.  ``actions``
    replace all that were declared for it.
    """
    exact_queue_id(call)
    body, now = call.body, deps.clock()
    if body.expires is not None and body.expires <= now:
        raise input_error("expires: is past")
    if body.boot_time is not None and body.boot_time > now + CLOCK_SKEW:
        raise input_error("bootTime: is in the future")
    said = {name: getattr(body, name) for name in body.model_fields_set if name != "expires"}
    if body.expires is not None:
        said["explicit_expires"] = body.expires
    said |= said_actions(call, Level.WORKER, deps)
    worker = deps.declarations.worker(worker_key(call), said, now=now)
    return worker_answer(worker, deps)


def metadata(call: Call, deps: RegistryAccess) -> MetadataResponse:
    """A worker type's metadata."""
    name = queue_id(call)
    found = deps.declarations.metadata(name)
    if found is None:
        raise not_found(f"Worker type {name!r} has no metadata")
    return _told(found)


def put_metadata(call: Call, deps: RegistryAccess) -> MetadataResponse:
    """Set a worker type's metadata, in place of all that it had; also of one not seen yet.

    Lists then show it for 30 days after each sighting; before the first only with
    ``includeInactive``.
    """
    given = Metadata(
        payload_schema=call.body.payload_schema,
        documentation=call.body.documentation,
        updated=deps.clock(),
        updated_by=_who(call),
    )
    deps.declarations.put_metadata(exact_queue_id(call), given)
    return _told(given)


def delete_metadata(call: Call, deps: RegistryAccess) -> dict[str, Any]:
    """Remove a worker type's metadata."""
    deps.declarations.delete_metadata(queue_id(call), now=deps.clock())
    return {}


def exact_queue_id(call: Call) -> str:
    """The task queue that a path names in two parts, if it may be one's name."""
    name = queue_id(call)
    if not is_pool_id(name):
        raise input_error(f"workerType: {call.params['workerType']!r} names no worker type")
    return name


def _said(call: Call, now: datetime) -> dict[str, Any]:
    """What a body says, in the library's words."""
    body = call.body
    said = {name: getattr(body, name) for name in body.model_fields_set if name != "expires"}
    if "hardware" in said:
        said["is_hardware"] = said.pop("hardware")
    if "expires" in body.model_fields_set:
        if body.expires is not None and body.expires <= now:
            raise input_error("expires: is past")
        said["window"] = body.expires and body.expires - now
    return said


def _told(found: Metadata) -> MetadataResponse:
    return MetadataResponse(
        payload_schema=dict(found.payload_schema),
        documentation=found.documentation,
        updated=found.updated,
        updated_by=found.updated_by,
    )


def _who(call: Call) -> str:
    return call.client_id or "anonymous"
