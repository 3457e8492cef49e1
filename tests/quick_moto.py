"""What moto does the long way round, done shorter; what it answers stays the same.

It takes most of the time of tests that play out whole scenes on its tables.
"""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from moto.core.serialize import ResponseSerializer
from moto.dynamodb.models import DynamoDBBackend
from moto.dynamodb.models.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest


def write_values_as_they_are(patch: pytest.MonkeyPatch) -> None:
    """It looks for each of a value's ten possible types under six spellings; they have one."""
    slow = ResponseSerializer.get_value

    def get_value(self: ResponseSerializer, value: Any, key: str, shape: Any) -> Any:
        if isinstance(value, dict) and shape.parent.name == "AttributeValue":
            return value.get(key)
        return slow(self, value, key, shape)

    patch.setattr(ResponseSerializer, "get_value", get_value)


def keep_back_what_is_written(patch: pytest.MonkeyPatch) -> None:
    """It copies whole tables for each transaction that might fail; the items in it suffice."""
    slow = DynamoDBBackend.transact_write_items

    def transact(self: DynamoDBBackend, transact_items: list[dict[str, Any]]) -> None:
        undo = [_undo(self, operation) for item in transact_items for operation in item.values()]
        try:
            slow(self, transact_items)
        except Exception:
            for step in undo:
                step()
            raise

    def deepcopy(value: Any) -> Any:
        return value if isinstance(value, Table) else copy.deepcopy(value)

    patch.setattr(DynamoDBBackend, "transact_write_items", transact)
    patch.setattr("moto.dynamodb.models.copy", SimpleNamespace(deepcopy=deepcopy))


def _undo(backend: DynamoDBBackend, operation: dict[str, Any]) -> Callable[[], object]:
    """What puts the one item that is written back to how it is now."""
    table = backend.get_table(operation["TableName"])
    hash_key, range_key = backend.get_keys_value(table, operation.get("Key") or operation["Item"])
    before = copy.deepcopy(table.get_item(hash_key, range_key))
    if before is None:
        return lambda: table.delete_item(hash_key, range_key)
    return lambda: table.items[hash_key].__setitem__(range_key, before)
