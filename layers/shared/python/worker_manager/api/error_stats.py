"""Errors of pools in numbers and in groups, from counters that stand beside the errors.

The work is bounded by days, pools and what errors say, however many there are of each.  Where to
read next: ``store.error_counts`` (the counters), ``pool_errors`` (the errors one by one).
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from worker_manager.api import paging
from worker_manager.api.routing import PAGING, Call, Route
from worker_manager.api.view_schemas import (
    ErrorGroup,
    ErrorTotals,
    WorkerPoolErrorGroupList,
    WorkerPoolErrorStats,
)
from worker_manager.api.worker_pools import existing_pool
from worker_manager.core.error_groups import DAYS, OTHER, day_of, days_until, hours_until
from worker_manager.core.ids import SLUGID, matches
from worker_manager.core.moments import to_wire

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from worker_manager.api.deps import ApiDeps
    from worker_manager.core import error_groups
    from worker_manager.core.scopes import Expression

MOST_NAMES = 1000
"""Of titles or codes told one by one, the most frequent; the others count as ``other``."""

_AT_ONCE = 100
"""Groups whose newest errors are read with one request."""

UNKNOWN = "unknown"
"""Stands for the launch config of errors that have none."""


@dataclass(slots=True)
class _Sums:
    """What was counted so far."""

    hours: Counter[datetime] = field(default_factory=Counter)
    titles: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    pools: Counter[str] = field(default_factory=Counter)
    launch_configs: Counter[str] = field(default_factory=Counter)

    def add(self, groups: Iterable[error_groups.ErrorGroup]) -> _Sums:
        for group in groups:
            self.hours.update(group.hours)
            self.titles[group.alike.title] += group.count
            self.codes[group.alike.code] += group.count
            self.pools[group.pool_id] += group.count
            self.launch_configs[group.alike.launch_config_id or UNKNOWN] += group.count
        return self

    def merge(self, other: _Sums) -> None:
        self.hours.update(other.hours)
        self.titles.update(other.titles)
        self.codes.update(other.codes)
        self.pools.update(other.pools)
        self.launch_configs.update(other.launch_configs)


def stats(call: Call, deps: ApiDeps) -> WorkerPoolErrorStats:
    """How many errors one pool or all had in a week, today included, by what they say."""
    pool_id = call.query.get("workerPoolId")
    if pool_id:
        existing_pool(deps, pool_id)
    now = deps.clock()
    sums = _Sums()
    with ThreadPoolExecutor(DAYS) as threads:
        for part in threads.map(
            lambda day: _Sums().add(deps.errors.counts.of_day(day, pool_id or None)),
            days_until(now),
        ):
            sums.merge(part)
    return WorkerPoolErrorStats(
        worker_pool_id=pool_id or "", totals=_totals(sums, now, is_of_one=bool(pool_id))
    )


def _totals(sums: _Sums, now: datetime, *, is_of_one: bool) -> ErrorTotals:
    daily: Counter[datetime] = Counter()
    for hour, number in sums.hours.items():
        daily[day_of(hour)] += number
    return ErrorTotals(
        total=sum(sums.hours.values()),
        daily={to_wire(day): daily[day] for day in days_until(now)},
        hourly={to_wire(hour): sums.hours[hour] for hour in hours_until(now)},
        title=_by_frequency(sums.titles),
        code=_by_frequency(sums.codes),
        worker_pool=dict(sorted(sums.pools.items())),
        launch_config=dict(sorted(sums.launch_configs.items())) if is_of_one else {},
    )


def _by_frequency(names: Counter[str]) -> dict[str, int]:
    told = dict(names.most_common(MOST_NAMES))
    if rest := sum(names.values()) - sum(told.values()):
        told[OTHER] = told.get(OTHER, 0) + rest
    return told


def groups(call: Call, deps: ApiDeps) -> WorkerPoolErrorGroupList:
    """Errors of a pool that are alike: how many in a week, the first, the last and the newest.

    Groups come in an order that means nothing and does not change while errors come in.
    """
    size = paging.page_size(call.query)
    after = paging.position(call.query, lambda text: matches(SLUGID, text))
    days = days_until(deps.clock())
    found = deps.errors.counts.groups(call.pool_id, days, after=after, limit=size + 1)
    groups = _described(deps, found[:size])
    page = list(paging.cut(groups, paging.size_of, most_bytes=deps.page_bytes))
    is_last = len(page) == len(found)
    return WorkerPoolErrorGroupList(
        error_groups=page,
        **paging.with_token(None if is_last else found[len(page) - 1].alike.group_id),
    )


def _described(deps: ApiDeps, found: Sequence[error_groups.ErrorGroup]) -> Iterator[ErrorGroup]:
    """Groups as they are shown; what the newest errors say is read for some at a time."""
    waiting = iter(found)
    while some := list(islice(waiting, _AT_ONCE)):
        newest = [(group.last, group.newest) for group in some]
        said = deps.errors.descriptions(some[0].pool_id, newest)
        yield from (_shown(group, said.get(group.newest, "")) for group in some)


def _shown(group: error_groups.ErrorGroup, description: str) -> ErrorGroup:
    optional: dict[str, Any] = {}
    if group.alike.launch_config_id is not None:
        optional["launch_config_id"] = group.alike.launch_config_id
    return ErrorGroup(
        kind=group.alike.kind,
        title=group.alike.title,
        code=group.alike.code,
        first_seen=group.first,
        last_seen=group.last,
        count=group.count,
        error_id=group.newest,
        description=description,
        **optional,
    )


def scopes_of_stats(params: Mapping[str, str], _payload: Any) -> Expression:
    """Of one pool, or of every one where none is named."""
    return f"worker-manager:list-worker-pool-errors:{params.get('workerPoolId') or '*'}"


ROUTES: tuple[Route[ApiDeps], ...] = (
    Route(
        name="workerPoolErrorStats",
        method="GET",
        path="/worker-pool-errors/stats",
        handler=stats,
        scopes="worker-manager:list-worker-pool-errors:<workerPoolId>",
        scopes_of=scopes_of_stats,
        query={"workerPoolId": r"^[a-zA-Z0-9_/-]{0,80}$"},
        response=WorkerPoolErrorStats,
        stability="experimental",
    ),
    Route(
        name="listWorkerPoolErrorGroups",
        method="GET",
        path="/worker-pool-errors/<workerPoolId>/groups",
        handler=groups,
        scopes="worker-manager:list-worker-pool-errors:<workerPoolId>",
        query=PAGING,
        response=WorkerPoolErrorGroupList,
        stability="experimental",
    ),
)
