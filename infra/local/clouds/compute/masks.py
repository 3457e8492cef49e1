"""The ``fields`` parameter: which fields of an answer are wanted.

Grammar of "Working with partial responses": names separated by commas, ``a/b`` or ``a(b,c)`` for
what is below, ``*`` for any name.  Read next: ``actions``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from infra.local.clouds.compute.errors import ComputeError

Tree = dict[str, "Mask"]
_TOKENS = re.compile(r"[A-Za-z0-9_.*-]+|[,/()]")


class Mask:
    """Lets the wanted fields through; ``text`` tells one mask from another."""

    def __init__(self, text: str, wanted: Tree | None = None) -> None:
        self.text = text
        self._wanted = wanted
        """``None`` wants all."""

    def wants(self, name: str) -> bool:
        """Whether a field of that name is let through."""
        return self._wanted is None or name in self._wanted or "*" in self._wanted

    def below(self, name: str) -> Mask:
        """What is wanted of the value of a field."""
        if self._wanted is None:
            return self
        return self._wanted.get(name) or self._wanted.get("*") or _NOTHING

    def cut(self, value: Any) -> Any:
        """The value without what is not wanted; lists are looked through."""
        if self._wanted is None:
            return value
        if isinstance(value, list):
            return [self.cut(item) for item in value]
        if not isinstance(value, Mapping):
            return value
        return {n: self.below(n).cut(v) for n, v in value.items() if self.wants(n)}


EVERYTHING = Mask("")
_NOTHING = Mask("nothing", {})


@lru_cache(maxsize=64)
def mask_of(text: str) -> Mask:
    """Read a ``fields`` parameter; empty wants all.  Raises ``ComputeError`` if malformed."""
    if not text:
        return EVERYTHING
    tokens = _TOKENS.findall(text)
    if "".join(tokens) != text:
        raise _malformed(text)
    try:
        wanted = _fields(tokens)
    except IndexError:
        raise _malformed(text) from None
    if tokens:
        raise _malformed(text)
    return Mask(text, wanted)


def _fields(tokens: list[str]) -> Tree:
    """Take a comma-separated list off the front of the tokens."""
    wanted: Tree = {}
    while True:
        name = tokens.pop(0)
        wanted[name] = _rest(name, tokens)
        if not tokens or tokens[0] != ",":
            return wanted
        tokens.pop(0)


def _rest(name: str, tokens: list[str]) -> Mask:
    """What stands below a name: a path, a list in brackets, or nothing, which means all."""
    if not tokens or tokens[0] not in "/(":
        return EVERYTHING
    if tokens.pop(0) == "/":
        below = tokens.pop(0)
        deeper = _rest(below, tokens)
        return Mask(f"{name}/{below}({deeper.text})", {below: deeper})
    wanted = _fields(tokens)
    if tokens.pop(0) != ")":
        raise IndexError
    inner = ",".join(f"{n}({mask.text})" for n, mask in wanted.items())
    return Mask(f"{name}({inner})", wanted)


def _malformed(text: str) -> ComputeError:
    return ComputeError("invalidParameter", f"Invalid field selection {text}")
