"""Roles: named sets of scopes that whoever holds ``assume:<role id>`` holds too.

A role whose id ends in ``*`` applies to every id with that prefix, and ``<..>`` in its scopes
stands for the rest of the id.  Where to read next: ``scopes`` (what a held scope covers).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker_manager.core.scopes import (
    STAR,
    covers,
    is_grantable_scope,
    is_valid_scope,
    normalise,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ASSUME = "assume:"
PARAMETER = "<..>"


@dataclass(frozen=True, slots=True)
class Role:
    """One role.  Raises ``ValueError`` for an id or a scope that could not be expanded safely."""

    role_id: str
    scopes: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.role_id or not is_valid_scope(self.role_id):
            raise ValueError(f"role id {self.role_id!r} is not printable ASCII text")
        for scope in self.scopes:
            if not is_grantable_scope(scope):
                raise ValueError(f"role {self.role_id}: scope {scope!r} cannot be granted")
            if self.has_prefix and not _is_sound_template(scope):
                raise ValueError(
                    f"role {self.role_id}: in {scope!r}, {PARAMETER} may stand once, and not"
                    " directly after a star"
                )

    @property
    def has_prefix(self) -> bool:
        """Whether the role applies to every id with its prefix."""
        return self.role_id.endswith(STAR)

    def granted_to(self, held: str) -> tuple[str, ...]:
        """The scopes this role adds for a caller that holds the one scope ``held``."""
        rest = self.rest_of(held)
        if rest is None:
            return ()
        if not self.has_prefix:
            return self.scopes
        return tuple(_filled_in(scope, rest) for scope in self.scopes)

    def rest_of(self, held: str) -> str | None:
        """What ``<..>`` stands for under ``held``; ``None`` if the role does not apply to it."""
        name = ASSUME + self.role_id
        if self.has_prefix and held.startswith(name[:-1]):
            return held.removeprefix(name[:-1])
        if covers(held, name):
            return STAR if self.has_prefix else ""
        return None

    def reaches(self) -> Iterator[tuple[str, bool]]:
        """Each scope as the widest it may become, and whether a parameter makes it grow."""
        for scope in self.scopes:
            before, parameter, _ = scope.partition(PARAMETER)
            grows = self.has_prefix and bool(parameter)
            yield (before + STAR if grows else scope), grows


@dataclass(frozen=True, slots=True)
class Roles:
    """All roles of a deployment.

    Raises ``ValueError`` when an id comes twice, or when roles that fill in ``<..>`` lead back to
    themselves: such a circle would add longer and longer scopes without end.
    """

    roles: tuple[Role, ...] = ()

    def __post_init__(self) -> None:
        ids = [role.role_id for role in self.roles]
        if len(set(ids)) != len(ids):
            raise ValueError("a role id is given twice")
        for role in self.roles:
            for scope, grows in role.reaches():
                if grows and role in self._reachable_from(scope):
                    raise ValueError(f"role {role.role_id}: {scope} leads back to the role itself")

    def expand(self, scopes: Iterable[str]) -> tuple[str, ...]:
        """These scopes with those of every role they assume, at any remove; in normal form."""
        seen = set(scopes)
        waiting = [scope for scope in seen if _may_assume(scope)]
        while waiting:
            held = waiting.pop()
            for role in self.roles:
                new = set(role.granted_to(held)) - seen
                seen |= new
                waiting += [scope for scope in new if _may_assume(scope)]
        return normalise(seen)

    def _reachable_from(self, scope: str) -> list[Role]:
        found: list[Role] = []
        waiting = [scope]
        while waiting:
            held = waiting.pop()
            for role in self.roles:
                if role not in found and role.rest_of(held) is not None:
                    found.append(role)
                    waiting += [reached for reached, _ in role.reaches()]
        return found


def _may_assume(scope: str) -> bool:
    return scope.startswith(ASSUME) or (scope.endswith(STAR) and ASSUME.startswith(scope[:-1]))


def _is_sound_template(scope: str) -> bool:
    return scope.count(PARAMETER) <= 1 and STAR + PARAMETER not in scope


def _filled_in(scope: str, rest: str) -> str:
    """The scope with its parameter replaced; a rest that ends in a star ends the scope."""
    before, parameter, after = scope.partition(PARAMETER)
    if not parameter:
        return scope
    return before + rest if rest.endswith(STAR) else before + rest + after
