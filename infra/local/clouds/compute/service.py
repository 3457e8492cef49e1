"""One call of the API from its request to its answer, with everything that may befall it.

Order: known method, count, rate quota, fault, action.  Read next: ``server``, which carries
answers over HTTP.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlsplit

from infra.local.clouds.compute.actions import ACTIONS, insert_instance
from infra.local.clouds.compute.calls import Call
from infra.local.clouds.compute.errors import ComputeError
from infra.local.clouds.compute.faults import Fault, FaultKind
from infra.local.clouds.compute.links import last_part
from infra.local.clouds.compute.rates import take_request
from infra.local.clouds.server import Answer

if TYPE_CHECKING:
    from infra.local.clouds.compute.cloud import ComputeCloud

PREFIX = "/compute/v1/"
CERTIFICATES = Call("oauth2.certs")
_ROUTES = (
    ("POST", "zones/{zone}/instances", "instances.insert"),
    ("GET", "zones/{zone}/instances", "instances.list"),
    ("GET", "zones/{zone}/instances/{name}", "instances.get"),
    ("DELETE", "zones/{zone}/instances/{name}", "instances.delete"),
    ("POST", "zones/{zone}/instances/{name}/reset", "instances.reset"),
    ("GET", "aggregated/instances", "instances.aggregatedList"),
    ("GET", "zones/{zone}/operations", "zoneOperations.list"),
    ("GET", "zones/{zone}/operations/{name}", "zoneOperations.get"),
    ("GET", "aggregated/operations", "globalOperations.aggregatedList"),
    ("GET", "zones/{zone}/disks", "disks.list"),
    ("GET", "zones/{zone}/disks/{name}", "disks.get"),
    ("DELETE", "zones/{zone}/disks/{name}", "disks.delete"),
    ("GET", "aggregated/disks", "disks.aggregatedList"),
)
_PATTERNS = [
    (
        method,
        re.compile(
            "/compute/v1/projects/(?P<project>[^/]+)/"
            + path.replace("{zone}", "(?P<zone>[^/]+)").replace("{name}", "(?P<name>[^/]+)")
        ),
        action,
    )
    for method, path, action in _ROUTES
]


def call_of(method: str, target: str, body: str) -> tuple[str, Call]:
    """The project and the call that a request means.

    Raises ``ComputeError`` for one that means nothing.
    """
    split = urlsplit(target)
    for its_method, pattern, action in _PATTERNS:
        found = pattern.fullmatch(split.path)
        if found is None or its_method != method:
            continue
        parts = {name: unquote(value) for name, value in found.groupdict().items()}
        call = Call(
            action=action,
            zone=parts.get("zone", ""),
            name=parts.get("name", ""),
            query=dict(parse_qsl(split.query)),
            body=_json(body),
        )
        return parts["project"], call
    raise ComputeError("notFound", f"no method at {method} {split.path}")


def answer(cloud: ComputeCloud, project: str, call: Call) -> Answer:
    """Carry out one call."""
    with cloud.lock:
        place = call.zone or "global"
        try:
            return _perform(cloud, project, call, place)
        except ComputeError as error:
            cloud.refusals[error.code, place] += 1
            return Answer(error.status, error.body(), headers=error.headers)


def certificates(cloud: ComputeCloud) -> Answer:
    """The published certificates by key id, as JSON; faults may befall this call too."""
    with cloud.lock:
        cloud.calls[CERTIFICATES.action, "global"] += 1
        fault = _fault(cloud, CERTIFICATES, "global")
        if fault is not None and fault.kind is FaultKind.ERROR:
            error = fault.refusal()
            cloud.refusals[error.code, "global"] += 1
            return Answer(error.status, error.body(), headers=error.headers)
        if fault is not None:
            return Answer(hang_up=True, wait_seconds=fault.seconds)
        seconds = cloud.settings.certificates_max_age_seconds
        return Answer(
            body=json.dumps({key.kid: key.pem for key in cloud.certified_keys()}),
            headers={"Cache-Control": f"public, max-age={seconds}, must-revalidate, no-transform"},
        )


def _perform(cloud: ComputeCloud, project: str, call: Call, place: str) -> Answer:
    cloud.calls[call.action, place] += 1
    take_request(cloud.buckets, call.action, place=place, now=cloud.clock())
    fault = _fault(cloud, call, place)
    if fault is not None and fault.kind in (FaultKind.DROP, FaultKind.HANG):
        return Answer(hang_up=True, wait_seconds=fault.seconds)
    is_late = fault is not None and fault.late and call.action == "instances.insert"
    if fault is not None and fault.kind is FaultKind.ERROR and not is_late:
        raise fault.refusal()
    if project != cloud.settings.project:
        raise ComputeError("forbidden", f"Required permission for 'projects/{project}'")
    if call.zone:
        cloud.check_zone(call.zone)
    if fault is not None and is_late:
        body = insert_instance(cloud, call, fault.failure())
    else:
        body = ACTIONS[call.action](cloud, call)
    if fault is not None and fault.kind is FaultKind.LOST:
        return Answer(hang_up=True, wait_seconds=fault.seconds)
    return Answer(200, body)


def _fault(cloud: ComputeCloud, call: Call, place: str) -> Fault | None:
    disks = call.body.get("disks") or [{}]
    image = (disks[0].get("initializeParams") or {}).get("sourceImage", "")
    return cloud.faults.draw(
        action=call.action,
        zone=place,
        machine_type=last_part(str(call.body.get("machineType", ""))),
        source_image=last_part(str(image)),
    )


def _json(body: str) -> dict[str, Any]:
    try:
        read = json.loads(body or "{}")
    except ValueError:
        read = None
    if not isinstance(read, dict):
        raise ComputeError("parseError", "Parse Error")
    return read
