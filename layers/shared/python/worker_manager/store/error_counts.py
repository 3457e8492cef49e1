"""Counters of errors, added to in the transaction that records the error, so they are exact.

Table ``pool_errors``: an item for each day, pool and group of errors that are alike, in a few
partitions for each day, so that pools that all fail at once do not meet in one.  Transactions that
meet on an item refuse each other: whoever is refused counts in one of a few other parts of the
group, and in the end in a part of its own, so that no error is ever refused for being counted.
A part takes errors only in the order in which they were reported, and so knows its first and its
last; one that comes late has a part of its own too.  Readers add the parts up.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import reduce
from heapq import merge as merge_sorted
from itertools import chain, groupby, islice
from typing import TYPE_CHECKING
from zlib import crc32

from pynamodb.attributes import NumberAttribute, UnicodeAttribute
from pynamodb.models import Model

from worker_manager.core.error_groups import ErrorGroup, Likeness, day_of, group_of, merge
from worker_manager.core.moments import from_wire, to_wire
from worker_manager.store.attributes import MomentAttribute
from worker_manager.store.tables import bind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pynamodb.transactions import TransactWrite

    from worker_manager.core.model import PoolError
    from worker_manager.store.tables import Tables

SHARED_PARTS = 8
"""Parts of a group that many may add to, the first included, which serves while nobody collides."""

SHARED_ATTEMPTS = 4
"""After so many collisions an error is counted in a part of its own."""

PARTITIONS = 8
"""Of a day; a pool's counters are all in one of them."""

KEPT = timedelta(days=9)
"""From the beginning of a day until DynamoDB drops its counters."""

_COUNTS = "#counts#"
_AFTER = "$"
"""Follows "#": beyond all keys that begin with the same and go on after a "#"."""
_HOURS = tuple(f"h{hour:02}" for hour in range(24))


class ErrorCountItem(Model):
    """``worker_pool_id`` is ``#counts#<day>#<n>``, ``sk`` is ``<pool id>#<group id>#<part>``.

    ``h00`` to ``h23`` count the errors of the day's hours; the rest says what they have in common,
    when the first was reported and, in ``newest``, the sort key of the one reported last.
    """

    class Meta:
        """Bound by ``ErrorCounts``."""

        table_name = "pool_errors"

    worker_pool_id = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    ttl = NumberAttribute()
    kind = UnicodeAttribute()
    title = UnicodeAttribute()
    code = UnicodeAttribute()
    launch_config_id = UnicodeAttribute(null=True)
    first = MomentAttribute()
    newest = UnicodeAttribute()
    locals().update({name: NumberAttribute(null=True) for name in _HOURS})


class ErrorCounts:
    """The counters within table ``pool_errors``."""

    def __init__(self, tables: Tables) -> None:
        """Over bound tables."""
        self._model = bind(ErrorCountItem, tables.pool_errors.Meta.table_name, tables.connection)

    def add(
        self, transaction: TransactWrite, error: PoolError, *, attempt: int, is_late: bool
    ) -> None:
        """Have ``transaction``, tried for the ``attempt``-th time from 0, count an error.

        Its condition fails if one that was reported later is counted in the same part, which
        cannot be if ``is_late`` says that it may.
        """
        model, group = self._model, group_of(error)
        alike = group.alike
        moment = to_wire(group.last)
        day = day_of(error.reported)
        hour = getattr(model, _HOURS[error.reported.hour])
        actions = [
            hour.add(1),
            model.ttl.set(int((day + KEPT).timestamp())),
            model.kind.set(alike.kind),
            model.title.set(alike.title),
            model.code.set(alike.code),
            model.first.set(model.first | group.first),
            model.newest.set(f"{moment}#{group.newest}"),
        ]
        if alike.launch_config_id is not None:
            actions.append(model.launch_config_id.set(alike.launch_config_id))
        part = error.error_id if is_late else part_of(error, attempt)
        key = f"{error.pool_id}#{alike.group_id}#{part}"
        transaction.update(
            model(_partition(day, _place_of(error.pool_id)), key),
            actions,
            condition=model.newest.does_not_exist() | (model.newest < f"{moment}{_AFTER}"),
            add_version_condition=False,
        )

    def of_day(self, day: datetime, pool_id: str | None = None) -> Iterator[ErrorGroup]:
        """What was counted on a day, of one pool or all; a group may come in several parts."""
        if pool_id:
            return self._query(_partition(day, _place_of(pool_id)), f"{pool_id}#")
        places = range(PARTITIONS)
        return chain.from_iterable(self._query(_partition(day, place)) for place in places)

    def groups(
        self, pool_id: str, days: Sequence[datetime], *, after: str | None, limit: int
    ) -> list[ErrorGroup]:
        """The next ``limit`` groups of a pool over these days, by id, from beyond ``after``."""
        place = _place_of(pool_id)
        by_day = [
            self._query(_partition(day, place), f"{pool_id}#", after=after, page_size=limit + 1)
            for day in days
        ]
        parts = merge_sorted(*by_day, key=_group_id)
        whole = (reduce(merge, same) for _, same in groupby(parts, _group_id))
        return list(islice(whole, limit))

    def _query(
        self,
        partition: str,
        prefix: str = "",
        *,
        after: str | None = None,
        page_size: int | None = None,
    ) -> Iterator[ErrorGroup]:
        first = f"{prefix}{after}{_AFTER}" if after else prefix
        condition = self._model.sk.between(first, f"{prefix}\uffff") if first else None
        items = self._model.query(partition, condition, consistent_read=True, page_size=page_size)
        return map(_to_group, items)


def part_of(error: PoolError, attempt: int) -> str:
    """Which part of its group counts an error: the first, then any, then one of its own."""
    if attempt == 0:
        return "0"
    if attempt < SHARED_ATTEMPTS:
        return str(1 + crc32(f"{error.error_id}#{attempt}".encode()) % (SHARED_PARTS - 1))
    return error.error_id


def _partition(day: datetime, place: int) -> str:
    return f"{_COUNTS}{day:%Y-%m-%d}#{place}"


def _place_of(pool_id: str) -> int:
    """Which of a day's partitions has a pool's counters."""
    return crc32(pool_id.encode()) % PARTITIONS


def _group_id(group: ErrorGroup) -> str:
    return group.alike.group_id


def _to_group(item: ErrorCountItem) -> ErrorGroup:
    text = item.worker_pool_id.removeprefix(_COUNTS).partition("#")[0]
    day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    last, _, newest = item.newest.partition("#")
    counts = {hour: getattr(item, name) for hour, name in enumerate(_HOURS)}
    return ErrorGroup(
        pool_id=item.sk.partition("#")[0],
        alike=Likeness(item.kind, item.title, item.code, item.launch_config_id),
        first=item.first,
        last=from_wire(last),
        newest=newest,
        hours={day.replace(hour=hour): int(count) for hour, count in counts.items() if count},
    )
