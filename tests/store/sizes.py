"""How large an item is by DynamoDB's published rules: names and values in UTF-8."""

from __future__ import annotations

from typing import Any

LARGEST = 400 * 1024


def item_size(item: dict[str, Any]) -> int:
    """Bytes of an item as it goes over the wire (``{"name": {"S": "text"}}``)."""
    return sum(len(name.encode()) + _value_size(value) for name, value in item.items())


def _value_size(typed: dict[str, Any]) -> int:
    ((kind, value),) = typed.items()
    if kind == "S":
        return len(value.encode())
    if kind == "N":
        return len(value.lstrip("-0").replace(".", "")) // 2 + 2
    if kind in ("BOOL", "NULL"):
        return 1
    if kind == "SS":
        return sum(len(text.encode()) for text in value)
    raise ValueError(f"no rule for {kind}")
