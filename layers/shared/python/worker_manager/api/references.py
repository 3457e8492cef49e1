"""Serving what is to be told of an API: references, JSON schemas, an OpenAPI document.

Anybody may read and keep them.  Making them loads modules that no other call needs, so it is done
when one is first asked for.  Where to read next: ``documents``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from worker_manager.api.refusals import not_found
from worker_manager.api.routing import Call, Route

if TYPE_CHECKING:
    from worker_manager.api.deps import AnyDeps, ApiDeps

KEPT = 300
"""Seconds for which anybody may keep a document."""


def _documents(module: str) -> Any:
    return import_module(f"worker_manager.api.documents.{module}")


def _service(name: str) -> Any:
    return _documents(name.replace("-", "_")).SERVICE


def manifest(_call: Call, deps: ApiDeps) -> Any:
    """Where the references of the services under this root URL are."""
    return _documents("references").manifest(deps.root_url, has_queue=deps.has_embedded_queue)


def exchanges(_call: Call, _deps: AnyDeps) -> Any:
    """Every exchange of the worker manager, as Taskcluster's tools read it."""
    return _documents("references").exchanges_reference(_service("worker-manager"))


def shared_schema(call: Call, _deps: ApiDeps) -> Any:
    """The JSON schema of a format that all services use."""
    return _named(_documents("schemas").formats(), call)


def _named(found: Any, call: Call) -> Any:
    name = call.params["schema"]
    if name not in found:
        raise not_found(f"Schema {name!r} does not exist")
    return found[name]


def routes_of(service: str) -> tuple[Route[Any], ...]:
    """The documents of one service."""

    def api(_call: Call, _deps: AnyDeps) -> Any:
        """Every method, as Taskcluster's tools read it."""
        return _documents("references").api_reference(_service(service))

    def schema(call: Call, _deps: AnyDeps) -> Any:
        """One JSON schema."""
        return _named(_documents("schemas").documents(_service(service)), call)

    def openapi(_call: Call, deps: AnyDeps) -> Any:
        """Every method, as everybody else's tools read it."""
        return _documents("openapi").openapi(_service(service), deps.root_url)

    return (
        _route("apiReference", f"/references/{service}/v1/api.json", api),
        _route("schema", f"/schemas/{service}/v1/<schema>", schema),
        _route("openapi", f"/api/{service}/v1/openapi.json", openapi),
    )


def _route(name: str, path: str, handler: Any) -> Route[Any]:
    return Route(
        name=name,
        method="GET",
        path=path,
        handler=handler,
        service=None,
        is_published=False,
        max_age=KEPT,
    )


ROUTES: tuple[Route[ApiDeps], ...] = (
    *routes_of("worker-manager"),
    _route("exchangesReference", "/references/worker-manager/v1/exchanges.json", exchanges),
    _route("manifest", "/references/manifest.json", manifest),
    _route("sharedSchema", "/schemas/common/<schema>", shared_schema),
)
