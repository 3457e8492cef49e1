"""Template expressions: ``[concat(parameters('vmName'), '-nic')]`` and the like.

The language is that of "Template functions in ARM templates"; of its functions there are those that
templates for machines use.  Read next: ``templates``.
"""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING, Any

from infra.local.clouds.arm.errors import ArmError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_TOKEN = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<number>-?\d+)|(?P<name>\w+)|(?P<sign>[().,\[\]]))"
)


def invalid_template(message: str) -> ArmError:
    """The refusal of a template, or of what is given to it."""
    return ArmError("InvalidTemplate", f"Deployment template validation failed: '{message}'.")


def evaluate(value: Any, functions: Mapping[str, Callable[..., Any]]) -> Any:
    """The value with all expressions in it evaluated; object members that are null are left out.

    ``functions`` add to the built-in ones.  Raises ``ArmError`` InvalidTemplate.
    """
    if isinstance(value, str):
        if value.startswith("[[") or not (value.startswith("[") and value.endswith("]")):
            return value.removeprefix("[") if value.startswith("[[") else value
        return _Reader(value[1:-1], functions).whole()
    if isinstance(value, list):
        return [evaluate(one, functions) for one in value]
    if isinstance(value, dict):
        pairs = {key: evaluate(one, functions) for key, one in value.items()}
        return {key: one for key, one in pairs.items() if one is not None}
    return value


class _Reader:
    """Reads one expression, evaluating it on the way."""

    def __init__(self, text: str, functions: Mapping[str, Callable[..., Any]]) -> None:
        self._text = text
        self._functions = functions
        self._tokens = [(m.lastgroup or "", m.group(m.lastgroup or "")) for m in self._scan()]

    def whole(self) -> Any:
        value = self._value()
        if self._tokens:
            raise self._senseless()
        return value

    def _scan(self) -> list[re.Match[str]]:
        found, position = [], 0
        while position < len(self._text.rstrip()):
            match = _TOKEN.match(self._text, position)
            if match is None:
                raise self._senseless()
            found.append(match)
            position = match.end()
        return found

    def _value(self) -> Any:
        kind, word = self._take()
        if kind == "text":
            value: Any = word[1:-1].replace("''", "'")
        elif kind == "number":
            value = int(word)
        elif kind == "name":
            value = self._call(word)
        else:
            raise self._senseless()
        while self._tokens and self._tokens[0][1] in (".", "["):
            value = self._member(value)
        return value

    def _call(self, name: str) -> Any:
        arguments: list[Any] = []
        self._expect("(")
        while self._tokens and self._tokens[0][1] != ")":
            arguments.append(self._value())
            if self._tokens and self._tokens[0][1] == ",":
                self._take()
        self._expect(")")
        function = self._functions.get(name) or _BUILT_IN.get(name)
        if function is None:
            raise invalid_template(f"The template function '{name}' is not valid.")
        return function(*arguments)

    def _member(self, value: Any) -> Any:
        sign = self._take()[1]
        key = self._value() if sign == "[" else self._take()[1]
        if sign == "[":
            self._expect("]")
        try:
            return value[key]
        except (KeyError, IndexError, TypeError):
            message = f"The language expression property '{key}' doesn't exist."
            raise invalid_template(message) from None

    def _take(self) -> tuple[str, str]:
        if not self._tokens:
            raise self._senseless()
        return self._tokens.pop(0)

    def _expect(self, sign: str) -> None:
        if self._take()[1] != sign:
            raise self._senseless()

    def _senseless(self) -> ArmError:
        return invalid_template(f"Unable to parse language expression '{self._text}'")


def _concat(*parts: Any) -> Any:
    if parts and isinstance(parts[0], list):
        return [one for part in parts for one in part]
    return "".join(str(part) for part in parts)


def _format(pattern: str, *values: Any) -> str:
    return re.sub(r"\{(\d+)\}", lambda match: str(values[int(match[1])]), pattern)


def _union(*parts: Any) -> Any:
    if isinstance(parts[0], list):
        return list(dict.fromkeys(one for part in parts for one in part))
    return {key: one for part in parts for key, one in part.items()}


_BUILT_IN: dict[str, Callable[..., Any]] = {
    "and": lambda *values: all(values),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "concat": _concat,
    "contains": lambda container, wanted: wanted in container,
    "createArray": lambda *values: list(values),
    "empty": lambda value: not value,
    "equals": lambda one, other: one == other,
    "false": lambda: False,
    "first": lambda value: value[0],
    "format": _format,
    "if": lambda condition, one, other: one if condition else other,
    "int": int,
    "json": json.loads,
    "length": len,
    "not": lambda value: not value,
    "null": lambda: None,
    "or": lambda *values: any(values),
    "string": lambda value: value if isinstance(value, str) else json.dumps(value),
    "take": lambda value, count: value[:count],
    "toLower": str.lower,
    "toUpper": str.upper,
    "true": lambda: True,
    "union": _union,
}
