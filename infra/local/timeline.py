"""A readable timeline of every pool: demand, supply, and what was launched and why.

Reads the tables as the functions do, and the queue as the service does; a line is printed when
something changed.
"""

from __future__ import annotations

import os
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
    from worker_manager.core.model import Plan

HEADER = (
    f"{'time':8}  {'pool':24} {'pending':>7} {'claimed':>7} {'requested':>9} {'running':>7}"
    f" {'stopping':>8}  what and why"
)


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
        """One line for each decision and each change of counts since the last call."""
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
            words = [_words(plan) for plan in plans]
            if row != watched.row or words:
                told.append(_line(pool_id, row, words))
                watched.row = row
        return told

    def _look(self, pool_id: str) -> tuple[Counts, list[Plan]]:
        now = datetime.now(UTC)
        workers = list(self._workers.live(pool_id))
        _, control = self._pools.get_with_control(pool_id)
        plans = self._plans.open_plans(control)
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


def _line(pool_id: str, row: tuple[int, ...], words: list[str]) -> str:
    pending, claimed, requested, running, stopping = row
    clock = datetime.now().astimezone().strftime("%H:%M:%S")
    return (
        f"{clock:8}  {pool_id:24} {pending:7} {claimed:7} {requested:9} {running:7}"
        f" {stopping:8}  {'; '.join(words)}"
    )


def _words(plan: Plan) -> str:
    why = ", ".join(plan.reasons) or "no more is wanted"
    if not plan.orders:
        return why
    orders = ", ".join(
        f"{order.count} of {order.launch_config_id} in {order.location}"
        + (f" (refused: {order.error['code']})" if order.error else "")
        for order in plan.orders
    )
    return f"+{sum(order.count for order in plan.orders)}: {orders} because {why}"


def follow(timeline: Timeline, *, until: Callable[[], Any], seconds: float = 1.0) -> None:
    """Print the timeline until ``until`` says so."""
    print(HEADER, flush=True)
    while not until():
        for line in timeline.lines():
            print(line, flush=True)
        time.sleep(seconds)
