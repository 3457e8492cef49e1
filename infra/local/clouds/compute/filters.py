"""The ``filter`` parameter of lists: one predicate out of an expression.

AIP-160 as the API's reference describes it: comparisons with ``=``, ``!=`` and ``:*`` (is there),
``AND``, ``OR``, brackets; two terms side by side must both hold.  Read next: ``actions``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Protocol

from infra.local.clouds.compute.errors import ComputeError


class Looked(Protocol):
    """What filters look at."""

    def look(self, path: Sequence[str]) -> Any:
        """The value of a field by its path; ``None`` where there is none."""
        ...


Predicate = Callable[[Looked], bool]
_TOKENS = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[()]|!=|=|:\*|:|[A-Za-z0-9_./*-]+)')


@lru_cache(maxsize=256)
def predicate_of(text: str) -> Predicate:
    """Read a ``filter`` parameter; empty holds for all.  Raises ``ComputeError`` if malformed."""
    tokens = _TOKENS.findall(text)
    if not tokens and not text.strip():
        return lambda _: True
    try:
        predicate = _conjunction(tokens)
    except IndexError:
        raise _malformed(text) from None
    if tokens or _TOKENS.sub("", text).strip():
        raise _malformed(text)
    return predicate


def _conjunction(tokens: list[str]) -> Predicate:
    terms = [_disjunction(tokens)]
    while tokens and tokens[0] != ")":
        if tokens[0] == "AND":
            tokens.pop(0)
        terms.append(_disjunction(tokens))
    return terms[0] if len(terms) == 1 else lambda thing: all(term(thing) for term in terms)


def _disjunction(tokens: list[str]) -> Predicate:
    terms = [_term(tokens)]
    while tokens and tokens[0] == "OR":
        tokens.pop(0)
        terms.append(_term(tokens))
    return terms[0] if len(terms) == 1 else lambda thing: any(term(thing) for term in terms)


def _term(tokens: list[str]) -> Predicate:
    first = tokens.pop(0)
    if first == "(":
        inner = _conjunction(tokens)
        if tokens.pop(0) != ")":
            raise IndexError
        return inner
    return _comparison(first.split("."), tokens)


def _comparison(path: Sequence[str], tokens: list[str]) -> Predicate:
    operator = tokens.pop(0)
    if operator == ":*":
        return lambda thing: thing.look(path) is not None
    wanted = tokens.pop(0).strip('"')
    if operator == "=":
        return lambda thing: _as_text(thing.look(path)) == wanted
    if operator == "!=":
        return lambda thing: _as_text(thing.look(path)) != wanted
    raise IndexError


def _as_text(value: Any) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    return None if value is None else str(value)


def _malformed(text: str) -> ComputeError:
    return ComputeError(
        "invalid", f"Invalid value for field 'filter': '{text}'. Invalid list filter expression."
    )
