"""Times as Taskcluster writes them: ``2026-11-30T13:31:00.000Z``, UTC, to the millisecond.

Texts made here are of one width, so that they sort as the times do.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

_RFC_3339 = re.compile(
    r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)

FOR_EVER = datetime(3026, 1, 1, tzinfo=UTC)
"""Until somebody says otherwise: a thousand years, as Taskcluster's own console has it; always the
same moment, so that saying it again changes nothing."""


def is_date_time(value: object) -> bool:
    """Whether a JSON value is a date-time: text as RFC 3339 has it, and no number of seconds."""
    return isinstance(value, str) and _RFC_3339.fullmatch(value) is not None


def whole_milliseconds(moment: datetime) -> datetime:
    """Cut what the wire cannot carry, so that a time is equal to itself when read back."""
    return moment.astimezone(UTC).replace(microsecond=moment.microsecond // 1000 * 1000)


def to_wire(moment: datetime) -> str:
    """The wire form of an aware time, cut to the millisecond."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def from_wire(text: str) -> datetime:
    """The aware UTC time that ``text`` means.  ``ValueError`` if it means none."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"a time without a zone: {text!r}")
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"a time beyond the calendar: {text!r}") from error
