"""Routes as values, and the way from a path to the one that answers it.

A pool id has exactly one slash, sent as ``%2F`` or as it is, so a path says unambiguously which
of its segments belong to the pool id.  Only a path for which that fails is read the other way,
segment by segment, so that a malformed id is called that and not an unknown path.
Where to read next: ``routes`` (all of them), ``app`` (what happens around a handler),
``documents`` (what is told of them to tools and people).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from inspect import getdoc
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar
from urllib.parse import unquote

from worker_manager.api.refusals import insufficient
from worker_manager.core.ids import DECISION_ID, IDENTIFIER, POOL_ID, SLUGID, matches
from worker_manager.core.scopes import AllOf, AnyOf, Expression

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pydantic import BaseModel

    from worker_manager.taskcluster.auth import Identity

DepsT = TypeVar("DepsT")

PARAMETERS: Mapping[str, str] = {
    "workerPoolId": POOL_ID,
    "taskQueueId": POOL_ID,
    "workerGroup": IDENTIFIER,
    "workerId": IDENTIFIER,
    "launchConfigId": IDENTIFIER,
    "decisionId": DECISION_ID,
    "provisionerId": IDENTIFIER,
    "workerType": IDENTIFIER,
    "taskId": SLUGID,
    "runId": r"^[0-9]{1,3}$",
    "name": r"^[^\n]+$",
    "actionName": r"^[a-z0-9-]{1,38}$",
    "actionRunId": SLUGID,
    "agentId": IDENTIFIER,
    "schema": r"^[a-z0-9-]{1,100}\.json$",
}
"""What each URL parameter must look like, wherever it occurs."""

LIMIT = r"^[0-9]{1,9}$"
TOKEN = r"^[ -~]{1,500}$"
"""Long enough for every key of our tables, too short for what no key may be."""
PAGING: Mapping[str, str] = {"continuationToken": TOKEN, "limit": LIMIT}
"""Query parameters of every list."""


Stability = Literal["stable", "experimental", "deprecated"]

_OUR_MARKS = re.compile(r" \([A-Z]\d+(?:, [A-Z]\d+)*\)")
"""Which report or rule a docstring answers to; readers of documents do not know them."""

_WITH_SLASH = frozenset({"workerPoolId", "taskQueueId"})
_REST = frozenset({"name"})
_PART = re.compile(r"<(\w+)>|([^<]+)")


@dataclass(frozen=True, slots=True)
class Call:
    """A request that passed every check, as a handler sees it.

    ``body`` is the model that the route declares (``None`` if it declares none), ``payload`` the
    JSON it was made of; ``client_id`` is who calls, ``None`` for anybody; ``request_id`` is the
    front door's name of the request, if it gives one.  ``identity`` is that of a caller who had
    to say who it is.
    """

    params: Mapping[str, str]
    query: Mapping[str, str]
    body: Any
    payload: Any
    client_id: str | None
    request_id: str | None = None
    identity: Identity | None = None

    def satisfies(self, required: Expression) -> bool:
        """Whether the caller may do what requires these scopes."""
        return self.identity is not None and self.identity.satisfies(required)

    def require(self, required: Expression) -> None:
        """Refuse a caller whose scopes are not enough for what turned out to be asked."""
        if not self.satisfies(required):
            raise insufficient(self.identity, required)

    @property
    def pool_id(self) -> str:
        """The pool that the path names."""
        return self.params["workerPoolId"]


@dataclass(frozen=True, slots=True)
class WithHeaders:
    """What a handler answers, with headers of its own."""

    body: Any
    headers: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Route(Generic[DepsT]):
    """One method of an API, as data.

    ``path`` is below ``/api/<service>/v1``, or whole where there is no service; ``<names>`` in it,
    and in ``scopes``, stand for URL parameters, in ``scopes`` also for fields of the body.
    ``scopes`` is ``None`` where anybody may call; ``scopes_of`` makes them from parameters (of URL
    and query) and payload where a template cannot say it, which then only documents them.
    ``secret_fields`` are paths into the payload that no error body repeats (``()`` is all of it).
    Its description is the handler's docstring.  What is not ``is_published`` is left out of
    documents and works all the same; an answer may be kept by anybody for ``max_age`` seconds.
    """

    name: str
    method: str
    path: str
    handler: Callable[[Call, DepsT], Any]
    service: str | None = "worker-manager"
    scopes: Expression | None = None
    scopes_of: Callable[[Mapping[str, str], Any], Expression] | None = None
    query: Mapping[str, str] = field(default_factory=dict)
    body: type[BaseModel] | None = None
    response: type[BaseModel] | None = None
    secret_fields: Sequence[tuple[str, ...]] = ()
    stability: Stability = "stable"
    is_published: bool = True
    max_age: int = 0

    @property
    def template(self) -> str:
        """The whole path."""
        return self.path if self.service is None else f"/api/{self.service}/v1{self.path}"

    @property
    def url_parameters(self) -> tuple[str, ...]:
        """Names of the parameters in its path, in order."""
        return tuple(re.findall(r"<(\w+)>", self.path))

    @property
    def description(self) -> str:
        """What it does, for people."""
        return _OUR_MARKS.sub("", getdoc(self.handler) or "")

    @property
    def title(self) -> str:
        """Its name as words."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", self.name).capitalize()

    @property
    def is_public(self) -> bool:
        """Whether anybody may call it, signed or not."""
        return self.scopes is None and self.scopes_of is None

    @property
    def needs_body_for_scopes(self) -> bool:
        """Whether the scopes are known only once the body, or the query, is."""
        if self.scopes_of is not None:
            return True
        named = re.findall(r"<(\w+)>", repr(self.scopes))
        return not set(named).issubset(self.url_parameters)

    def required_scopes(self, params: Mapping[str, str], payload: Any) -> Expression:
        """What this very call requires; parameters win over fields of the body."""
        if self.scopes_of is not None:
            return self.scopes_of(params, payload)
        values = {**(payload if isinstance(payload, dict) else {}), **params}
        return _fill(self.scopes if self.scopes is not None else AllOf(()), values)


@dataclass(frozen=True, slots=True)
class Match(Generic[DepsT]):
    """A route and the decoded values of its URL parameters, not yet checked."""

    route: Route[DepsT]
    params: Mapping[str, str]

    def misfit(self) -> str | None:
        """The first parameter that does not look as it must, in words."""
        for name, value in self.params.items():
            pattern = PARAMETERS[name]
            if not matches(pattern, value):
                return f"{name}: {value!r} does not match {pattern}"
        return None


class Router(Generic[DepsT]):
    """Finds the route of a method and path; where several fit, the first one listed."""

    def __init__(self, routes: Sequence[Route[DepsT]]) -> None:
        self._strict = [(_compiled(route.template, whole_ids=True), route) for route in routes]
        self._lenient = [(_compiled(route.template, whole_ids=False), route) for route in routes]

    def find(self, method: str, path: str) -> Match[DepsT] | None:
        """The route that answers, or ``None``."""
        for table in (self._strict, self._lenient):
            for pattern, route in table:
                found = pattern.fullmatch(path) if route.method == method else None
                if found:
                    params = {name: unquote(text) for name, text in found.groupdict().items()}
                    return Match(route, params)
        return None


def _compiled(template: str, *, whole_ids: bool) -> re.Pattern[str]:
    def pattern(part: re.Match[str]) -> str:
        name, literal = part.groups()
        if literal is not None:
            return re.escape(literal).replace(":", "(?::|%3[Aa])")
        if name in _REST:
            return f"(?P<{name}>.+)"
        if name in _WITH_SLASH and whole_ids:
            return f"(?P<{name}>[^/%]+(?:/|%2[Ff])[^/]+?)"
        return f"(?P<{name}>[^/]+?)"

    return re.compile("".join(pattern(part) for part in _PART.finditer(template)))


def _fill(expression: Expression, values: Mapping[str, Any]) -> Expression:
    match expression:
        case AllOf(parts):
            return AllOf(tuple(_fill(part, values) for part in parts))
        case AnyOf(parts):
            return AnyOf(tuple(_fill(part, values) for part in parts))
        case text:
            return re.sub(r"<(\w+)>", lambda found: str(values[found.group(1)]), text)
