"""From a front door's event to an answer: who calls, may they, is it well-formed, then the handler.

The order of checks is Taskcluster's and can be observed: the body must be JSON first of all; who
may not call learns that before anything of their arguments, unless the scopes themselves depend
on the body.  Where to read next: ``routing`` (what a route says), ``refusals`` (how errors look).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from uuid import uuid4

from pydantic import BaseModel

from worker_manager.api.load_balancer import for_load_balancer, is_from_load_balancer
from worker_manager.api.refusals import (
    OMITTED,
    Refusal,
    error_body,
    insufficient,
    not_found,
    refusal_for,
)
from worker_manager.api.requests import Request
from worker_manager.api.routing import Call, Match, Route, Router, WithHeaders
from worker_manager.api.validation import parse_body
from worker_manager.core.ids import matches
from worker_manager.taskcluster.resources import Endpoint
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from worker_manager.api.deps import AnyDeps
    from worker_manager.core.scopes import Expression
    from worker_manager.taskcluster.auth import Identity

DepsT = TypeVar("DepsT", bound="AnyDeps")

HEADERS = {
    "Content-Type": "application/json",
    "Cache-Control": "no-store, no-cache, must-revalidate",
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Max-Age": "900",
    "Access-Control-Allow-Methods": "OPTIONS,GET,HEAD,POST,PUT,DELETE",
    "Access-Control-Allow-Headers": (
        "X-Requested-With,Content-Type,Authorization,Accept,Origin,Cache-Control"
    ),
}
"""Of every answer, if its route says nothing else: nobody may keep it, and pages of any origin
may read it."""


@dataclass(slots=True)
class _Progress:
    """What is known of a request so far, for whatever answer it gets."""

    method: str = "unknown"
    params: Mapping[str, str] | None = None
    payload: Any = None
    client_id: str | None = None
    max_age: int = 0
    headers: dict[str, str] = field(default_factory=dict)


class App(Generic[DepsT]):
    """One API: some routes over what their handlers need."""

    def __init__(self, routes: Sequence[Route[DepsT]], deps: DepsT) -> None:
        self._router = Router(routes)
        self._deps = deps
        self._endpoint = Endpoint.of(deps.root_url)

    def handle(self, event: dict[str, Any]) -> dict[str, Any]:
        """Answer one proxy event.  Never raises: what nobody foresaw is a 500."""
        answer = self._answer(event)
        return for_load_balancer(answer, event) if is_from_load_balancer(event) else answer

    def _answer(self, event: dict[str, Any]) -> dict[str, Any]:
        progress = _Progress()
        try:
            request = Request.of(event, prefix=self._endpoint.prefix)
            if request.method == "OPTIONS":
                return _answer(HTTPStatus.OK, {})
            body = self._respond(request, progress)
            logger.debug("answered", method=progress.method, client=progress.client_id)
            answer = _answer(HTTPStatus.OK, body, _keeping(progress.max_age) | progress.headers)
            return {**answer, "body": ""} if request.method == "HEAD" else answer
        except Exception as error:  # the border: nothing may leave but an answer
            return self._refuse(error, progress)

    def _respond(self, request: Request, progress: _Progress) -> Any:
        method = "GET" if request.method == "HEAD" else request.method
        match = self._router.find(method, request.path)
        if match is None:
            raise not_found(f"There is no method {method} {request.path}")
        route = match.route
        progress.method, progress.params = route.name, match.params
        progress.max_age = route.max_age
        request.check_size()
        payload = request.payload() if route.body is not None else {}
        progress.payload = without_secrets(payload, route)
        return self._call(request, match, payload, progress)

    def _call(
        self, request: Request, match: Match[DepsT], payload: Any, progress: _Progress
    ) -> Any:
        route = match.route
        identity = None
        if not route.is_public and not route.needs_body_for_scopes:
            identity = self._authenticate(request, progress)
            _require(identity, route.required_scopes(match.params, payload))
        if misfit := match.misfit():
            raise Refusal("InvalidRequestArguments", f"URL parameter {misfit}")
        query = check_query(request.query_arguments(), route)
        body = parse_body(route.body, payload) if route.body is not None else None
        if route.needs_body_for_scopes:
            identity = self._authenticate(request, progress)
            _require(identity, route.required_scopes({**query, **match.params}, payload))
        result = route.handler(
            Call(
                params=match.params,
                query=query,
                body=body,
                payload=payload,
                client_id=identity.client_id if identity else None,
                request_id=request.request_id,
                identity=identity,
            ),
            self._deps,
        )
        if isinstance(result, WithHeaders):
            progress.headers, result = dict(result.headers), result.body
        return to_json(result)

    def _authenticate(self, request: Request, progress: _Progress) -> Identity:
        identity = self._deps.authenticator.authenticate(request.signed(self._endpoint))
        progress.client_id = identity.client_id
        return identity

    def _refuse(self, error: Exception, progress: _Progress) -> dict[str, Any]:
        refusal = refusal_for(error)
        if refusal is None:
            incident = str(uuid4())
            logger.exception("request failed", method=progress.method, incident=incident)
            refusal = Refusal(
                "InternalServerError", f"Internal server error, incidentId {incident}."
            )
        elif refusal.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            logger.warning("not available", method=progress.method, error=repr(error))
        else:
            logger.info(
                "refused",
                method=progress.method,
                code=refusal.code,
                params=progress.params,
                client=progress.client_id,
            )
        body = error_body(
            refusal,
            method=progress.method,
            params=progress.params or {},
            payload={} if progress.payload is None else progress.payload,
            now=self._deps.clock(),
        )
        return _answer(refusal.status, body, refusal.headers())


def _require(identity: Identity, required: Expression) -> None:
    """Refuse a caller whose scopes are not enough."""
    if not identity.satisfies(required):
        raise insufficient(identity, required)


def check_query(given: Mapping[str, str], route: Route[Any]) -> Mapping[str, str]:
    """Refuse query parameters that the route does not know or that look wrong."""
    for name, value in given.items():
        pattern = route.query.get(name)
        if pattern is None:
            known = ", ".join(sorted(route.query)) or "none"
            raise Refusal(
                "InvalidRequestArguments",
                f"Query parameter {name!r} is not supported; this method knows: {known}",
            )
        if not matches(pattern, value):
            raise Refusal(
                "InvalidRequestArguments",
                f"Query parameter {name}: {value!r} does not match {pattern}",
            )
    return given


def without_secrets(payload: Any, route: Route[Any]) -> Any:
    """The payload as an error body may repeat it."""
    for path in route.secret_fields:
        payload = _without(payload, path)
    return payload


def _without(value: Any, path: Sequence[str]) -> Any:
    if not path:
        return OMITTED
    if not isinstance(value, dict) or path[0] not in value:
        return value
    return {**value, path[0]: _without(value[path[0]], path[1:])}


def to_json(result: Any) -> Any:
    """What a handler returned, as JSON values; optional fields that were not set stay away."""
    if isinstance(result, BaseModel):
        return result.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return result


def _keeping(max_age: int) -> dict[str, str]:
    """Headers of an answer that anybody may keep for ``max_age`` seconds."""
    return {"Cache-Control": f"public, max-age={max_age}"} if max_age else {}


def _answer(status: int, body: Any, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
    return {
        "statusCode": int(status),
        "headers": {**HEADERS, **(headers or {})},
        "body": json.dumps(body, separators=(",", ":"), ensure_ascii=False),
        "isBase64Encoded": False,
    }
