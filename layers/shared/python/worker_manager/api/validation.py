"""Bodies against their models, with errors that name the field as the caller wrote it."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    PlainSerializer,
    StringConstraints,
    ValidationError,
)
from pydantic.alias_generators import to_camel

from worker_manager.api.refusals import Refusal
from worker_manager.core.ids import IDENTIFIER, POOL_ID, SECRET
from worker_manager.core.moments import from_wire, is_date_time, to_wire

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

MOST_ERRORS = 20
"""How many faults of one body are told at once."""

LARGEST_NUMBER = 1_000_000_000
"""Of anything that is counted."""

_EMAIL = (
    r"^[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]+@"
    r"[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$"
)


def _to_moment(value: Any) -> datetime:
    if isinstance(value, datetime):
        return value
    if not is_date_time(value):
        raise ValueError("must be a date-time such as 2026-11-30T13:31:00.000Z")
    try:
        return from_wire(value)
    except ValueError:
        raise ValueError("is not a time that exists") from None


def _no_disguise(value: Any) -> Any:
    if isinstance(value, bool | str):
        raise ValueError("must be a number")
    return value


Moment = Annotated[
    datetime, BeforeValidator(_to_moment), PlainSerializer(to_wire, when_used="json")
]
NO_DISGUISE = BeforeValidator(_no_disguise)
"""After the limits of a number, which are in its JSON schema only if they come first."""
WholeNumber = Annotated[int, Field(ge=0, le=LARGEST_NUMBER), NO_DISGUISE]
PositiveNumber = Annotated[int, Field(ge=1, le=LARGEST_NUMBER), NO_DISGUISE]
Ratio = Annotated[float, Field(ge=0, le=1), NO_DISGUISE]
Identifier = Annotated[str, StringConstraints(pattern=IDENTIFIER)]
PoolId = Annotated[str, StringConstraints(pattern=POOL_ID)]
Secret = Annotated[str, StringConstraints(pattern=SECRET)]
Description = Annotated[str, StringConstraints(max_length=10_240)]
ShortText = Annotated[str, StringConstraints(max_length=128)]
Email = Annotated[str, StringConstraints(pattern=_EMAIL, max_length=320)]


class Wire(BaseModel):
    """A JSON object of the API: camel case, and nothing unknown in it."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
        defer_build=True,  # most functions never see most of them
    )


class Answer(Wire):
    """One that we send, made by its Python names; what is not known is left out, never null."""

    model_config = ConfigDict(populate_by_name=True)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Its JSON schema says so too."""
        schema = handler(core_schema)
        described = handler.resolve_ref_schema(schema)
        properties = described.get("properties", {})
        for name, said in properties.items():
            if isinstance(said, dict) and {"type": "null"} in said.get("anyOf", ()):
                properties[name] = _without_null(said)
        return schema


def _without_null(schema: JsonSchemaValue) -> JsonSchemaValue:
    kept = [choice for choice in schema["anyOf"] if choice != {"type": "null"}]
    rest = {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
    return {**rest, **kept[0]} if len(kept) == 1 else {**rest, "anyOf": kept}


_ModelT = TypeVar("_ModelT", bound=BaseModel)


def parse_body(model: type[_ModelT], payload: Any) -> _ModelT:
    """The body as ``model``; a 400 that names every wrong field if it is not."""
    return parse(model, payload, at=())


def parse(model: type[_ModelT], value: Any, *, at: Sequence[str | int]) -> _ModelT:
    """``value`` as ``model``; ``at`` is where in the body it stands."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        faults = [
            fault(place((*at, *found["loc"])), _words(found["type"], found["msg"]))
            for found in error.errors(include_url=False, include_input=False)
        ]
    raise invalid(faults)


def invalid(faults: Sequence[str]) -> Refusal:
    """The refusal of a body with these faults."""
    told = list(faults[:MOST_ERRORS])
    if len(faults) > MOST_ERRORS:
        told.append(f"and {len(faults) - MOST_ERRORS} more")
    return Refusal(
        "InputValidationError",
        "Request body is not valid:\n\n" + "\n".join(f"* {line}" for line in told),
    )


def fault(where: str, what: str) -> str:
    """One fault, naming the field first."""
    return f"{where}: {what}"


def place(path: Sequence[str | int]) -> str:
    """Where in a body, as one would write it: ``config.launchConfigs[0].region``.

    What stands in angle brackets is a choice among models, no field.
    """
    text = ""
    for part in path:
        if isinstance(part, str) and part.startswith("<"):
            continue
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text or "body"


def _words(kind: str, message: str) -> str:
    if kind == "missing":
        return "field required"
    if kind == "extra_forbidden":
        return "unknown field"
    if kind == "value_error":
        return message.removeprefix("Value error, ")
    return message[:1].lower() + message[1:]
