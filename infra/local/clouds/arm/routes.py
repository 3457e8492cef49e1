"""Which action a request is, by its method and path.  Azure does not know case in paths.

Paths are those of the Azure REST API reference.  Read next: ``actions``.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote

from infra.local.clouds.arm.resources import Kind

_KINDS = {kind.value.lower(): kind for kind in Kind}
_GROUP = r"/resourcegroups/(?P<group>[^/]+)"
_DEPLOYMENTS = rf"{_GROUP}(?:/providers/microsoft\.resources)?/deployments"
_DEPLOYMENT = rf"{_DEPLOYMENTS}/(?P<name>[^/]+)"
_TYPE = r"/providers/microsoft\.(?:compute|network)/(?P<type>\w+)"
_RESOURCE = rf"{_GROUP}{_TYPE}/(?P<name>[^/]+)"


class Route(NamedTuple):
    """What a path says."""

    action: str
    subscription: str
    group: str = ""
    name: str = ""
    kind: Kind | None = None


_ROUTES = [
    (re.compile(rf"/subscriptions/(?P<subscription>[^/]+){path}/?", re.IGNORECASE), methods, action)
    for path, methods, action in (
        ("/resourcegroups", ("GET",), "resourceGroups.list"),
        (_GROUP, ("GET", "PUT", "HEAD"), "resourceGroups.{method}"),
        (rf"{_DEPLOYMENT}/operationstatuses/(?P<id>[^/]+)", ("GET",), "operations.get"),
        (rf"{_DEPLOYMENT}/operations", ("GET",), "deployments.operations"),
        (rf"{_DEPLOYMENT}/cancel", ("POST",), "deployments.cancel"),
        (_DEPLOYMENT, ("GET", "PUT", "DELETE", "HEAD"), "deployments.{method}"),
        (_DEPLOYMENTS, ("GET",), "deployments.list"),
        (
            r"/providers/[\w.]+/locations/[^/]+/operations/(?P<id>[^/]+)",
            ("GET",),
            "operations.get",
        ),
        (r"/operationresults/(?P<id>[^/]+)", ("GET",), "operations.get"),
        (_TYPE, ("GET",), "{type}.listAll"),
        (rf"{_GROUP}{_TYPE}", ("GET",), "{type}.list"),
        (_RESOURCE, ("GET", "PUT", "DELETE", "PATCH"), "{type}.{method}"),
        (rf"{_RESOURCE}/(?P<verb>instanceView)", ("GET",), "{type}.{verb}"),
        (
            rf"{_RESOURCE}/(?P<verb>start|restart|powerOff|deallocate)",
            ("POST",),
            "{type}.{verb}",
        ),
    )
]
_VERBS = {verb.lower(): verb for verb in ("instanceView", "powerOff")}


def route(method: str, path: str) -> Route | None:
    """What the request is; ``None`` for what there is not here."""
    for pattern, methods, action in _ROUTES:
        match = pattern.fullmatch(path)
        if match is None or method not in methods:
            continue
        found = {name: unquote(value) for name, value in match.groupdict().items() if value}
        kind = _KINDS.get(found.get("type", "").lower())
        if "type" in found and kind is None:
            return None
        verb = found.get("verb", "").lower()
        return Route(
            action.format(
                method=method.lower(),
                type=kind.value if kind else "",
                verb=_VERBS.get(verb, verb),
            ),
            found["subscription"],
            group=found.get("group", ""),
            name=found.get("id") or found.get("name", ""),
            kind=kind,
        )
    return None
