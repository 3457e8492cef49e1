"""Links, moments and paths as Compute Engine writes them.  Read next: ``instances``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

BASE = "https://www.googleapis.com/compute/v1/"
_PACIFIC = timezone(timedelta(hours=-7))


def timestamp(seconds: float) -> str:
    """RFC 3339 with milliseconds, in the API's own zone of time."""
    return datetime.fromtimestamp(seconds, _PACIFIC).isoformat(timespec="milliseconds")


def region_of(zone: str) -> str:
    """The region of a zone."""
    return zone.rpartition("-")[0]


def last_part(link: str) -> str:
    """The name at the end of a full or partial link."""
    return link.rpartition("/")[2]


def dig(value: Any, path: Sequence[str]) -> Any:
    """The value at a path of names; ``None`` where there is none."""
    for name in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value
