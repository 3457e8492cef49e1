"""Finding what an Azure error says: the telling code is often wrapped three times.

Resource Manager nests errors in ``details`` ("Error response content" of its API guidelines), and
a failed deployment quotes the resource provider's answer as JSON text within a message.  Microsoft
Entra writes ``error`` and ``error_description`` instead (RFC 6749, 5.2).  Where to read next:
``errors``, which decides what a code means.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

DEEPEST = 10
"""Levels of nesting that are looked into; real answers have about five."""


class Told(NamedTuple):
    """One code with its message, as Azure wrote them."""

    code: str
    message: str


def told(answer: Any, *, depth: int = 0) -> Iterator[Told]:
    """All codes of an error, the innermost first; nothing for what is no error."""
    if not isinstance(answer, Mapping) or depth > DEEPEST:
        return
    for inner in _inside(answer):
        yield from told(inner, depth=depth + 1)
    code, message = answer.get("code"), answer.get("message")
    if isinstance(answer.get("error"), str):
        code, message = answer["error"], answer.get("error_description")
    if isinstance(code, str) and code:
        yield Told(code, message if isinstance(message, str) else "")


def _inside(answer: Mapping[str, Any]) -> Iterator[Any]:
    """What an error wraps."""
    yield answer.get("error")
    details = answer.get("details")
    if isinstance(details, list):
        yield from details
    yield answer.get("innererror")
    yield _quoted(answer.get("message"))


def _quoted(message: Any) -> Any:
    """The JSON that a message consists of; ``None`` if it is just text."""
    if not isinstance(message, str) or not message.lstrip().startswith("{"):
        return None
    try:
        return json.loads(message)
    except ValueError:
        return None
