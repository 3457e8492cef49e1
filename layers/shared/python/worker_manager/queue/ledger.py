"""The tasks of all queues, over the table: read, decided by ``tasks``, written back.

A change is written under the version that was read, and decided anew when somebody else was
faster.  Claims that ran out are noticed when somebody counts or claims: there is no clock that
ticks by itself.  ``sightings`` is the twin for workers.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING
from zlib import crc32

from worker_manager.core.activity import QueueCounts
from worker_manager.core.errors import (
    ConflictError,
    DuplicateError,
    NotFoundError,
    QueueUnavailableError,
)
from worker_manager.core.model import Json, canonical_json
from worker_manager.core.moments import whole_milliseconds
from worker_manager.queue import records, tasks
from worker_manager.store.queue_rows import Listed

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime, timedelta

    from worker_manager.queue.tasks import Resolution, Task
    from worker_manager.store.queue_rows import Line
    from worker_manager.store.queue_table import QueueTable

ATTEMPTS = 8
"""How often one change is decided before giving up on lost races."""
LOOKAHEAD = 20
"""How many more waiting tasks a claimer looks at than it wants, in case others take some."""
READ_AT_ONCE = 50
"""Tasks read in one request."""
PAGE_CHARACTERS = 3_000_000
"""Definitions of one page of claimed tasks together; a page ends with the one that exceeds it."""
SETTLED_AT_ONCE = 100
"""How many overdue claims one call settles at most."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """Every task; ``claim_timeout`` is how long a claim holds unless renewed."""

    table: QueueTable
    clock: Callable[[], datetime]
    claim_timeout: timedelta

    def now(self) -> datetime:
        """The clock's time, as exact as the wire."""
        return whole_milliseconds(self.clock())

    def read(self, task_id: str) -> Task:
        """The task as it is now, with what time did to it.  ``NotFoundError`` if there is none."""
        now = self.now()
        return tasks.settle(self._stored(task_id, now), now)

    def exists(self, task_id: str) -> bool:
        """Whether the id is taken, also by a task that is past its expiry but not yet gone."""
        return self.table.read(task_id) is not None

    def create(self, task_id: str, definition: Json) -> Task:
        """The task, new or as it is already; ``DuplicateError`` if it is another by this id."""
        task = tasks.schedule(task_id, definition, self.now())
        line = records.line_of(task)
        try:
            self.table.create(records.to_stored(task), line)
        except DuplicateError:
            there = self.read(task_id)
            if canonical_json(there.definition) != canonical_json(definition):
                raise
            return there
        return task

    def counts(self, queue_id: str) -> QueueCounts:
        """A queue's tasks by list, one list after the other.

        A task claimed in between is in neither once, one given back in between in both.
        """
        self.settle_overdue(queue_id)
        now = self.now()
        claimed = self.table.count(queue_id, Listed.CLAIMED, after=now)
        pending = self.table.count(queue_id, Listed.PENDING, after=now)
        return QueueCounts(pending=pending, claimed=claimed)

    def claimed(self, queue_id: str, *, limit: int, after: str = "") -> tuple[list[Task], str]:
        """A page of the tasks that are being worked on, and what the next one comes ``after``.

        The claim that runs out first comes first, so one that is renewed between two pages is in
        both rather than in none.  An empty text says that this was the last page.
        """
        self.settle_overdue(queue_id)
        lines = self.table.lines(queue_id, Listed.CLAIMED, limit=limit, after=after)
        found: list[Task] = []
        size = 0
        for start in range(0, len(lines), READ_AT_ONCE):
            part = lines[start : start + READ_AT_ONCE]
            stored = self.table.read_many([line.task_id for line in part])
            for line in part:
                if (one := stored.get(line.task_id)) is None:
                    continue
                task = tasks.settle(records.from_stored(one), self.now())
                if task.last.state is not tasks.RunState.RUNNING:
                    continue
                found.append(task)
                size += len(one.definition)
                if size > PAGE_CHARACTERS:
                    return found, line.order
        return found, lines[-1].order if len(lines) == limit else ""

    def reclaim(self, task_id: str, run_id: int) -> Task:
        """Renew a claim.  Errors as of ``tasks.reclaim``."""

        def renew(task: Task, now: datetime) -> Task:
            return tasks.reclaim(task, run_id, now=now, timeout=self.claim_timeout)

        return self._change(task_id, renew)

    def resolve(self, task_id: str, run_id: int, resolution: Resolution) -> Task:
        """End a run.  Errors as of ``tasks.resolve``."""

        def end(task: Task, now: datetime) -> Task:
            return tasks.resolve(task, run_id, resolution, now=now)

        return self._change(task_id, end)

    def claim(self, queue_id: str, group: str, worker_id: str, *, wanted: int) -> list[Task]:
        """Claim the best waiting tasks; after a lost race go on elsewhere in the list.

        Where a claimer goes on depends on its name, lest all run after each other.
        """
        self.settle_overdue(queue_id)
        waiting = deque(self.table.lines(queue_id, Listed.PENDING, limit=wanted + LOOKAHEAD))
        elsewhere = crc32(f"{group}/{worker_id}".encode())
        claimed: list[Task] = []
        while waiting and len(claimed) < wanted:
            task = self._claim(waiting.popleft(), group, worker_id)
            if task is not None:
                claimed.append(task)
            elif waiting:
                waiting.rotate(-(elsewhere % len(waiting)))
        return claimed

    def settle_overdue(self, queue_id: str) -> None:
        """Write what time did to claims that ran out; lines whose task is gone are dropped."""
        overdue = self.table.lines(queue_id, Listed.CLAIMED, limit=SETTLED_AT_ONCE, due=self.now())
        for line in overdue:
            try:
                self._change(line.task_id, lambda settled, _now: settled)
            except NotFoundError:
                self.table.drop(line)

    def _claim(self, line: Line, group: str, worker_id: str) -> Task | None:
        now = self.now()
        try:
            before = self._stored(line.task_id, now)
        except NotFoundError:
            self.table.drop(line)
            return None
        after = tasks.settle(before, now)
        waits = after.last.state is tasks.RunState.PENDING
        if waits:
            after = tasks.claim(after, group, worker_id, now=now, timeout=self.claim_timeout)
        try:
            self._replace(before, after)
        except ConflictError:
            return None
        return after if waits else None

    def _change(self, task_id: str, change: Callable[[Task, datetime], Task]) -> Task:
        for _ in range(ATTEMPTS):
            now = self.now()
            before = self._stored(task_id, now)
            after = change(tasks.settle(before, now), now)
            try:
                self._replace(before, after)
            except ConflictError:
                continue
            return after
        raise QueueUnavailableError(f"task {task_id} is changed too often at once")

    def _replace(self, before: Task, after: Task) -> None:
        if after != before:
            self.table.replace(
                records.to_stored(after),
                old_line=records.line_of(before),
                new_line=records.line_of(after),
            )

    def _stored(self, task_id: str, now: datetime) -> Task:
        stored = self.table.read(task_id)
        if stored is None or stored.expires <= now:
            raise NotFoundError(f"task {task_id} does not exist")
        return records.from_stored(stored)
