"""Rows of workers: put if absent, changed by version, read live without the stopped ones.

Every change is conditional on the version that was read, writes only what differs, and carries
the events it causes in ``unsent``; ``sent`` clears them after they were published.  Planning reads
the local index ``live``: those workers lack what it does not project (identity, secrets).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pynamodb.exceptions import PutError, UpdateError

from worker_manager.core.errors import ConflictError
from worker_manager.core.lifecycle import was_never_made
from worker_manager.core.model import Location, State, Worker, WorkerKey
from worker_manager.store.transactions import commit, commit_many, is_condition_failure
from worker_manager.store.worker_items import attributes, sort_key, state_of, to_worker

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from datetime import datetime, timedelta

    from pynamodb.expressions.condition import Condition
    from pynamodb.expressions.update import Action
    from pynamodb.transactions import TransactWrite

    from worker_manager.store.tables import Tables, WorkerItem

_TO_STAND = ["launch_config_id", "state", "location", "registered", "capacity"]
LARGEST_IN = 100
"""Values that one ``IN`` of a filter takes."""


class WorkerStore:
    """Table ``workers``."""

    def __init__(self, tables: Tables, *, kept: timedelta) -> None:
        """``kept`` is how long a stopped worker's row stays."""
        self._connection = tables.connection
        self._model = tables.workers
        self._kept = kept

    def get(self, key: WorkerKey) -> Worker | None:
        """One worker, whole, read consistently."""
        try:
            item = self._model.get(key.pool_id, sort_key(key), consistent_read=True)
        except self._model.DoesNotExist:
            return None
        return to_worker(item)

    def get_many(self, keys: Iterable[WorkerKey]) -> dict[WorkerKey, Worker]:
        """Those of these workers that have a row, whole, read consistently in few requests."""
        names = list({(key.pool_id, sort_key(key)) for key in keys})
        if not names:
            return {}
        found = map(to_worker, self._model.batch_get(names, consistent_read=True))
        return {worker.key: worker for worker in found}

    def put_new(self, worker: Worker) -> bool:
        """Write a worker that has no row; false, and nothing written, if it has one."""
        try:
            self._item(worker).save(condition=self._absent, add_version_condition=False)
        except PutError as error:
            if is_condition_failure(error):
                return False
            raise
        return True

    def put_new_with(self, worker: Worker, also: Callable[[TransactWrite], None]) -> bool:
        """As ``put_new``, in one transaction with what ``also`` adds: both are written, or none."""

        def fill(transaction: TransactWrite) -> None:
            transaction.save(self._item(worker), condition=self._absent)
            also(transaction)

        try:
            commit(self._connection, fill)
        except ConflictError:
            return False
        return True

    def put_all_new(self, workers: Sequence[Worker]) -> list[Worker]:
        """Write those of ``workers`` that have no row, in few requests; returns those written."""

        def add(transaction: TransactWrite, worker: Worker) -> None:
            transaction.save(self._item(worker), condition=self._absent)

        return commit_many(self._connection, workers, add, alone=self.put_new)

    def change(self, before: Worker, **changes: Any) -> Worker | None:
        """Write ``changes`` if nobody changed the row since ``before``; ``None`` if somebody did.

        Only what differs is written; the version moves on by one.
        """
        after = replace(before, **changes, version=before.version + 1)
        if self._update(before, self._differences(before, after)):
            return after
        return None

    def change_with(
        self, before: Worker, also: Callable[[TransactWrite], None], **changes: Any
    ) -> Worker | None:
        """As ``change``, in one transaction with what ``also`` adds: both are written, or none."""
        after = replace(before, **changes, version=before.version + 1)

        def fill(transaction: TransactWrite) -> None:
            transaction.update(
                self._model(before.key.pool_id, sort_key(before.key)),
                self._differences(before, after),
                condition=self._model.version == before.version,
                add_version_condition=False,
            )
            also(transaction)

        try:
            commit(self._connection, fill)
        except ConflictError:
            return None
        return after

    def sent(self, workers: Sequence[Worker]) -> None:
        """Forget the unsent events of these; a row that moved on since keeps its own."""

        def add(transaction: TransactWrite, worker: Worker) -> None:
            transaction.update(
                self._model(worker.key.pool_id, sort_key(worker.key)),
                self._forget_events(worker),
                condition=self._model.version == worker.version,
                add_version_condition=False,
            )

        commit_many(
            self._connection,
            [worker for worker in workers if worker.unsent],
            add,
            alone=lambda worker: self._update(worker, self._forget_events(worker)),
        )

    def live(self, pool_id: str, location: Location | None = None) -> Iterator[Worker]:
        """Workers that are not stopped (or have something unsent), read consistently.

        They carry what the index projects; ``get`` has the rest.
        """
        condition = self._model.live.startswith(f"{location}#") if location else None
        for item in self._model.query(pool_id, condition, index_name="live", consistent_read=True):
            yield to_worker(item)

    def rows_of_orders(
        self, pool_id: str, order_ids: Collection[str], *, less_never_made: bool = False
    ) -> dict[str, int]:
        """How many rows, in any state, carry each of these orders' ids.

        ``less_never_made`` leaves out those that ended before their machine was seen.  It reads
        all of the pool's rows, stopped ones too, for each hundred ids.
        """
        counts = dict.fromkeys(order_ids, 0)
        wanted = sorted(order_ids)
        for start in range(0, len(wanted), LARGEST_IN):
            part = wanted[start : start + LARGEST_IN]
            for item in self._model.query(
                pool_id,
                filter_condition=self._model.order_id.is_in(*part),
                consistent_read=True,
                attributes_to_get=["order_id", "state", "launched", "registered", "stopped_by"],
            ):
                if not less_never_made or not was_never_made(
                    state=State(item.state),
                    launched=item.launched,
                    registered=item.registered,
                    stopped_by=item.stopped_by,
                ):
                    counts[str(item.order_id)] += 1
        return counts

    def page(
        self,
        pool_id: str,
        *,
        group: str | None = None,
        after: str | None = None,
        limit: int,
    ) -> list[Worker]:
        """The next ``limit`` workers in any state, by group and id, beyond sort key ``after``."""
        prefix = f"{group}#" if group else ""
        first = max(prefix, f"{after}\0" if after else "")
        last = f"{prefix}\uffff"
        if first > last:
            return []
        condition = self._model.sk.between(first, last) if first else None
        items = self._model.query(pool_id, condition, limit=limit, consistent_read=True)
        return [to_worker(item) for item in items]

    def beyond(
        self, pool_id: str, *, group: str | None = None, after: str | None, at_once: int
    ) -> Iterator[Worker]:
        """Workers in any state, by group and id, beyond sort key ``after``, to the end.

        No more than ``at_once`` are read with one request, and held.
        """
        while rows := self.page(pool_id, group=group, after=after, limit=at_once):
            yield from rows
            if len(rows) < at_once:
                return
            after = sort_key(rows[-1].key)

    def is_forgotten(self, worker: Worker, now: datetime) -> bool:
        """Whether a worker stopped so long ago that its row counts as gone."""
        return worker.state is State.STOPPED and worker.modified + self._kept < now

    def states(self, pool_id: str, now: datetime) -> Iterator[tuple[State, int]]:
        """State and capacity of every worker of a pool, those long stopped left out."""
        return ((state, capacity) for _, state, capacity in self.standings(pool_id, now))

    def standings(self, pool_id: str, now: datetime) -> Iterator[tuple[str | None, State, int]]:
        """Launch config, state and capacity of every worker, those long stopped left out."""
        for item in self._model.query(
            pool_id,
            consistent_read=True,
            attributes_to_get=[*_TO_STAND, "ttl"],
        ):
            if item.ttl is None or item.ttl > now.timestamp():
                yield item.launch_config_id, state_of(item), int(item.capacity)

    def _update(self, before: Worker, actions: Sequence[Action]) -> bool:
        """Do ``actions`` on the row if it is as it was in ``before``; whether it was."""
        if not actions:
            return True
        item = self._model(before.key.pool_id, sort_key(before.key))
        try:
            item.update(
                list(actions),
                condition=self._model.version == before.version,
                add_version_condition=False,
            )
        except UpdateError as error:
            if is_condition_failure(error):
                return False
            raise
        return True

    def _forget_events(self, worker: Worker) -> list[Action]:
        """A stopped worker leaves the index together with its last event."""
        actions: list[Action] = [self._model.unsent.remove()]
        if worker.state is State.STOPPED:
            actions.append(self._model.live.remove())
        return actions

    def _differences(self, before: Worker, after: Worker) -> list[Action]:
        """What turns the item of ``before`` into that of ``after``."""
        old, new = attributes(before, kept=self._kept), attributes(after, kept=self._kept)
        actions: list[Action] = []
        for name in old.keys() | new.keys():
            if old.get(name) == new.get(name):
                continue
            attribute = getattr(self._model, name)
            value = new.get(name)
            actions.append(attribute.remove() if value is None else attribute.set(value))
        return actions

    @property
    def _absent(self) -> Condition:
        return self._model.sk.does_not_exist()

    def _item(self, worker: Worker) -> WorkerItem:
        return self._model(
            worker.key.pool_id, sort_key(worker.key), **attributes(worker, kept=self._kept)
        )
