"""The shapes of documents themselves: references in Taskcluster's format, and the error body.

References are built as these models, and their JSON schemas are served beside them, so that what
they say of themselves holds.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

from worker_manager.api.refusals import STATUS
from worker_manager.api.routing import Stability  # noqa: TC001 - pydantic reads it
from worker_manager.api.validation import Answer, Moment

API_REFERENCE: Literal["/schemas/common/api-reference-v0.json#"] = (
    "/schemas/common/api-reference-v0.json#"
)
EXCHANGES_REFERENCE: Literal["/schemas/common/exchanges-reference-v0.json#"] = (
    "/schemas/common/exchanges-reference-v0.json#"
)
METASCHEMA = "/schemas/common/metaschema.json#"
DRAFT_06 = "http://json-schema.org/draft-06/schema#"
"""The JSON schemas here are of this draft, as Taskcluster's are."""

Version = Annotated[str, StringConstraints(pattern=r"^v[0-9]+$")]
ServiceName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]*$", max_length=22)]


_ODD_NAMES = {
    "document_schema": "$schema",
    "message_schema": "schema",
    "all_of": "AllOf",
    "any_of": "AnyOf",
}


def _wire_name(name: str) -> str:
    return _ODD_NAMES.get(name) or to_camel(name)


class _Document(Answer):
    """Camel case, but for a few names that Taskcluster writes otherwise."""

    model_config = ConfigDict(alias_generator=_wire_name)


class AllOfScopes(_Document):
    """Satisfied when every part is."""

    all_of: list[Scopes]


class AnyOfScopes(_Document):
    """Satisfied when at least one part is."""

    any_of: list[Scopes]


Scopes: TypeAlias = str | AllOfScopes | AnyOfScopes


class ApiEntry(_Document):
    """One method; ``input`` and ``output`` are below ``/schemas/<serviceName>/``."""

    type: Literal["function"]
    name: str
    title: str
    category: str
    description: str
    method: Literal["get", "post", "put", "delete"]
    route: str
    args: list[str]
    query: list[str]
    stability: Stability
    scopes: Scopes | None = None
    input: str | None = None
    output: str | None = None


class ApiReference(_Document):
    """Every published method of a service."""

    document_schema: Literal["/schemas/common/api-reference-v0.json#"]
    api_version: Version
    service_name: ServiceName
    title: str
    description: str
    entries: list[ApiEntry]


class RoutingWord(_Document):
    """One word of a routing key; ``_`` stands where one that is not required is not known."""

    name: str
    summary: str
    multiple_words: bool
    required: bool
    constant: str | None = None


class ExchangeEntry(_Document):
    """One exchange."""

    type: Literal["topic-exchange"]
    exchange: str
    name: str
    title: str
    description: str
    routing_key: list[RoutingWord]
    message_schema: str


class ExchangesReference(_Document):
    """Every exchange of a service."""

    document_schema: Literal["/schemas/common/exchanges-reference-v0.json#"]
    api_version: Version
    service_name: ServiceName
    title: str
    description: str
    exchange_prefix: str
    entries: list[ExchangeEntry]


class Manifest(_Document):
    """Where the references of every service under a root URL are."""

    references: list[str]


class RequestInfo(_Document):
    """What was asked; secrets in it are left out."""

    method: str
    params: dict[str, str]
    payload: Any
    time: Moment


class ErrorBody(_Document):
    """Why a request was not done."""

    code: str = Field(json_schema_extra={"enum": list(STATUS)})
    message: str
    request_info: RequestInfo


FORMATS: dict[str, tuple[type[Answer], dict[str, Any]]] = {
    "api-reference-v0": (ApiReference, {"name": "api", "version": 0}),
    "exchanges-reference-v0": (ExchangesReference, {"name": "exchanges", "version": 0}),
    "manifest-v3": (Manifest, {"name": "manifest", "version": 3}),
}
"""Name below ``/schemas/common`` → the format, and what Taskcluster's tools know it by."""
