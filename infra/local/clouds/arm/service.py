"""One call of the API from its request to its answer, with everything that may befall it.

Order: credentials, version, subscription, known action, count, bucket, fault, action.  Read next:
``server``, which carries answers over HTTP.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from infra.local.clouds.arm.actions import ACTIONS, Call, Reply
from infra.local.clouds.arm.errors import ArmError
from infra.local.clouds.arm.resources import Kind, Machine
from infra.local.clouds.arm.routes import Route, route
from infra.local.clouds.arm.throttling import remaining, take_request
from infra.local.clouds.faults import FaultKind
from infra.local.clouds.server import Answer

if TYPE_CHECKING:
    from infra.local.clouds.arm.cloud import ArmCloud
    from infra.local.clouds.arm.faults import ArmFault

_NO_BODY = ("GET", "HEAD", "DELETE")


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it came; ``target`` is path and query."""

    method: str
    target: str
    host: str = "localhost"
    authorization: str = ""
    if_none_match: str = ""
    text: str = ""


def answer(cloud: ArmCloud, request: Request) -> Answer:
    """Carry out one call."""
    with cloud.present() as now:
        place, headers = "-", _identify(cloud)
        try:
            call = _read(cloud, request)
            place = _location(cloud, call)
            fault = _suffer(cloud, request, call, place, now)
            _check_condition(cloud, request, call)
            reply = ACTIONS[call.route.action](cloud, call, now)
        except _HungUpError as error:
            return Answer(hang_up=True, wait_seconds=error.seconds)
        except ArmError as error:
            cloud.refusals[error.code, place] += 1
            return Answer(error.status, json.dumps(error.body()), headers | error.headers)
    if fault is not None:
        return Answer(hang_up=True, wait_seconds=fault.seconds)
    is_compute = call.route.kind in (Kind.VM, Kind.DISK)
    headers |= remaining(request.method, is_compute=is_compute)
    return Answer(reply.status, _text(reply), {**headers, **reply.headers})


def action_of(request: Request) -> str:
    """The name of the action that a request calls; empty for what there is not."""
    found = route(request.method, urlsplit(request.target).path)
    return found.action if found else ""


class _HungUpError(Exception):
    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


def _read(cloud: ArmCloud, request: Request) -> Call:
    if not request.authorization.startswith("Bearer "):
        message = "Authentication failed. The 'Authorization' header is missing."
        raise ArmError("AuthenticationFailed", message)
    parts = urlsplit(request.target)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    if not query.get("api-version"):
        message = "The api-version query parameter (?api-version=) is required for all requests."
        raise ArmError("MissingApiVersionParameter", message)
    found = route(request.method, parts.path)
    if found is None:
        raise ArmError("NotFound", f"There is nothing to {request.method} at '{parts.path}'.")
    if found.subscription.lower() != cloud.settings.subscription_id.lower():
        message = f"The subscription '{found.subscription}' could not be found."
        raise ArmError("SubscriptionNotFound", message)
    base = f"http://{request.host}"
    return Call(found, query, _body(request), base, parts.path)


def _body(request: Request) -> dict[str, Any]:
    if request.method in _NO_BODY or not request.text:
        return {}
    try:
        body = json.loads(request.text)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        message = "The request content was invalid and could not be deserialized."
        raise ArmError("InvalidRequestContent", message)
    return body


def _suffer(
    cloud: ArmCloud, request: Request, call: Call, place: str, now: float
) -> ArmFault | None:
    """Count and pay, and let a fault strike; one that strikes after the action is returned."""
    action = call.route.action
    cloud.calls[action, place] += 1
    take_request(cloud.buckets, request.method, action, now=now)
    fault = cloud.faults.draw(
        action=action,
        location=place,
        group=call.route.group,
        name=call.route.name,
        instance_type=_size(cloud, call),
    )
    if fault is None or fault.kind is FaultKind.LOST:
        return fault
    if fault.kind is FaultKind.ERROR:
        headers = {} if fault.retry_after is None else {"Retry-After": str(fault.retry_after)}
        raise ArmError(fault.code, fault.message, status=fault.status, headers=headers)
    raise _HungUpError(fault.seconds)


def _check_condition(cloud: ArmCloud, request: Request, call: Call) -> None:
    """Refuse to put what exists, whatever its state, where only something new is wanted."""
    if request.method != "PUT" or request.if_none_match != "*":
        return
    if _known(cloud, call.route) is not None:
        message = f"The resource '{call.route.name}' exists: '*' in If-None-Match is not fulfilled."
        raise ArmError("PreconditionFailed", message)


def _location(cloud: ArmCloud, call: Call) -> str:
    """Where the resource of a call is or shall be; ``-`` where that is no question."""
    if location := call.body.get("location"):
        return str(location).lower().replace(" ", "")
    if call.route.action == "deployments.put":
        return str(_parameter(call, "location") or "-")
    found = _known(cloud, call.route)
    return found.location if found else "-"


def _size(cloud: ArmCloud, call: Call) -> str:
    if call.route.action == "deployments.put":
        return str(_parameter(call, "vmSize") or "")
    hardware = (call.body.get("properties") or {}).get("hardwareProfile") or {}
    if "vmSize" in hardware:
        return str(hardware["vmSize"])
    found = _known(cloud, call.route)
    return found.size if isinstance(found, Machine) else ""


def _parameter(call: Call, name: str) -> Any:
    parameters = (call.body.get("properties") or {}).get("parameters") or {}
    return (parameters.get(name) or {}).get("value")


def _known(cloud: ArmCloud, found: Route) -> Any:
    if found.kind is None or not found.name:
        return None
    return cloud.estate.find(found.kind, found.group, found.name)


def _identify(cloud: ArmCloud) -> dict[str, str]:
    request_id = str(uuid.UUID(int=cloud.rng.getrandbits(128), version=4))
    return {"x-ms-request-id": request_id, "x-ms-correlation-request-id": request_id}


def _text(reply: Reply) -> str:
    return "" if reply.body is None else json.dumps(reply.body, separators=(",", ":"))
