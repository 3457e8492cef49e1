"""A collection in order of making, that pages can continue in quickly.  Read next: ``estate``."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator


class Numbered(Protocol):
    """What can stand on a shelf."""

    @property
    def sequence(self) -> int:
        """The order of making, over everything."""
        ...


T = TypeVar("T", bound=Numbered)


def _sequence(thing: Numbered) -> int:
    return thing.sequence


class Shelf(Generic[T]):
    """Things by their sequence; what is taken away leaves gaps that are closed now and then."""

    def __init__(self) -> None:
        self._row: list[T] = []
        self._standing: dict[int, T] = {}

    def __len__(self) -> int:
        return len(self._standing)

    def put(self, thing: T) -> None:
        """Add what was made last."""
        self._row.append(thing)
        self._standing[thing.sequence] = thing

    def take(self, thing: T) -> None:
        """Remove one; nothing happens if it is not there."""
        self._standing.pop(thing.sequence, None)
        if len(self._row) > 2 * len(self._standing) + 1000:
            self._row = list(self._standing.values())

    def after(self, sequence: int) -> Iterator[T]:
        """All that were made after this one, in order."""
        row = self._row
        for index in range(bisect_right(row, sequence, key=_sequence), len(row)):
            if row[index].sequence in self._standing:
                yield row[index]

    def clear(self) -> None:
        """Take everything away."""
        self._row.clear()
        self._standing.clear()
