"""The table of actions: runs, and what keeps them from each other's way.

=========================  ==========================  ========================================
partition                  sort key                    what
=========================  ==========================  ========================================
``run#<run id>``           ``run``                     JSON text, by version
``target#<target>``        ``open#<lock>``             the open run that holds this
``target#<target>``        ``cool#<action>``           until when it is not done again
``target#<target>``        ``run#<requested>#<id>``    a run of it, open or over
``queue#<task queue id>``  ``<requested>#<run id>``    a run of it or one of its workers
``todo#<list>``            ``<requested>#<run id>``    an open run that these may take up, or have
``open``                   ``<requested>#<run id>``    an open run
``place#<place>``          ``place``                   the runs that are under way there
``bulk#<bulk id>``         ``bulk``                    JSON text; whether it was stopped
``bulk#<bulk id>``         ``run#<run id>``            a run of it
=========================  ==========================  ========================================

Whatever becomes of a run is one transaction with its lines, its lock, its place and the events
that tell of it, so none of them outlives another.  What may become of it is decided in
``worker_manager.actions``.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from pynamodb.exceptions import DoesNotExist, PutError
from pynamodb.expressions.condition import size

from worker_manager.core.errors import ConflictError, NotFoundError
from worker_manager.store.action_items import OPEN, RUN, ActionItem, epoch
from worker_manager.store.action_rows import Cooled, Listed, StoredRun, Todo
from worker_manager.store.outbox_items import outbox_item
from worker_manager.store.tables import bind
from worker_manager.store.transactions import commit, is_condition_failure

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from pynamodb.transactions import TransactWrite

    from worker_manager.core.model import Json
    from worker_manager.store.tables import Tables

BULK = "bulk"
PLACE = "place"
LINES_AT_ONCE = 500
"""Lines of what may be taken up that are read with one request."""


class ActionTable:
    """The verbs of the table of actions."""

    def __init__(self, items: type[ActionItem], tables: Tables) -> None:
        """Over the model bound to its table; ``tables`` have the outbox."""
        self.items = items
        self._tables = tables

    @classmethod
    def bind(cls, table_name: str, tables: Tables) -> ActionTable:
        """The table called ``table_name``, over the connection of ``tables``."""
        return cls(bind(ActionItem, table_name, tables.connection), tables)

    # Runs

    def read(self, run_id: str) -> tuple[str, int] | None:
        """A run's text and version, strongly consistent; ``None`` if there is none."""
        item = self._item(f"run#{run_id}", RUN)
        return None if item is None else (str(item.body), int(item.version or 0))

    def read_many(self, run_ids: Sequence[str]) -> dict[str, tuple[str, int]]:
        """Those of the runs that there are, by id, a hundred a request."""
        keys = [(f"run#{run_id}", RUN) for run_id in run_ids]
        found = self.items.batch_get(keys, consistent_read=True) if keys else ()
        return {
            item.pk.partition("#")[2]: (str(item.body), int(item.version or 0)) for item in found
        }

    def create(self, run: StoredRun, *, cools: str, now: datetime, events: Sequence[Json]) -> None:
        """Store a new run.

        ``ConflictError`` if its id is taken, its lock is held, the action ``cools`` down or its
        bulk was stopped.
        """
        model = self.items
        absent = ActionItem.pk.does_not_exist()

        def fill(write: TransactWrite) -> None:
            write.save(model.of_run(run), condition=absent)
            write.save(model.of_lock(run), condition=absent)
            write.condition_check(
                model,
                f"target#{run.target}",
                f"cool#{cools}",
                condition=model.until.does_not_exist() | (model.until <= now),
            )
            for line in (model.of_todo(run), model.of_open(run), *model.of_kept_lines(run)):
                write.save(line)
            if run.bulk_id is not None:
                write.condition_check(
                    model, f"bulk#{run.bulk_id}", BULK, condition=model.stopped.does_not_exist()
                )
            self._tell(write, events, now)

        commit(self._tables.connection, fill)

    def replace(
        self,
        before: StoredRun,
        after: StoredRun,
        *,
        cooled: Cooled | None = None,
        events: Sequence[Json] = (),
        now: datetime,
    ) -> None:
        """Write a run over ``before.version``, and all that moves with it.

        ``ConflictError`` if it has changed, or its place is taken by others.
        """
        as_read = ActionItem.version == before.version
        stays = ("is_open", "is_taken", "has_place")
        if not events and all(getattr(before, name) == getattr(after, name) for name in stays):
            try:
                self.items.of_run(after).save(condition=as_read)
            except PutError as error:
                if is_condition_failure(error):
                    raise ConflictError(f"run {after.run_id} changed meanwhile") from error
                raise
            return

        def fill(write: TransactWrite) -> None:
            write.save(self.items.of_run(after), condition=as_read)
            self._move(write, before, after)
            if cooled is not None:
                write.save(self.items.of_cooled(after, cooled))
            self._tell(write, events, now)

        commit(self._tables.connection, fill)

    def _move(self, write: TransactWrite, before: StoredRun, after: StoredRun) -> None:
        if before.has_place != after.has_place:
            self._take_or_leave(write, after)
        if not after.is_open:
            write.delete(self.items.of_lock(after))
            write.delete(self.items.of_todo(after))
            write.delete(self.items.of_open(after))
        elif before.has_place and not after.has_place:
            write.delete(self.items.of_todo(after))
        elif before.is_taken != after.is_taken:
            write.save(self.items.of_todo(after))

    def _take_or_leave(self, write: TransactWrite, run: StoredRun) -> None:
        item = self.items(f"place#{run.place}", PLACE)
        runs = self.items.runs
        if run.has_place:
            under_way: Any = size
            is_free = runs.does_not_exist() | (under_way(runs) < run.places)
            write.update(item, [runs.add({run.run_id})], condition=is_free)
        else:
            write.update(item, [runs.delete({run.run_id})])

    def _tell(self, write: TransactWrite, events: Sequence[Json], now: datetime) -> None:
        if events:
            write.save(outbox_item(self._tables.providers, events, now))

    # What keeps runs from each other's way

    def holder(self, target: str, lock: str) -> str | None:
        """The open run that holds a lock of a target."""
        item = self._item(f"target#{target}", f"open#{lock}")
        return None if item is None else str(item.run_id)

    def cooled_until(self, target: str, name: str) -> datetime | None:
        """Until when an action is not done to a target again, if it ever was."""
        item = self._item(f"target#{target}", f"cool#{name}")
        until: datetime | None = None if item is None else item.until
        return until

    def under_way(self, place: str) -> frozenset[str]:
        """The runs that are under way at a place."""
        item = self._item(f"place#{place}", PLACE)
        return frozenset() if item is None else frozenset(item.runs or ())

    # Lists

    def todo(self, of: str, *, limit: int) -> Iterator[Todo]:
        """Open runs of a list, the oldest first; read as far as they are looked at."""
        found = self.items.query(
            f"todo#{of}", consistent_read=True, limit=limit, page_size=LINES_AT_ONCE
        )
        for line in found:
            yield Todo(str(line.run_id), str(line.place), bool(line.taken))

    def open(self, *, limit: int, after: str = "") -> list[Listed]:
        """Open runs, the oldest first, from the one that follows ``after``."""
        beyond = self.items.sk > after if after else None
        found = self.items.query(OPEN, beyond, consistent_read=True, page_size=limit)
        return [_to_listed(line) for line in islice(found, limit)]

    def of_target(self, target: str, *, limit: int, before: str = "") -> list[Listed]:
        """Runs of a target, the newest first, from the one that follows ``before``."""
        return self._newest(f"target#{target}", prefix="run#", limit=limit, before=before)

    def of_queue(self, queue_id: str, *, limit: int, before: str = "") -> list[Listed]:
        """Runs of a task queue and its workers, the newest first."""
        return self._newest(f"queue#{queue_id}", prefix="", limit=limit, before=before)

    def _newest(self, partition: str, *, prefix: str, limit: int, before: str) -> list[Listed]:
        sk = self.items.sk
        condition = sk.between(prefix or "0", before) if before else sk.startswith(prefix)
        found: Iterator[ActionItem] = self.items.query(
            partition,
            condition if before or prefix else None,
            consistent_read=True,
            scan_index_forward=False,
            page_size=limit + 1,
        )
        lines = (line for line in found if line.sk != before and line.sk.startswith(prefix))
        return [_to_listed(line) for line in islice(lines, limit)]

    # Bulks

    def begin_bulk(self, bulk_id: str, body: str, *, kept: datetime) -> tuple[str, bool]:
        """Note what a bulk is about, or find what was noted; whether it was stopped."""
        item = self.items(f"bulk#{bulk_id}", BULK, body=body, ttl=epoch(kept))
        try:
            item.save(condition=ActionItem.pk.does_not_exist())
        except PutError as error:
            if not is_condition_failure(error):
                raise
        else:
            return body, False
        noted = self.bulk(bulk_id)
        if noted is None:
            raise NotFoundError(f"bulk {bulk_id} is not known")
        return noted

    def bulk(self, bulk_id: str) -> tuple[str, bool] | None:
        """What a bulk is about, and whether it was stopped."""
        item = self._item(f"bulk#{bulk_id}", BULK)
        return None if item is None else (str(item.body), bool(item.stopped))

    def stop_bulk(self, bulk_id: str) -> None:
        """Let no further run of a bulk be made."""
        self.items(f"bulk#{bulk_id}", BULK).update(
            [self.items.stopped.set(True)], condition=ActionItem.pk.exists()
        )

    def runs_of_bulk(self, bulk_id: str) -> list[str]:
        """The ids of all runs of a bulk."""
        found = self.items.query(
            f"bulk#{bulk_id}", self.items.sk.startswith("run#"), consistent_read=True
        )
        return [str(line.run_id) for line in found]

    # Rows

    def _item(self, pk: str, sk: str) -> ActionItem | None:
        try:
            return self.items.get(pk, sk, consistent_read=True)
        except DoesNotExist:
            return None


def _to_listed(line: ActionItem) -> Listed:
    return Listed(line.sk, str(line.run_id))
