"""All resources and resource groups: added, found, paged through, dropped.

Nothing here takes time or refuses for want of anything; that is ``lifecycle``'s and ``cloud``'s
part, and so is the lock.  Read next: ``resources`` (one of them).
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import count as counting
from typing import TYPE_CHECKING

from infra.local.clouds.arm.errors import group_not_found, not_found
from infra.local.clouds.arm.resources import Kind, Machine, Resource

if TYPE_CHECKING:
    from collections.abc import Iterator

_COMPACT_FROM = 64


@dataclass(slots=True)
class Group:
    """A resource group."""

    name: str
    location: str
    tags: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Shelf:
    """Resources of one list in order of creation; those gone stay until there are many."""

    resources: list[Resource] = field(default_factory=list)
    gone: int = 0

    def forget_one(self, now: float) -> None:
        self.gone += 1
        if self.gone > max(_COMPACT_FROM, len(self.resources) // 2):
            self.resources = [r for r in self.resources if not r.is_gone or r.is_listed(now)]
            self.gone = 0


class Estate:
    """What exists.  Not thread-safe: the cloud's lock guards it."""

    def __init__(self) -> None:
        self.groups: dict[str, Group] = {}
        """By lower-case name."""
        self.numbers = counting(1)
        self._resources: dict[tuple[Kind, str, str], Resource] = {}
        self._shelves: dict[tuple[Kind, str], _Shelf] = {}

    def group(self, name: str) -> Group:
        """A resource group.  Raises ``ArmError`` ResourceGroupNotFound."""
        if (found := self.groups.get(name.lower())) is None:
            raise group_not_found(name)
        return found

    def add(self, resource: Resource) -> None:
        """Put a new resource among those that exist."""
        self._resources[resource.key] = resource
        for group in ("", resource.group.lower()):
            self._shelves.setdefault((resource.kind, group), _Shelf()).resources.append(resource)

    def drop(self, resource: Resource, now: float, *, listed_until: float) -> None:
        """Let a resource exist no more; lists show it until ``listed_until``."""
        resource.gone_at, resource.listed_until = now, listed_until
        self._resources.pop(resource.key, None)
        for group in ("", resource.group.lower()):
            self._shelves[resource.kind, group].forget_one(now)

    def find(self, kind: Kind, group: str, name: str) -> Resource | None:
        """A resource by its name, if it exists."""
        return self._resources.get((kind, group.lower(), name.lower()))

    def get(self, kind: Kind, group: str, name: str) -> Resource:
        """A resource by its name.  Raises ``ArmError`` when it or its group does not exist."""
        home = self.group(group)
        if (found := self.find(kind, group, name)) is None:
            raise not_found(kind.type, name, home.name)
        return found

    def named(self, kind: Kind, name: str) -> Resource:
        """The resource of that name in whichever group.  Raises ``ArmError`` ResourceNotFound."""
        for group in self.groups:
            if (found := self.find(kind, group, name)) is not None:
                return found
        raise not_found(kind.type, name, "*")

    def machine(self, name: str) -> Machine:
        """The machine of that name in whichever group.  Raises ``ArmError`` ResourceNotFound."""
        found = self.named(Kind.VM, name)
        assert isinstance(found, Machine)
        return found

    def machines(self) -> Iterator[Machine]:
        """All machines, in order of creation."""
        for resource in self.all_of(Kind.VM):
            assert isinstance(resource, Machine)
            yield resource

    def all_of(self, kind: Kind) -> Iterator[Resource]:
        """All resources of a kind that exist, in order of creation."""
        shelf = self._shelves.get((kind, ""), _Shelf())
        return (resource for resource in tuple(shelf.resources) if not resource.is_gone)

    def page(
        self, kind: Kind, group: str, *, after: int, size: int, now: float
    ) -> tuple[list[Resource], int | None]:
        """Up to ``size`` listed resources behind a sequence number, and where to go on.

        ``group`` is empty for the whole subscription.
        """
        shelf = self._shelves.get((kind, group.lower()), _Shelf())
        start = bisect_right(shelf.resources, after, key=lambda resource: resource.sequence)
        found: list[Resource] = []
        for index in range(start, len(shelf.resources)):
            resource = shelf.resources[index]
            if not resource.is_listed(now):
                continue
            if len(found) == size:
                return found, found[-1].sequence
            found.append(resource)
        return found, None

    def clear(self) -> None:
        """Let nothing exist but the groups."""
        self._resources.clear()
        self._shelves.clear()
