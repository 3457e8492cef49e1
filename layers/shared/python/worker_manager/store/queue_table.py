"""The embedded queue's table: tasks, and the lists they wait in.

=========================  ==========================================  =========================
partition                  sort key                                    what
=========================  ==========================================  =========================
``task#<task id>``         ``definition``                              JSON text, never changed
``task#<task id>``         ``status``                                  JSON text, by version
``<queue id>#pending``     ``<priority>#<scheduled>#<task>#<run>``     waiting, next one first
``<queue id>#claimed``     ``<taken until>#<task id>#<run>``           claimed, overdue ones first
=========================  ==========================================  =========================

A task's status and its line in a list change in one transaction, so a task is in one list or in
none, and of two claimers one loses.  Counting reads one partition and returns no items.  What
tasks may do is decided in ``worker_manager.queue.tasks``; here they are texts with a version
(``queue_rows``).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING

from pynamodb.attributes import NumberAttribute, UnicodeAttribute
from pynamodb.models import Model

from worker_manager.core.errors import ConflictError, DuplicateError
from worker_manager.core.moments import to_wire
from worker_manager.store.attributes import MomentAttribute
from worker_manager.store.queue_rows import Line, Listed, StoredTask
from worker_manager.store.tables import bind
from worker_manager.store.transactions import commit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from pynamodb.connection import Connection
    from pynamodb.expressions.condition import Condition
    from pynamodb.transactions import TransactWrite

    from worker_manager.store.transactions import Writes

LINE_KEPT = timedelta(days=1)
"""How long a forgotten line outlives its task's deadline before DynamoDB drops it."""
PAGE = 1000
"""Lines read in one request where many may be left out."""
TASK = "task#"
DEFINITION = "definition"
STATUS = "status"


class QueueItem(Model):
    """Table ``queue``; keys and what is under them as in the module's docstring."""

    class Meta:
        """Bound by ``QueueTable.bind``."""

        table_name = "queue"

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    ttl = NumberAttribute(null=True)
    version = NumberAttribute(null=True)
    # definition, status
    body = UnicodeAttribute(null=True)
    expires = MomentAttribute(null=True)
    # pending, claimed
    task_id = UnicodeAttribute(null=True)
    until = MomentAttribute(null=True)
    deadline = MomentAttribute(null=True)
    holder = UnicodeAttribute(null=True)


@dataclass(frozen=True, slots=True)
class QueueTable:
    """The verbs of the queue's table."""

    items: type[QueueItem]
    connection: Connection

    @classmethod
    def bind(cls, table_name: str, connection: Connection) -> QueueTable:
        """The table called ``table_name`` over a connection of ``store.tables.connect``."""
        return cls(bind(QueueItem, table_name, connection), connection)

    def create(self, task: StoredTask, line: Line | None) -> None:
        """Store a new task in its list.  Raises ``DuplicateError`` if the id is taken."""
        absent = QueueItem.pk.does_not_exist()
        expires = _epoch(task.expires)
        definition = self.items(
            _task_key(task.task_id), DEFINITION, body=task.definition, ttl=expires
        )

        def fill(write: TransactWrite) -> None:
            write.save(definition, condition=absent)
            write.save(self._status(task, version=1), condition=absent)
            if line is not None:
                write.save(self._line(line))

        try:
            commit(self.connection, fill)
        except ConflictError as error:
            raise DuplicateError(f"task {task.task_id} exists") from error

    def read(self, task_id: str) -> StoredTask | None:
        """The task as it is now, or ``None``.  One request, strongly consistent."""
        found = self.items.query(_task_key(task_id), consistent_read=True)
        return _to_tasks(found).get(task_id)

    def read_many(self, task_ids: Sequence[str]) -> dict[str, StoredTask]:
        """Those of the tasks that there are, fifty a request, strongly consistent."""
        keys = [(_task_key(name), part) for name in task_ids for part in (DEFINITION, STATUS)]
        return _to_tasks(self.items.batch_get(keys, consistent_read=True))

    def replace(
        self,
        task: StoredTask,
        *,
        old_line: Line | None,
        new_line: Line | None,
        also: Sequence[Writes] = (),
    ) -> None:
        """Write a task's next status over ``task.version`` and move its line along.

        ``also`` are other writes in the same transaction.  Raises ``ConflictError`` if somebody
        else changed the task first, or a condition of theirs fails.
        """

        def fill(write: TransactWrite) -> None:
            write.save(
                self._status(task, version=task.version + 1),
                condition=QueueItem.version == task.version,
            )
            if old_line is not None and old_line != new_line:
                write.delete(self._line(old_line))
            if new_line is not None and new_line != old_line:
                write.save(self._line(new_line))
            for more in also:
                more(write)

        commit(self.connection, fill)

    def lines(
        self,
        queue_id: str,
        listed: Listed,
        *,
        limit: int,
        due: datetime | None = None,
        after: str = "",
    ) -> list[Line]:
        """The first ``limit`` lines of a list: those ``due`` by then, or ``after`` an order.

        ``due`` is for claims, whose order begins with the time until which they are taken.
        """
        condition = _due(due) if due is not None else _after(after)
        name = f"{queue_id}#{listed}"
        found = self.items.query(name, condition, consistent_read=True, limit=limit)
        return [_to_line(item) for item in found]

    def living(self, queue_id: str, *, now: datetime, limit: int, after: str) -> list[Line]:
        """The first ``limit`` waiting lines ``after`` an order that are not past their deadline.

        Reads over all that are in between, a thousand a request.
        """
        found = self.items.query(
            f"{queue_id}#{Listed.PENDING}",
            _after(after),
            filter_condition=QueueItem.until > now,
            consistent_read=True,
            page_size=PAGE,
        )
        return [_to_line(item) for item in islice(found, limit)]

    def held(self, queue_id: str, holder: str) -> list[Line]:
        """All lines of claims that one worker holds.  Reads the whole list of claims."""
        found = self.items.query(
            f"{queue_id}#{Listed.CLAIMED}",
            filter_condition=QueueItem.holder == holder,
            consistent_read=True,
        )
        return [_to_line(item) for item in found]

    def drop(self, line: Line) -> None:
        """Remove a line whose task is gone."""
        self._line(line).delete()

    def count(self, queue_id: str, listed: Listed, *, after: datetime) -> int:
        """How many lines still count ``after`` that moment."""
        return self.items.count(
            f"{queue_id}#{listed}",
            filter_condition=QueueItem.until > after,
            consistent_read=True,
        )

    def count_overdue(self, queue_id: str, now: datetime) -> int:
        """How many claims are over whose tasks still have time."""
        return self.items.count(
            f"{queue_id}#{Listed.CLAIMED}",
            _due(now),
            filter_condition=QueueItem.deadline > now,
            consistent_read=True,
        )

    def _status(self, task: StoredTask, *, version: int) -> QueueItem:
        return self.items(
            _task_key(task.task_id),
            STATUS,
            body=task.status,
            expires=task.expires,
            ttl=_epoch(task.expires),
            version=version,
        )

    def _line(self, line: Line) -> QueueItem:
        return self.items(
            f"{line.queue_id}#{line.listed}",
            line.order,
            task_id=line.task_id,
            until=line.until,
            deadline=line.deadline,
            holder=line.holder or None,
            ttl=_epoch(line.deadline + LINE_KEPT),
        )


def _after(order: str) -> Condition | None:
    return QueueItem.sk > order if order else None


def _due(moment: datetime) -> Condition:
    return QueueItem.sk < f"{to_wire(moment)}$"


def _task_key(task_id: str) -> str:
    return TASK + task_id


def _epoch(moment: datetime) -> int:
    return int(moment.timestamp())


def _to_tasks(items: Iterable[QueueItem]) -> dict[str, StoredTask]:
    """Tasks by id, of which both parts were found."""
    parts = {(item.pk.removeprefix(TASK), item.sk): item for item in items}
    return {
        task_id: StoredTask(
            task_id=task_id,
            definition=str(parts[task_id, DEFINITION].body),
            status=str(item.body),
            expires=item.expires,
            version=int(item.version or 0),
        )
        for (task_id, part), item in parts.items()
        if part == STATUS and (task_id, DEFINITION) in parts
    }


def _to_line(item: QueueItem) -> Line:
    queue_id, _, listed = item.pk.rpartition("#")
    return Line(
        queue_id=queue_id,
        listed=Listed(listed),
        order=item.sk,
        task_id=str(item.task_id),
        until=item.until,
        deadline=item.deadline,
        holder=item.holder or "",
    )
