"""Write units of what became of an item, its local index included.

By the rules of the DynamoDB Developer Guide, "Write operations" (the larger of the item before and
after) and "Local secondary indexes", "Storage considerations" and "Provisioned throughput": an
entry that appears, vanishes or changes in what it shows is one write of the index, one whose key
changes is two.  Read next: ``metering``, which looks at items before and after.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.benchmarks.units import item_bytes, write_units

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    Item = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LocalIndex:
    """An index by ``key``; ``shown`` are the attributes that its entries have, keys included."""

    key: str
    shown: Collection[str]

    def entry(self, item: Item | None) -> Item | None:
        """What the index holds of an item; ``None`` for one that lacks the key."""
        if item is None or self.key not in item:
            return None
        return {name: value for name, value in item.items() if name in self.shown}

    def write_units(self, before: Item | None, after: Item | None) -> float:
        """What the index costs when an item changes."""
        old, new = self.entry(before), self.entry(after)
        if old == new:
            return 0
        if old is None or new is None or old[self.key] == new[self.key]:
            return write_units(max(item_bytes(old or {}), item_bytes(new or {})))
        return write_units(item_bytes(old)) + write_units(item_bytes(new))


def units_of_change(
    before: Item | None, after: Item | None, indexes: Collection[LocalIndex] = ()
) -> float:
    """Units of one write outside a transaction; inside of one it is twice that."""
    table = write_units(max(item_bytes(before or {}), item_bytes(after or {})))
    return table + sum(index.write_units(before, after) for index in indexes)
