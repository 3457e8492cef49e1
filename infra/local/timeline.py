"""A readable timeline of every pool: demand, supply, and what was launched and why.

Reads the tables as the functions do, and the queue as the service does.  A line is printed when
something changed, and below it what was decided and why.
"""

from __future__ import annotations

import os
import textwrap
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import botocore.session
import taskcluster  # type: ignore[import-untyped]

from infra.local.deploy import REGION
from infra.local.samples import client_options
from infra.settings import STAGES
from worker_manager.core.tally import Counts, tally
from worker_manager.core.timing import Timing
from worker_manager.store.plans import PlanStore
from worker_manager.store.pools import PoolStore
from worker_manager.store.tables import TABLES, Tables
from worker_manager.store.workers import WorkerStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from infra.local.stage import LocalStage
    from worker_manager.core.plans import Order, Plan

HEADER = (
    f"{'time':8}  {'pool':24} {'pending':>7} {'claimed':>7} {'requested':>9} {'running':>7}"
    f" {'stopping':>8}"
)
_MARK = " " * 10 + "· "
_INDENT = " " * len(_MARK)
_WIDTH = 100


@dataclass(slots=True)
class Watched:
    """What was last printed of one pool, and the most capacity that ever cost money at once.

    That is running, requested, stopping and quarantined capacity together.
    """

    row: tuple[int, ...] = ()
    most: int = 0


@dataclass
class Timeline:
    """Looks at a running stage; ``lines`` tells what is new since the last look."""

    stage: LocalStage
    pools: dict[str, Watched] = field(default_factory=dict)
    _seen_until: datetime = field(default_factory=lambda: datetime.now(UTC))
    _seen: set[tuple[str, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Connect to the stage's tables and queue."""
        os.environ.setdefault("AWS_ENDPOINT_URL_DYNAMODB", self.stage.emulator_endpoint)
        session = botocore.session.Session()
        session.set_credentials("test", "test")
        names = {short: STAGES["local"].resource_name(short) for short in TABLES}
        tables = Tables.bind(names, session, REGION)
        timing = Timing()
        self._pools = PoolStore(tables)
        self._workers = WorkerStore(tables, kept=timing.worker_kept)
        self._plans = PlanStore(tables, kept=timing.plan_kept)
        self._queue = taskcluster.Queue(client_options(self.stage.root_url))

    def lines(self) -> list[str]:
        """A line for each pool whose counts changed, then its decisions, since the last call."""
        told = []
        for pool_id in self._pools.ids():
            watched = self.pools.setdefault(pool_id, Watched())
            counts, plans = self._look(pool_id)
            demand = self._queue.taskQueueCounts(pool_id)
            watched.most = max(watched.most, counts.total)
            row = (
                demand["pendingTasks"],
                demand["claimedTasks"],
                counts.requested,
                counts.running,
                counts.stopping,
            )
            if row != watched.row or plans:
                told.append(_line(pool_id, row))
                watched.row = row
            for plan in plans:
                told.extend(decision_lines(plan))
        return told

    def _look(self, pool_id: str) -> tuple[Counts, list[Plan]]:
        now = datetime.now(UTC)
        # As a plan looks: what it saw stop must not be counted beside its orders.
        _, control = self._pools.get_with_control(pool_id)
        plans = self._plans.open_plans(control)
        workers = list(self._workers.live(pool_id))
        rows: dict[str, int] = {}
        for worker in workers:
            rows[worker.order_id or ""] = rows.get(worker.order_id or "", 0) + 1
        orders = [(o, rows.get(o.order_id, 0)) for plan in plans for o in plan.orders if o.is_open]
        counted = tally(workers, orders, now=now, stopping_limit=timedelta(minutes=20))
        return counted.pool, self._new_plans(pool_id)

    def _new_plans(self, pool_id: str) -> list[Plan]:
        plans = self._plans.recent(pool_id, after=self._seen_until)
        new = [plan for plan in plans if (pool_id, plan.tick) not in self._seen]
        self._seen.update((pool_id, plan.tick) for plan in new)
        return new


def _line(pool_id: str, row: tuple[int, ...]) -> str:
    pending, claimed, requested, running, stopping = row
    clock = datetime.now().astimezone().strftime("%H:%M:%S")
    return f"{clock:8}  {pool_id:24} {pending:7} {claimed:7} {requested:9} {running:7} {stopping:8}"


def decision_lines(plan: Plan) -> list[str]:
    """What a plan orders, what was refused of it, and why; its first line has a mark."""
    ordered = [(order, order.launched if order.error else order.count) for order in plan.orders]
    told = []
    if total := sum(count for _, count in ordered):
        told.append(f"+{total}: {_listed(ordered)}")
    for order in plan.orders:
        if order.error and order.count > order.launched:
            refused = _listed([(order, order.count - order.launched)])
            told.append(f"refused: {refused} ({order.error['code']})")
    told.extend(plan.reasons)
    if not told:
        told.append("no more is wanted")
    lines = []
    for number, each in enumerate(told):
        first, rest = (_INDENT, f"{_INDENT}  ") if number else (_MARK, f"{_INDENT}  ")
        lines += textwrap.wrap(each, _WIDTH, initial_indent=first, subsequent_indent=rest)
    return lines


def _listed(ordered: list[tuple[Order, int]]) -> str:
    return ", ".join(
        f"{count} of {order.launch_config_id} in {order.location}"
        for order, count in ordered
        if count
    )


def follow(timeline: Timeline, *, until: Callable[[], Any], seconds: float = 1.0) -> None:
    """Print the timeline until ``until`` says so."""
    print(HEADER, flush=True)
    while not until():
        for line in timeline.lines():
            print(line, flush=True)
        time.sleep(seconds)
