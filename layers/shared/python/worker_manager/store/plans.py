"""Noted plans: the write-ahead record of every launch, and the fence that one planner passes.

``note`` puts the plan and advances the control item in one transaction, so of two planners with
the same facts one loses; ``close`` advances it again.  Between them only ``mark`` writes, by the
plan's own version: whoever works from an older copy loses and drops out.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from pynamodb.exceptions import PutError, UpdateError

from worker_manager.core.errors import ConflictError
from worker_manager.core.model import Location
from worker_manager.core.moments import from_wire, to_wire
from worker_manager.core.plans import Control, Order, OrderState, Plan
from worker_manager.store.pool_items import CONTROL, advance_control
from worker_manager.store.pool_items import memory as changed_memory
from worker_manager.store.transactions import commit, is_condition_failure

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime, timedelta

    from pynamodb.transactions import TransactWrite

    from worker_manager.store.tables import PoolItem, Tables

PLAN = "plan#"
SCANNED = "scanned#"
ORDER_TIMES = ("first_sent", "last_sent", "not_before")


class PlanStore:
    """Table ``pools``, plans and control items."""

    def __init__(self, tables: Tables, *, kept: timedelta) -> None:
        """``kept`` is how long a closed plan's item stays; an open one stays until it is closed."""
        self._tables = tables
        self._model = tables.pools
        self._kept = kept

    def get(self, pool_id: str, tick: str) -> Plan | None:
        """One plan, read consistently."""
        try:
            item = self._model.get(pool_id, PLAN + tick, consistent_read=True)
        except self._model.DoesNotExist:
            return None
        return _to_plan(item)

    def recent(self, pool_id: str, *, after: datetime) -> list[Plan]:
        """Plans and stored decisions made after ``after``, oldest first."""
        items = self._model.query(pool_id, self._model.sk.startswith(PLAN), consistent_read=True)
        plans = [plan for item in items if (plan := _to_plan(item)).now > after]
        return sorted(plans, key=lambda plan: (plan.now, plan.tick))

    def open_plans(self, control: Control, provider_id: str | None = None) -> list[Plan]:
        """The open plans that ``control`` names (of one provider, if given), oldest first."""
        ticks = [
            tick
            for tick, owner in control.open_plans.items()
            if provider_id is None or owner == provider_id
        ]
        if not ticks:
            return []
        keys = [(control.pool_id, PLAN + tick) for tick in ticks]
        plans = [_to_plan(item) for item in self._model.batch_get(keys, consistent_read=True)]
        return sorted(plans, key=lambda plan: (plan.now, plan.tick))

    def scanned(
        self, pool_id: str, provider_id: str, location: Location, *, listed_at: datetime
    ) -> None:
        """All that a list, which began at ``listed_at``, showed of a pool has its row now."""
        self._model(
            pool_id,
            f"{SCANNED}{provider_id}#{location}",
            modified=listed_at,
            ttl=int((listed_at + self._kept).timestamp()),
        ).save(add_version_condition=False)

    def scans(
        self, pool_id: str, provider_id: str, locations: Collection[Location]
    ) -> dict[Location, datetime]:
        """When the last list began, by location, that ``scanned`` was told of."""
        prefix = f"{SCANNED}{provider_id}#"
        keys = [(pool_id, prefix + location) for location in sorted(locations)]
        return {
            Location(item.sk.removeprefix(prefix)): item.modified
            for item in self._model.batch_get(keys, consistent_read=True)
            if item.modified is not None
        }

    def note(self, plan: Plan, control: Control, **memory: Any) -> Control | None:
        """Write a new open plan, if nobody passed the fence since ``control`` was read.

        ``memory`` is what else the control item is to remember (``reasons_hash``, ``breakers``,
        ``probed``, ``probe_wait``).  Returns the advanced control item, or ``None`` when another
        planner was first.
        """
        after = replace(
            control,
            version=control.version + 1,
            open_plans={**control.open_plans, plan.tick: plan.provider_id},
            **memory,
        )
        item = self._item(plan)

        def fill(transaction: TransactWrite) -> None:
            transaction.save(item, condition=self._model.sk.does_not_exist())
            advance_control(transaction, self._model, control, after)

        try:
            commit(self._tables.connection, fill, token=_token(item, control.version))
        except ConflictError:
            return None
        return after

    def mark(self, plan: Plan, **changes: Any) -> Plan | None:
        """Write changed orders of an open plan; ``None`` if this copy of it is outdated."""
        after = replace(plan, **changes, version=plan.version + 1)
        item = self._item(after)
        try:
            item.update(
                [
                    self._model.version.set(after.version),
                    self._model.plan.set(item.plan),
                    self._model.closed.set(after.closed),
                ],
                condition=(self._model.version == plan.version) & (self._model.closed == False),  # noqa: E712
                add_version_condition=False,
            )
        except UpdateError as error:
            if is_condition_failure(error):
                return None
            raise
        return after

    def close(self, plan: Plan, control: Control) -> Control | None:
        """Close a plan whose orders are all settled; ``None`` if somebody else changed either."""
        remaining = {t: owner for t, owner in control.open_plans.items() if t != plan.tick}
        after = replace(control, version=control.version + 1, open_plans=remaining)
        closed = replace(plan, closed=True, version=plan.version + 1)
        item = self._item(closed)

        def fill(transaction: TransactWrite) -> None:
            transaction.save(item, condition=self._model.version == plan.version)
            advance_control(transaction, self._model, control, after)

        try:
            commit(self._tables.connection, fill, token=_token(item, control.version))
        except ConflictError:
            return None
        return after

    def remember(self, control: Control, **memory: Any) -> None:
        """Change what a control item remembers, if nobody passed the fence since it was read.

        Without the fence: of two planners that saw the same the later one is remembered.
        """
        try:
            self._model(control.pool_id, CONTROL).update(
                changed_memory(self._model, replace(control, **memory)),
                condition=(self._model.version == control.version)
                | self._model.version.does_not_exist(),
                add_version_condition=False,
            )
        except UpdateError as error:
            if not is_condition_failure(error):
                raise

    def record_decision(self, plan: Plan) -> None:
        """Store a decision that orders nothing, as a closed plan and without the fence."""
        try:
            self._item(replace(plan, closed=True)).save(condition=self._model.sk.does_not_exist())
        except PutError as error:
            if not is_condition_failure(error):
                raise

    def page(self, pool_id: str, *, before: str | None, limit: int) -> list[Plan]:
        """The next ``limit`` plans and decisions, newest first, from before tick ``before``."""
        model = self._model
        last = PLAN + before if before else PLAN + "\uffff"
        items = model.query(
            pool_id,
            model.sk.between(PLAN, last),
            scan_index_forward=False,
            consistent_read=True,
            limit=limit + 1,
        )
        plans = [_to_plan(item) for item in items if item.sk != last]
        return plans[:limit]

    def _item(self, plan: Plan) -> PoolItem:
        return self._model(
            plan.pool_id,
            PLAN + plan.tick,
            version=plan.version,
            provider_id=plan.provider_id,
            closed=plan.closed,
            ttl=int((plan.now + self._kept).timestamp()) if plan.closed else None,
            plan=json.dumps(_plan_json(plan), separators=(",", ":"), ensure_ascii=False),
        )


def _token(item: PoolItem, version: int) -> str:
    """The same content at the same fence is the same transaction."""
    text = f"{item.worker_pool_id}|{item.sk}|{item.version}|{version}|{item.closed}|{item.plan}"
    return hashlib.sha256(text.encode()).hexdigest()[:36]


def _plan_json(plan: Plan) -> dict[str, Any]:
    return {
        "now": to_wire(plan.now),
        "inputs": plan.inputs,
        "facts": plan.facts,
        "reasons": plan.reasons,
        "orders": [_order_json(order) for order in plan.orders],
    }


def _order_json(order: Order) -> dict[str, Any]:
    values = asdict(order)
    for name in ORDER_TIMES:
        if values[name] is not None:
            values[name] = to_wire(values[name])
    return {name: value for name, value in values.items() if value is not None}


def _to_order(stored: Mapping[str, Any]) -> Order:
    values = dict(stored)
    for name in ORDER_TIMES:
        if name in values:
            values[name] = from_wire(values[name])
    return Order(**{**values, "state": OrderState(values["state"])})


def _to_plan(item: PoolItem) -> Plan:
    stored = json.loads(item.plan or "{}")
    return Plan(
        pool_id=item.worker_pool_id,
        tick=item.sk.removeprefix(PLAN),
        provider_id=item.provider_id or "",
        now=from_wire(stored["now"]),
        orders=tuple(_to_order(order) for order in stored["orders"]),
        facts=stored["facts"],
        reasons=tuple(stored["reasons"]),
        inputs=stored["inputs"],
        version=int(item.version or 0),
        closed=bool(item.closed),
    )
