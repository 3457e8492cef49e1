"""Counters of errors, added to in the transaction that records the error, so they are exact.

Table ``pool_errors``: an item for each day, pool and group of errors that are alike, in a
partition for each day.  Transactions that meet on an item refuse each other: whoever is refused
counts in one of a few other parts of the group, and in the end in a part of its own, so that no
error is ever refused for being counted.  Readers add the parts up.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import reduce
from heapq import merge as merge_sorted
from itertools import groupby, islice
from typing import TYPE_CHECKING
from zlib import crc32

from pynamodb.attributes import NumberAttribute, UnicodeAttribute
from pynamodb.models import Model

from worker_manager.core.error_groups import ErrorGroup, day_of, group_of, merge
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

KEPT = timedelta(days=9)
"""From the beginning of a day until DynamoDB drops its counters."""

_HOURS = tuple(f"h{hour:02}" for hour in range(24))


class ErrorCountItem(Model):
    """``worker_pool_id`` is ``#counts#<day>``, ``sk`` is ``<pool id>#<group id>#<part>``.

    ``h00`` to ``h23`` count the errors of the day's hours; the rest says what they have in common,
    when the first was reported and, in ``newest``, the sort key of the one recorded last.
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

    def add(self, transaction: TransactWrite, error: PoolError, *, attempt: int) -> None:
        """Have ``transaction``, tried for the ``attempt``-th time from 0, count an error."""
        model, group = self._model, group_of(error)
        day = day_of(error.reported)
        hour = getattr(model, _HOURS[error.reported.hour])
        actions = [
            hour.add(1),
            model.ttl.set(int((day + KEPT).timestamp())),
            model.kind.set(group.kind),
            model.title.set(group.title),
            model.code.set(group.code),
            model.first.set(model.first | group.first),
            model.newest.set(f"{to_wire(group.last)}#{group.newest}"),
        ]
        if group.launch_config_id is not None:
            actions.append(model.launch_config_id.set(group.launch_config_id))
        key = f"{error.pool_id}#{group.group_id}#{part_of(error, attempt)}"
        transaction.update(model(_partition(day), key), actions, add_version_condition=False)

    def of_day(self, day: datetime, pool_id: str | None = None) -> Iterator[ErrorGroup]:
        """What was counted on a day, of one pool or all; a group may come in several parts."""
        return self._query(day, f"{pool_id}#" if pool_id else "")

    def groups(
        self, pool_id: str, days: Sequence[datetime], *, after: str | None, limit: int
    ) -> list[ErrorGroup]:
        """The next ``limit`` groups of a pool over these days, by id, from beyond ``after``."""
        by_day = [self._query(day, f"{pool_id}#", after=after, page_size=limit + 1) for day in days]
        parts = merge_sorted(*by_day, key=lambda part: part.group_id)
        whole = (reduce(merge, same) for _, same in groupby(parts, lambda part: part.group_id))
        return list(islice(whole, limit))

    def _query(
        self,
        day: datetime,
        prefix: str,
        *,
        after: str | None = None,
        page_size: int | None = None,
    ) -> Iterator[ErrorGroup]:
        # "$" follows "#", with which every part of the group ``after`` goes on.
        first = f"{prefix}{after}$" if after else prefix
        condition = self._model.sk.between(first, f"{prefix}\uffff") if first else None
        items = self._model.query(
            _partition(day), condition, consistent_read=True, page_size=page_size
        )
        return map(_to_group, items)


def part_of(error: PoolError, attempt: int) -> str:
    """Which part of its group counts an error: the first, then any, then one of its own."""
    if attempt == 0:
        return "0"
    if attempt < SHARED_ATTEMPTS:
        return str(1 + crc32(f"{error.error_id}#{attempt}".encode()) % (SHARED_PARTS - 1))
    return error.error_id


def _partition(day: datetime) -> str:
    return f"#counts#{day:%Y-%m-%d}"


def _to_group(item: ErrorCountItem) -> ErrorGroup:
    day = datetime.strptime(item.worker_pool_id, "#counts#%Y-%m-%d").replace(tzinfo=UTC)
    last, _, newest = item.newest.partition("#")
    counts = {hour: getattr(item, name) for hour, name in enumerate(_HOURS)}
    return ErrorGroup(
        pool_id=item.sk.partition("#")[0],
        kind=item.kind,
        title=item.title,
        code=item.code,
        launch_config_id=item.launch_config_id,
        first=min(item.first, from_wire(last)),
        last=from_wire(last),
        newest=newest,
        hours={day.replace(hour=hour): int(count) for hour, count in counts.items() if count},
    )
