"""JSON schemas of models: Taskcluster's way, one document each, and OpenAPI's way, all in one.

Taskcluster's are of draft 6 and refer to each other by file name; what has no file of its own is
in ``definitions``.  Where to read next: ``references``, ``openapi``.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from worker_manager.api.documents.formats import DRAFT_06, FORMATS, METASCHEMA

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pydantic import BaseModel

    from worker_manager.api.documents.service import Service

Schema = dict[str, Any]

_SILENT_DEFAULTS = (None, "")


class _Plain(GenerateJsonSchema):
    """Without titles that only repeat names."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


class Definitions:
    """Models and all that they refer to, as JSON schemas by name."""

    def __init__(self, models: Iterable[type[BaseModel]]) -> None:
        refs, made = models_json_schema(
            [(model, "validation") for model in dict.fromkeys(models)],
            ref_template="{model}",
            schema_generator=_Plain,
        )
        self._names = {model: schema["$ref"] for (model, _), schema in refs.items()}
        self._schemas: dict[str, Schema] = made["$defs"]

    def name(self, model: type[BaseModel]) -> str:
        """What a model is called here."""
        return cast("str", self._names[model])

    def schema(self, name: str, refer: Callable[[str], str]) -> Schema:
        """One schema; ``refer`` says how the others are referred to."""
        return cast("Schema", _rewritten(self._schemas[name], refer))

    def all(self, refer: Callable[[str], str]) -> dict[str, Schema]:
        """Every schema."""
        return {name: self.schema(name, refer) for name in self._schemas}


def _rewritten(node: Any, refer: Callable[[str], str]) -> Any:
    if isinstance(node, list):
        return [_rewritten(item, refer) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        rest = {key: value for key, value in node.items() if key not in ("$ref", "default")}
        reference = {"$ref": refer(node["$ref"])}
        return {"allOf": [reference], **rest} if rest else reference
    return {
        key: _rewritten(value, refer)
        for key, value in node.items()
        if not (key == "default" and (isinstance(value, dict) or value in _SILENT_DEFAULTS))
    }


def schema_name(service: Service, model: type[BaseModel]) -> str:
    """A model's file name without its ending: its class's, unless the service says another."""
    return (
        service.schema_names.get(model)
        or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", model.__name__).lower()
    )


@cache
def documents(service: Service) -> Mapping[str, Schema]:
    """Every JSON schema of a service, by file name."""
    files: dict[str, type[BaseModel]] = {}
    for route in service.routes:
        for model in (route.body, route.response):
            if model is not None:
                files[schema_name(service, model)] = model
    files |= {name: model for model, name in service.schema_names.items()}
    files |= {schema_name(service, model): model for model in service.messages.values()}
    files |= {f"event-{name}": model for name, model in service.events.items()}
    definitions = Definitions(files.values())
    own = {
        definitions.name(model): f"{name}.json#"
        for name, model in files.items()
        if not name.startswith("event-")
    }
    return {
        f"{name}.json": _document(
            definitions, definitions.name(model), own, f"{service.schema_base}/{name}.json#"
        )
        for name, model in files.items()
    }


@cache
def formats() -> Mapping[str, Schema]:
    """The JSON schemas of references and of JSON schemas, by file name."""
    found: dict[str, Schema] = {
        "metaschema.json": {"$schema": DRAFT_06, "$id": METASCHEMA, "$ref": DRAFT_06}
    }
    for name, (model, metadata) in FORMATS.items():
        definitions = Definitions([model])
        document_id = f"/schemas/common/{name}.json#"
        made = _document(definitions, definitions.name(model), {}, document_id)
        found[f"{name}.json"] = {**made, "metadata": metadata}
    return found


def _document(
    definitions: Definitions, name: str, own: Mapping[str, str], document_id: str
) -> Schema:
    """One schema with all that it refers to and has no document of its own."""
    inner: dict[str, Schema] = {}

    def refer(other: str) -> str:
        if other in own:
            return own[other]
        if other not in inner:
            inner[other] = {}
            inner[other] = definitions.schema(other, refer)
        return f"#/definitions/{other}"

    made = definitions.schema(name, refer)
    document = {"$schema": METASCHEMA, "$id": document_id, **made}
    return {**document, "definitions": inner} if inner else document
