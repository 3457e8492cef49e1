"""References in Taskcluster's format, from which its tools build clients and pages.

Where to read next: ``formats`` (their shapes), ``schemas`` (what they point to).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from worker_manager.api.documents.formats import (
    API_REFERENCE,
    EXCHANGES_REFERENCE,
    ApiEntry,
    ApiReference,
    ExchangeEntry,
    ExchangesReference,
    Manifest,
    RoutingWord,
)
from worker_manager.api.documents.schemas import schema_name
from worker_manager.api.documents.service import VERSION
from worker_manager.api.documents.words import camel, heading, spoken
from worker_manager.core.scopes import AllOf, AnyOf

if TYPE_CHECKING:
    from pydantic import BaseModel

    from worker_manager.api.documents.service import Service
    from worker_manager.api.routing import Route
    from worker_manager.core.model import Json
    from worker_manager.core.scopes import Expression

_WORDS = (
    ("providerId", "The provider.", "provider_id"),
    ("provisionerId", "The first half of the worker pool's id.", "worker_pool_id"),
    ("workerType", "The second half of the worker pool's id.", "worker_pool_id"),
    ("workerGroup", "Where the worker is.", "worker_group"),
    ("workerId", "The worker within its group.", "worker_id"),
    ("launchConfigId", "The launch config within its pool.", "launch_config_id"),
)
"""Of a routing key: name, summary, and the field of the message that it comes from."""


@cache
def api_reference(service: Service) -> Json:
    """Every published method."""
    return _plain(
        ApiReference(
            document_schema=API_REFERENCE,
            api_version=VERSION,
            service_name=service.name,
            title=service.title,
            description=service.description,
            entries=[_entry(service, route) for route in service.routes],
        )
    )


@cache
def exchanges_reference(service: Service) -> Json:
    """Every exchange, for whoever listens to Taskcluster's Pulse."""
    return _plain(
        ExchangesReference(
            document_schema=EXCHANGES_REFERENCE,
            api_version=VERSION,
            service_name=service.name,
            title=f"{service.title} Exchanges",
            description="What changed, told when it did.",
            exchange_prefix=f"exchange/taskcluster-{service.name}/{VERSION}/",
            entries=[_exchange(service, name, model) for name, model in service.messages.items()],
        )
    )


def manifest(root_url: str, *, has_queue: bool) -> Json:
    """Where the references of the services under a root URL are."""
    documents = [
        f"worker-manager/{VERSION}/api.json",
        f"worker-manager/{VERSION}/exchanges.json",
        f"worker-registry/{VERSION}/api.json",
    ]
    if has_queue:
        documents.append(f"queue/{VERSION}/api.json")
    return _plain(Manifest(references=[f"{root_url}/references/{name}" for name in documents]))


def scopes_template(expression: Expression) -> Any:
    """A scope expression as Taskcluster writes it."""
    match expression:
        case AllOf(parts):
            return {"AllOf": [scopes_template(part) for part in parts]}
        case AnyOf(parts):
            return {"AnyOf": [scopes_template(part) for part in parts]}
        case text:
            return text


def _entry(service: Service, route: Route[Any]) -> ApiEntry:
    given: dict[str, Any] = {}
    if route.scopes is not None:
        given["scopes"] = scopes_template(route.scopes)
    for key, model in (("input", route.body), ("output", route.response)):
        if model is not None:
            given[key] = f"{VERSION}/{schema_name(service, model)}.json#"
    return ApiEntry.model_validate(
        {
            "type": "function",
            "name": route.name,
            "title": route.title,
            "category": heading(route.path),
            "description": route.description,
            "method": route.method.lower(),
            "route": route.path,
            "args": list(route.url_parameters),
            "query": list(route.query),
            "stability": route.stability,
            **given,
        }
    )


def _exchange(service: Service, name: str, model: type[BaseModel]) -> ExchangeEntry:
    return ExchangeEntry(
        type="topic-exchange",
        exchange=name,
        name=camel(name),
        title=f"{spoken(name)} messages",
        description=model.__doc__ or "",
        routing_key=[
            RoutingWord(
                name="routingKeyKind",
                summary="Always `primary`.",
                multiple_words=False,
                required=True,
                constant="primary",
            ),
            *(
                RoutingWord(
                    name=word,
                    summary=summary,
                    multiple_words=False,
                    required="worker_group" in model.model_fields
                    and field in model.model_fields
                    and model.model_fields[field].is_required(),
                )
                for word, summary, field in _WORDS
            ),
            RoutingWord(
                name="reserved",
                summary="Room for words to come; match it with `#`.",
                multiple_words=True,
                required=False,
            ),
        ],
        message_schema=f"{VERSION}/{schema_name(service, model)}.json#",
    )


def _plain(document: BaseModel) -> Json:
    return document.model_dump(mode="json", by_alias=True, exclude_unset=True)
