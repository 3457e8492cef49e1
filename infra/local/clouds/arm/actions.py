"""The actions of the API: a call in, a reply out.

Status codes and headers are those of the Azure REST API reference.  Read next: ``building`` and
``deployments``, which do what is asked; ``render``, which words the reply.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from infra.local.clouds.arm import render
from infra.local.clouds.arm.building import as_power
from infra.local.clouds.arm.errors import ArmError, invalid
from infra.local.clouds.arm.estate import Group
from infra.local.clouds.arm.machines import read_location
from infra.local.clouds.arm.resources import Kind, Machine, Power, Provisioning, Resource

if TYPE_CHECKING:
    from infra.local.clouds.arm.cloud import ArmCloud
    from infra.local.clouds.arm.operations import Operation
    from infra.local.clouds.arm.routes import Route

Json = dict[str, Any]
_STATE_FILTER = re.compile(r"provisioningState eq '(?P<state>\w+)'")


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the API."""

    route: Route
    query: Mapping[str, str]
    """Decoded."""
    body: Json
    base: str
    """Scheme, host and port under which the caller sees the API."""
    path: str


@dataclass(frozen=True, slots=True)
class Reply:
    """What is answered; ``body`` is JSON, ``None`` is empty."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


Action = Callable[["ArmCloud", Call, float], Reply]


def _put(cloud: ArmCloud, call: Call, now: float) -> Reply:
    kind = _kind(call)
    begun = cloud.builder.put(kind, call.route.group, call.route.name, call.body, now=now)
    body = render.resource(cloud.settings.subscription_id, begun.resource)
    headers = _following(cloud, call, begun.operation)
    return Reply(201 if begun.is_new else 200, body, headers)


def _get(cloud: ArmCloud, call: Call, now: float) -> Reply:
    found = _resource(cloud, call)
    body = render.resource(cloud.settings.subscription_id, found)
    if isinstance(found, Machine) and call.query.get("$expand") == "instanceView":
        body["properties"]["instanceView"] = render.instance_view(found)
    return Reply(200, body)


def _delete(cloud: ArmCloud, call: Call, now: float) -> Reply:
    force = call.query.get("forceDeletion", "").lower() == "true"
    operation = cloud.builder.delete(
        _kind(call), call.route.group, call.route.name, now=now, force=force
    )
    if operation is None:
        return Reply(204)
    return Reply(202, None, _following(cloud, call, operation, deletes=True))


def _patch(cloud: ArmCloud, call: Call, now: float) -> Reply:
    found = _resource(cloud, call)
    cloud.builder.patch(found, call.body, now)
    return Reply(200, render.resource(cloud.settings.subscription_id, found))


def _list(cloud: ArmCloud, call: Call, now: float) -> Reply:
    if call.route.group:
        cloud.estate.group(call.route.group)
    elif "$expand" in call.query and "$filter" not in call.query:
        raise invalid("$expand can only be specified if a valid $filter is specified.", "$expand")
    found, token = cloud.estate.page(
        _kind(call),
        call.route.group,
        after=_number(call.query.get("$skiptoken", "0")),
        size=cloud.settings.page_size,
        now=now,
    )
    shown = _status_of if call.query.get("statusOnly", "").lower() == "true" else _model_of
    return _page(call, [shown(cloud, one) for one in found], token)


def _instance_view(cloud: ArmCloud, call: Call, now: float) -> Reply:
    return Reply(200, render.instance_view(_machine(cloud, call)))


def _power(cloud: ArmCloud, call: Call, now: float) -> Reply:
    machine = _machine(cloud, call)
    if machine.state in (Provisioning.CREATING, Provisioning.DELETING):
        message = f"VM '{machine.name}' is being created or deleted."
        raise ArmError("OperationNotAllowed", message)
    verb = call.route.action.partition(".")[2]
    through, to = as_power(verb)
    if verb == "restart":
        if machine.power is not Power.RUNNING:
            raise ArmError("OperationNotAllowed", f"VM '{machine.name}' is not running.")
        machine.reboots += 1
    operation = cloud.switch(machine, through, to, now)
    return Reply(202, None, _following(cloud, call, operation))


def _operation(cloud: ArmCloud, call: Call, now: float) -> Reply:
    since = now - cloud.settings.operation_seconds
    found = cloud.lifecycle.operations.get(call.route.name, since=since)
    if found is None:
        raise ArmError("NotFound", f"The operation '{call.route.name}' could not be found.")
    if call.query.get("monitor") != "true":
        return Reply(200, render.operation(found), _advice(cloud, found))
    if not found.is_over:
        return Reply(202, None, _advice(cloud, found))
    return Reply(204)


def _group_put(cloud: ArmCloud, call: Call, now: float) -> Reply:
    name = call.route.group
    is_new = name.lower() not in cloud.estate.groups
    location, tags = read_location(call.body), dict(call.body.get("tags") or {})
    group = cloud.estate.groups.setdefault(name.lower(), Group(name, location))
    group.tags = tags
    body = render.group(cloud.settings.subscription_id, group)
    return Reply(201 if is_new else 200, body)


def _group_get(cloud: ArmCloud, call: Call, now: float) -> Reply:
    group = cloud.estate.group(call.route.group)
    return Reply(200, render.group(cloud.settings.subscription_id, group))


def _group_head(cloud: ArmCloud, call: Call, now: float) -> Reply:
    return Reply(204 if call.route.group.lower() in cloud.estate.groups else 404)


def _group_list(cloud: ArmCloud, call: Call, now: float) -> Reply:
    groups = cloud.estate.groups.values()
    return _page(call, [render.group(cloud.settings.subscription_id, one) for one in groups], None)


def _deployment_put(cloud: ArmCloud, call: Call, now: float) -> Reply:
    deployment, is_new = cloud.deployments.put(
        call.route.group, call.route.name, call.body, now=now
    )
    body = render.deployment(cloud.settings.subscription_id, deployment)
    url = (
        f"{call.base}{body['id']}/operationStatuses/{deployment.operation.operation_id}"
        f"?api-version={call.query['api-version']}"
    )
    headers = {"Azure-AsyncOperation": url} | _advice(cloud, deployment.operation)
    return Reply(201 if is_new else 200, body, headers)


def _deployment_get(cloud: ArmCloud, call: Call, now: float) -> Reply:
    found = cloud.deployments.get(call.route.group, call.route.name)
    return Reply(200, render.deployment(cloud.settings.subscription_id, found))


def _deployment_head(cloud: ArmCloud, call: Call, now: float) -> Reply:
    cloud.deployments.get(call.route.group, call.route.name)
    return Reply(204)


def _deployment_delete(cloud: ArmCloud, call: Call, now: float) -> Reply:
    operation = cloud.deployments.delete(call.route.group, call.route.name, now=now)
    if operation is None:
        return Reply(204)
    home = f"{call.base}/subscriptions/{cloud.settings.subscription_id}"
    query = f"monitor=true&api-version={call.query['api-version']}"
    url = f"{home}/operationresults/{operation.operation_id}?{query}"
    return Reply(202, None, {"Location": url} | _advice(cloud, operation))


def _deployment_cancel(cloud: ArmCloud, call: Call, now: float) -> Reply:
    cloud.deployments.cancel(call.route.group, call.route.name, now=now)
    return Reply(204)


def _deployment_list(cloud: ArmCloud, call: Call, now: float) -> Reply:
    found = cloud.deployments.of_group(call.route.group)
    if expression := call.query.get("$filter"):
        match = _STATE_FILTER.fullmatch(expression.strip())
        if match is None:
            raise ArmError("InvalidFilterInQueryString", f"Invalid $filter '{expression}'.")
        found = [one for one in found if one.state.value.lower() == match["state"].lower()]
    before = _number(call.query.get("$skiptoken", "0"))
    found = [one for one in found if not before or one.sequence < before]
    size = min(_number(call.query.get("$top", "0")) or 10**9, cloud.settings.page_size)
    token = found[size - 1].sequence if len(found) > size else None
    subscription = cloud.settings.subscription_id
    return _page(call, [render.deployment(subscription, one) for one in found[:size]], token)


def _deployment_operations(cloud: ArmCloud, call: Call, now: float) -> Reply:
    found = cloud.deployments.get(call.route.group, call.route.name)
    subscription = cloud.settings.subscription_id
    shown = [render.deployment_operation(subscription, found, work) for work in found.works]
    return _page(call, shown, None)


def _model_of(cloud: ArmCloud, found: Resource) -> Json:
    return render.resource(cloud.settings.subscription_id, found, listed=True)


def _status_of(cloud: ArmCloud, found: Resource) -> Json:
    if not isinstance(found, Machine):
        return _model_of(cloud, found)
    return render.status_only(cloud.settings.subscription_id, found)


def _page(call: Call, shown: list[Json], token: int | None) -> Reply:
    body: Json = {"value": shown}
    if token is not None:
        query = urlencode({**call.query, "$skiptoken": str(token)})
        body["nextLink"] = f"{call.base}{call.path}?{query}"
    return Reply(200, body)


def _following(
    cloud: ArmCloud, call: Call, operation: Operation, *, deletes: bool = False
) -> dict[str, str]:
    """The headers that say where to see how an operation fares."""
    home = f"{call.base}/subscriptions/{cloud.settings.subscription_id}"
    where = f"providers/{operation.provider}/locations/{operation.location}/operations"
    version = f"api-version={call.query['api-version']}"
    url = f"{home}/{where}/{operation.operation_id}?{version}"
    headers = {"Azure-AsyncOperation": url} | _advice(cloud, operation)
    return headers | ({"Location": f"{url}&monitor=true"} if deletes else {})


def _advice(cloud: ArmCloud, operation: Operation) -> dict[str, str]:
    seconds = cloud.settings.retry_after_seconds
    return {} if operation.is_over else {"Retry-After": str(seconds)}


def _resource(cloud: ArmCloud, call: Call) -> Resource:
    return cloud.estate.get(_kind(call), call.route.group, call.route.name)


def _machine(cloud: ArmCloud, call: Call) -> Machine:
    found = _resource(cloud, call)
    if not isinstance(found, Machine):
        raise invalid(f"'{found.name}' is no virtual machine.")
    return found


def _kind(call: Call) -> Kind:
    assert call.route.kind is not None
    return call.route.kind


def _number(text: str) -> int:
    if not text.isdigit():
        raise invalid(f"'{text}' is no number.")
    return int(text)


_OF_RESOURCES: Mapping[str, Action] = {
    "put": _put,
    "get": _get,
    "delete": _delete,
    "patch": _patch,
    "list": _list,
    "listAll": _list,
}
_OF_MACHINES: Mapping[str, Action] = {
    "instanceView": _instance_view,
    "start": _power,
    "restart": _power,
    "powerOff": _power,
    "deallocate": _power,
}
ACTIONS: Mapping[str, Action] = {
    **{f"{kind.value}.{verb}": act for kind in Kind for verb, act in _OF_RESOURCES.items()},
    **{f"{Kind.VM.value}.{verb}": act for verb, act in _OF_MACHINES.items()},
    "operations.get": _operation,
    "resourceGroups.put": _group_put,
    "resourceGroups.get": _group_get,
    "resourceGroups.head": _group_head,
    "resourceGroups.list": _group_list,
    "deployments.put": _deployment_put,
    "deployments.get": _deployment_get,
    "deployments.head": _deployment_head,
    "deployments.delete": _deployment_delete,
    "deployments.cancel": _deployment_cancel,
    "deployments.list": _deployment_list,
    "deployments.operations": _deployment_operations,
}
