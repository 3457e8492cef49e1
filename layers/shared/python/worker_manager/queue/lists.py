"""What waits in a queue and what is worked on: counted, and told page by page.

Both look for claims that ran out first, as the lists are of what is so now.  ``ledger`` is whose
tasks these are; ``records`` says how a list is ordered.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker_manager.core.activity import QueueCounts
from worker_manager.queue import records, tasks
from worker_manager.store.queue_rows import Listed

if TYPE_CHECKING:
    from worker_manager.queue.ledger import Ledger
    from worker_manager.queue.tasks import Task

READ_AT_ONCE = 50
"""Tasks read in one request."""
PAGE_CHARACTERS = 3_000_000
"""Definitions of one page of tasks together; a page ends with the one that exceeds it."""

_STATES = {Listed.PENDING: tasks.RunState.PENDING, Listed.CLAIMED: tasks.RunState.RUNNING}
"""In which state a task is that is in a list."""


@dataclass(frozen=True, slots=True)
class Lists:
    """The lists of all queues."""

    ledger: Ledger

    def counts(self, queue_id: str) -> QueueCounts:
        """A queue's tasks by list, one list after the other.

        A task claimed in between is in neither once, one given back in between in both.  Claims
        that ran out, but are too many to settle at once, count as pending: they soon are.
        """
        is_settled = self.ledger.settle(queue_id)
        now = self.ledger.now()
        claimed = self.ledger.table.count(queue_id, Listed.CLAIMED, after=now)
        pending = self.ledger.table.count(queue_id, Listed.PENDING, after=now)
        if not is_settled:
            pending += self.ledger.table.count_overdue(queue_id, now)
        return QueueCounts(pending=pending, claimed=claimed)

    def page(
        self, queue_id: str, listed: Listed, *, limit: int, after: str = ""
    ) -> tuple[list[Task], str]:
        """A page of the tasks in one list, and what the next one comes ``after``.

        Claimed ones come by when their claim runs out, so one that is renewed between two pages
        is in both rather than in none; waiting ones in the order in which they are given out.  An
        empty text says that this was the last page.
        """
        self.ledger.settle(queue_id)
        state = _STATES[listed]
        lines = self.ledger.table.lines(queue_id, listed, limit=limit, after=after)
        found: list[Task] = []
        size = 0
        for start in range(0, len(lines), READ_AT_ONCE):
            part = lines[start : start + READ_AT_ONCE]
            stored = self.ledger.table.read_many([line.task_id for line in part])
            for line in part:
                if (one := stored.get(line.task_id)) is None:
                    continue
                task = tasks.settle(records.from_stored(one), self.ledger.now())
                if task.last.state is not state:
                    continue
                found.append(task)
                size += len(one.definition)
                if size > PAGE_CHARACTERS:
                    return found, line.order
        return found, lines[-1].order if len(lines) == limit else ""
