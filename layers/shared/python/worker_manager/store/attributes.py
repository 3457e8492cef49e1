"""How values become DynamoDB attributes: moments as sortable numbers, JSON as short texts.

Read next: ``tables``, whose models use them.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from pynamodb.attributes import Attribute, JSONAttribute
from pynamodb.constants import NUMBER

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class MomentAttribute(Attribute[datetime]):
    """An aware UTC time as epoch seconds, to the millisecond; sorts and expires as a number."""

    attr_type = NUMBER

    def serialize(self, value: datetime) -> str:
        """Epoch seconds with three decimals."""
        return f"{value.timestamp():.3f}"

    def deserialize(self, value: str) -> datetime:
        """Back to an aware UTC time, exact also where a float of seconds is not (from 2242 on)."""
        return EPOCH + timedelta(milliseconds=round(float(value) * 1000))


class CompactJson(JSONAttribute):
    """JSON without spaces and escapes: reads and writes are paid by the byte."""

    def serialize(self, value: Any) -> str | None:
        """The shortest text; ``None`` stays absent."""
        if value is None:
            return None
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
