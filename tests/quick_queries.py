"""Queries of moto that look at one partition only; it looks at every item of the table.

Read next: ``quick_moto``, what else is done shorter.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from moto.dynamodb.models.table import Table

if TYPE_CHECKING:
    import pytest
    from moto.dynamodb.models.dynamo_type import DynamoType


_INDEX_NAME = 6
"""Its place among the arguments of a query, after the key."""


def look_into_one_partition(patch: pytest.MonkeyPatch) -> None:
    """Queries by the table's own key take time by what that finds, not by what else there is."""
    slow = Table.query

    def query(self: Table, hash_key: DynamoType | None, *args: Any, **named: Any) -> Any:
        index = args[_INDEX_NAME]
        is_by_own_key = index is None or index in {local.name for local in self.indexes}
        if hash_key is None or not is_by_own_key:
            return slow(self, hash_key, *args, **named)
        partition = copy.copy(self)
        found: Any = {hash_key: self.items[hash_key]} if hash_key in self.items else {}
        partition.items = found
        return slow(partition, hash_key, *args, **named)

    patch.setattr(Table, "query", query)
