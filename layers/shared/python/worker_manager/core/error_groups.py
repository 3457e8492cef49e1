"""Errors of a pool that are alike, and how many of them there were in each hour.

Alike are errors of one kind, title, code and launch config, whatever else they say; statistics
and e-mail agree on that.  Where to read next: ``store.error_counts``, which keeps a group for each
day; ``digests`` (what owners are told).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from worker_manager.core.ids import derived_slugid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from worker_manager.core.model import Json, PoolError

DAYS = 7
"""Days that statistics tell of, today included; as long as errors are kept, or shorter."""

HOURS = 24
"""Hours that statistics tell of one by one, the one that runs included."""

LONGEST = 128
"""Characters of a kind, a title or a code."""

OTHER = "other"
"""The code of errors that have none."""


class Likeness(NamedTuple):
    """What errors have in common that are alike."""

    kind: str
    title: str
    code: str
    launch_config_id: str | None

    @property
    def group_id(self) -> str:
        """Its identity within a pool; the same on every day."""
        return derived_slugid(
            "errors", self.kind, self.title, self.code, self.launch_config_id or ""
        )


@dataclass(frozen=True, slots=True)
class ErrorGroup:
    """Errors that are alike.  ``newest`` is the id of the one reported last."""

    pool_id: str
    alike: Likeness
    first: datetime
    last: datetime
    newest: str
    hours: Mapping[datetime, int]
    """beginning of an hour → errors in it"""

    @property
    def count(self) -> int:
        """How many there were."""
        return sum(self.hours.values())


def likeness_of(error: PoolError) -> Likeness:
    """What an error has in common with those like it."""
    return Likeness(
        kind=error.kind[:LONGEST],
        title=error.title[:LONGEST],
        code=code_of(error.extra),
        launch_config_id=error.launch_config_id,
    )


def group_of(error: PoolError) -> ErrorGroup:
    """The group of one error, with only this one in it."""
    return ErrorGroup(
        pool_id=error.pool_id,
        alike=likeness_of(error),
        first=error.reported,
        last=error.reported,
        newest=error.error_id,
        hours={hour_of(error.reported): 1},
    )


def code_of(extra: Json) -> str:
    """What an error says is its code: a text or a number that is not empty."""
    code = extra.get("code")
    if isinstance(code, bool) or not isinstance(code, str | int | float):
        return OTHER
    return str(code)[:LONGEST] or OTHER


def merge(one: ErrorGroup, other: ErrorGroup) -> ErrorGroup:
    """Two parts of the same group as one."""
    newest = max(one, other, key=lambda part: (part.last, part.newest))
    return replace(
        newest,
        first=min(one.first, other.first),
        hours=Counter(one.hours) + Counter(other.hours),
    )


def hour_of(moment: datetime) -> datetime:
    """When its hour began."""
    return moment.replace(minute=0, second=0, microsecond=0)


def day_of(moment: datetime) -> datetime:
    """When its day began, in UTC."""
    return hour_of(moment).replace(hour=0)


def days_until(now: datetime) -> list[datetime]:
    """The days that statistics tell of, oldest first."""
    return [day_of(now) - timedelta(days=ago) for ago in reversed(range(DAYS))]


def hours_until(now: datetime) -> list[datetime]:
    """The hours that statistics tell of one by one, oldest first."""
    return [hour_of(now) - timedelta(hours=ago) for ago in reversed(range(HOURS))]
