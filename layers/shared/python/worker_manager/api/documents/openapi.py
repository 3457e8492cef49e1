"""The OpenAPI 3.1 document of a service.

Where to read next: ``schemas``; ``refusals`` for the errors that every method may answer with.
"""

from __future__ import annotations

import re
from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import worker_manager
from worker_manager.api.documents.formats import ErrorBody
from worker_manager.api.documents.references import scopes_template
from worker_manager.api.documents.schemas import Definitions
from worker_manager.api.documents.words import QUERY_PARAMETERS, URL_PARAMETERS, heading
from worker_manager.api.refusals import STATUS
from worker_manager.api.routing import PARAMETERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic import BaseModel

    from worker_manager.api.documents.service import Service
    from worker_manager.api.routing import Route

Node = dict[str, Any]

_EXPLAINED = {
    HTTPStatus.BAD_REQUEST: "Something is wrong with the request; the message names it.",
    HTTPStatus.UNAUTHORIZED: "Who signed the request is not known, or did not sign this one.",
    HTTPStatus.FORBIDDEN: "Who signed the request lacks scopes; the message names them.",
    HTTPStatus.NOT_FOUND: "What the request is about does not exist.",
    HTTPStatus.CONFLICT: "The request contradicts what is there already.",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "The body is too large.",
    HTTPStatus.INTERNAL_SERVER_ERROR: "A fault of ours.",
    HTTPStatus.SERVICE_UNAVAILABLE: "Nothing is wrong with the request; it cannot be done now.",
}
_HEADERS: Mapping[int, Node] = {
    HTTPStatus.UNAUTHORIZED: {"WWW-Authenticate": {"schema": {"const": "hawk"}}},
    HTTPStatus.INTERNAL_SERVER_ERROR: {"Retry-After": {"schema": {"type": "string"}}},
    HTTPStatus.SERVICE_UNAVAILABLE: {"Retry-After": {"schema": {"type": "string"}}},
}
_HAWK = {
    "type": "http",
    "scheme": "hawk",
    "description": "Taskcluster credentials, permanent or temporary; clients of it sign by Hawk.",
}


@cache
def openapi(service: Service, root_url: str) -> Node:
    """Every published method, its parameters, bodies and answers."""
    models: dict[type[BaseModel], None] = {ErrorBody: None}
    for route in service.routes:
        models |= {model: None for model in (route.body, route.response) if model is not None}
    definitions = Definitions(models)
    paths: dict[str, Node] = {}
    for route in service.routes:
        path = re.sub(r"<(\w+)>", r"{\1}", route.path)
        paths.setdefault(path, {})[route.method.lower()] = _operation(route, definitions)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": service.title,
            "description": service.description,
            "version": worker_manager.__version__,
        },
        "servers": [{"url": f"{root_url}{service.base}"}],
        "tags": [{"name": name} for name in _headings(service)],
        "paths": paths,
        "components": {
            "schemas": definitions.all(_reference),
            "responses": {
                f"Error{int(status)}": _error(status, definitions) for status in _EXPLAINED
            },
            "securitySchemes": {"hawk": _HAWK},
        },
    }


def _operation(route: Route[Any], definitions: Definitions) -> Node:
    operation: Node = {
        "operationId": route.name,
        "summary": route.title,
        "description": route.description,
        "tags": [heading(route.path)],
        "parameters": [*_parameters(route)],
        "responses": {
            "200": {
                "description": "Done.",
                "content": _json(_model(route.response, definitions)),
            },
            **{
                str(int(status)): {"$ref": f"#/components/responses/Error{int(status)}"}
                for status in _refusals(route)
            },
        },
        "security": [] if route.is_public else [{"hawk": []}],
        "x-stability": route.stability,
    }
    if route.scopes is not None:
        operation["x-scopes"] = scopes_template(route.scopes)
    if route.stability == "deprecated":
        operation["deprecated"] = True
    if route.body is not None:
        body = {"required": True, "content": _json(_model(route.body, definitions))}
        operation["requestBody"] = body
    return operation


def _parameters(route: Route[Any]) -> Iterator[Node]:
    for name in route.url_parameters:
        yield {
            "name": name,
            "in": "path",
            "required": True,
            "description": URL_PARAMETERS.get(name, ""),
            "schema": {"type": "string", "pattern": PARAMETERS[name]},
        }
    for name, pattern in route.query.items():
        yield {
            "name": name,
            "in": "query",
            "description": QUERY_PARAMETERS.get(name, ""),
            "schema": {"type": "string", "pattern": pattern},
        }


def _refusals(route: Route[Any]) -> Iterator[HTTPStatus]:
    """The statuses other than success that a method can answer with."""
    yield HTTPStatus.BAD_REQUEST
    if not route.is_public:
        yield HTTPStatus.UNAUTHORIZED
        yield HTTPStatus.FORBIDDEN
    if route.url_parameters or route.body is not None or "workerPoolId" in route.query:
        yield HTTPStatus.NOT_FOUND
    if route.method != "GET":
        yield HTTPStatus.CONFLICT
    if route.body is not None:
        yield HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    yield HTTPStatus.INTERNAL_SERVER_ERROR
    yield HTTPStatus.SERVICE_UNAVAILABLE


def _error(status: HTTPStatus, definitions: Definitions) -> Node:
    codes = [code for code, its_status in STATUS.items() if its_status == status]
    schema = {"allOf": [_model(ErrorBody, definitions), {"properties": {"code": {"enum": codes}}}]}
    response: Node = {"description": _EXPLAINED[status], "content": _json(schema)}
    if status in _HEADERS:
        response["headers"] = _HEADERS[status]
    return response


def _model(model: type[BaseModel] | None, definitions: Definitions) -> Node:
    """A reference to a model; any object where there is none."""
    return {"type": "object"} if model is None else {"$ref": _reference(definitions.name(model))}


def _reference(name: str) -> str:
    return f"#/components/schemas/{name}"


def _json(schema: Node) -> Node:
    return {"application/json": {"schema": schema}}


def _headings(service: Service) -> list[str]:
    return list(dict.fromkeys(heading(route.path) for route in service.routes))
