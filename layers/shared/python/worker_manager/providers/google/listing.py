"""From Compute Engine's instances to sightings: the list of a project, and how one is translated.

A list is read as JSON: the SDK's messages take ten times the processor, and most of what they hold
is not asked for.  A list that lacks a zone is no list: Compute Engine says so in a warning beside
the zones that it could reach.  Where to read next: ``provider``.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from google.api_core.exceptions import from_http_response

from worker_manager.core.errors import CloudUnavailableError
from worker_manager.core.model import Location, MachineStatus, Sighting, WorkerKey
from worker_manager.providers.google.errors import cloud_errors
from worker_manager.providers.google.labels import (
    launch_config_of,
    only_of,
    order_of,
    pool_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from google.cloud.compute_v1.types import Instance

    from worker_manager.providers.google.clients import Clients

    Timeouts = tuple[float, float]

logger = logging.getLogger(__name__)

_Item = TypeVar("_Item")

PAGE_SIZE = 500
"""The most that a list gives at once."""

MACHINE_FIELDS = ("id", "name", "zone", "status", "labels", "creationTimestamp")

STATUS = {
    "PENDING": MachineStatus.PENDING,
    "PROVISIONING": MachineStatus.PENDING,
    "STAGING": MachineStatus.PENDING,
    "RUNNING": MachineStatus.RUNNING,
    "REPAIRING": MachineStatus.RUNNING,
    "PENDING_STOP": MachineStatus.STOPPING,
    "STOPPING": MachineStatus.STOPPING,
    "DEPROVISIONING": MachineStatus.STOPPING,
    "SUSPENDING": MachineStatus.STOPPED,
    "SUSPENDED": MachineStatus.STOPPED,
    "STOPPED": MachineStatus.STOPPED,
    "TERMINATED": MachineStatus.STOPPED,
}
"""Compute Engine's states in our words.  ``TERMINATED`` is powered off, not deleted, and still
costs; a machine that is deleted goes through ``STOPPING`` and is then unknown.  A state that Google
adds one day is taken for running, which is the one that nobody acts upon."""

COMPLETE = frozenset({"NO_RESULTS_ON_PAGE"})
"""Warnings of a zone that take nothing away from a list."""


def list_deployment(
    clients: Clients, location: Location, *, deployment: str, timeouts: Timeouts
) -> Iterator[Sighting]:
    """All machines of a deployment in a project, page by page, to the end or a ``CloudError``."""

    def read(facts: Mapping[str, Any]) -> Sighting | None:
        pool_id = pool_of(facts.get("labels") or {})
        if pool_id is None:
            logger.warning("machine of ours without a pool label", extra={"machine": facts["name"]})
            return None
        return sighting(facts, location, pool_id=pool_id)

    return list_aggregated(
        clients,
        location,
        "instances",
        fields=MACHINE_FIELDS,
        only=only_of(deployment),
        timeouts=timeouts,
        read=read,
    )


def list_aggregated(
    clients: Clients,
    location: Location,
    collection: str,
    *,
    fields: tuple[str, ...],
    only: str,
    timeouts: Timeouts,
    read: Callable[[Mapping[str, Any]], _Item | None],
) -> Iterator[_Item]:
    """Everything of a ``collection`` in all zones of a project that passes the filter ``only``.

    ``read`` translates one; what it has no translation for is left out.
    """
    url = f"{clients.base}/projects/{location}/aggregated/{collection}"
    wanted = f"items/*/{collection}({','.join(fields)})"
    parameters = {
        "filter": only,
        "maxResults": str(PAGE_SIZE),
        "fields": f"nextPageToken,unreachables,warning/code,items/*/warning/code,{wanted}",
    }
    while True:
        with cloud_errors():
            answer = clients.session.get(url, params=parameters, timeout=timeouts)
            if not answer.ok:
                raise from_http_response(answer)  # type: ignore[no-untyped-call]
            page = answer.json()
            check_complete(page)
            listed = (one for zone in _zones(page) for one in zone.get(collection, ()))
            found = [item for one in listed if (item := read(one)) is not None]
        yield from found
        token = page.get("nextPageToken")
        if not token:
            return
        parameters["pageToken"] = token


def check_complete(page: Mapping[str, Any]) -> None:
    """Refuse a page that Compute Engine says lacks something: ``CloudUnavailableError``."""
    codes = {
        scope["warning"].get("code", "") for scope in (page, *_zones(page)) if scope.get("warning")
    }
    missing = codes - COMPLETE
    if page.get("unreachables"):
        missing.add("UNREACHABLE")
    if missing:
        code = min(missing)
        raise CloudUnavailableError(f"{code}: the list is not complete", code=code)


def _zones(page: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from (page.get("items") or {}).values()


def sighting(facts: Mapping[str, Any], location: Location, *, pool_id: str) -> Sighting:
    """One instance, as JSON, in our words."""
    labels = facts.get("labels") or {}
    made = facts.get("creationTimestamp")
    return Sighting(
        key=WorkerKey(pool_id, zone_of(facts["zone"]), str(facts["id"])),
        location=location,
        status=STATUS.get(facts["status"], MachineStatus.RUNNING),
        launch_config_id=launch_config_of(labels),
        order_id=order_of(labels),
        launched=moment(made) if made else None,
        identity={"name": facts["name"]},
    )


def read_instance(instance: Instance) -> dict[str, Any]:
    """What ``sighting`` needs of one of the SDK's messages."""
    return {
        "id": instance.id,
        "name": instance.name,
        "zone": instance.zone,
        "status": instance.status,
        "labels": dict(instance.labels),
        "creationTimestamp": instance.creation_timestamp,
    }


def zone_of(url: str) -> str:
    """The name of a zone from its URL, or itself."""
    return url.rpartition("/")[2]


def moment(text: str) -> datetime:
    """An aware UTC time from Compute Engine's, which carries the offset of California."""
    return datetime.fromisoformat(text).astimezone(UTC)
