"""Scopes: what a caller holds, what a call requires, and whether the one covers the other.

A scope is printable text.  A held scope that ends in ``*`` covers everything that starts with
what stands before that star; a star anywhere else is an ordinary character.  Where to read next:
``roles`` (what an ``assume:`` scope expands to).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, assert_never

if TYPE_CHECKING:
    from collections.abc import Iterable

STAR = "*"
_PRINTABLE = re.compile(r"[ -~]*")


@dataclass(frozen=True, slots=True)
class AllOf:
    """Satisfied when every part is; an empty one always is."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Satisfied when at least one part is; an empty one never is."""

    parts: tuple[Expression, ...]


Expression: TypeAlias = str | AllOf | AnyOf
"""What a call requires: one scope, or a combination of expressions."""


def is_valid_scope(scope: object) -> bool:
    """Whether this is text of printable ASCII characters only."""
    return isinstance(scope, str) and _PRINTABLE.fullmatch(scope) is not None


def is_grantable_scope(scope: object) -> bool:
    """Whether a client or role may be given this scope.

    Two stars at the end are refused: who writes them thinks of something else than a prefix.
    """
    return is_valid_scope(scope) and not str(scope).endswith(STAR * 2)


def covers(held: str, required: str) -> bool:
    """Whether holding ``held`` is enough where ``required`` is asked for.

    A required scope that ends in a star is covered by the same or a broader star only.
    """
    return held == required or (held.endswith(STAR) and required.startswith(held[:-1]))


def satisfies(held: Iterable[str], required: Expression) -> bool:
    """Whether these held scopes, already expanded, are enough for ``required``."""
    return _is_met(tuple(held), required)


def required_scopes(required: Expression) -> tuple[str, ...]:
    """Every scope that an expression names, in order."""
    match required:
        case str():
            return (required,)
        case AllOf(parts) | AnyOf(parts):
            return tuple(scope for part in parts for scope in required_scopes(part))
        case _:
            assert_never(required)


def missing_scopes(held: Iterable[str], required: Expression) -> tuple[str, ...]:
    """The scopes that would still be needed, in order; empty exactly when satisfied or unsayable.

    Of an ``AnyOf`` that is not met, the missing scopes of each alternative are listed: any one
    of the alternatives would do.  An empty ``AnyOf`` is never met and has nothing to list.
    """
    return _missing(tuple(held), required)


def normalise(scopes: Iterable[str]) -> tuple[str, ...]:
    """The shortest equal set: sorted, ``x*`` before ``x``, nothing that another scope covers."""
    kept: list[str] = []
    for scope in sorted(set(scopes), key=_star_first):
        # All that start alike are neighbours, so only the scope kept last can cover this one.
        if not kept or not covers(kept[-1], scope):
            kept.append(scope)
    return tuple(kept)


def _is_met(held: tuple[str, ...], required: Expression) -> bool:
    match required:
        case str():
            return any(covers(scope, required) for scope in held)
        case AllOf(parts):
            return all(_is_met(held, part) for part in parts)
        case AnyOf(parts):
            return any(_is_met(held, part) for part in parts)
        case _:
            assert_never(required)


def _missing(held: tuple[str, ...], required: Expression) -> tuple[str, ...]:
    if _is_met(held, required):
        return ()
    match required:
        case str():
            return (required,)
        case AllOf(parts) | AnyOf(parts):
            return tuple(scope for part in parts for scope in _missing(held, part))
        case _:
            assert_never(required)


def _star_first(scope: str) -> tuple[str, bool]:
    return (scope[:-1], False) if scope.endswith(STAR) else (scope, True)
