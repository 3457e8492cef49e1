"""The tasks of all queues, over the table: read, decided by ``tasks``, written back.

A change is written under the version that was read, and decided anew when somebody else was
faster.  Claims that ran out are noticed when somebody counts or claims: there is no clock that
ticks by itself.  What a worker took, and how it ended, is written in one with what becomes of its
row in the registry, by whoever does it, and be it in passing.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum, auto
from typing import TYPE_CHECKING
from zlib import crc32

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
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from worker_manager.queue.claimer import Claimer
    from worker_manager.queue.tasks import Resolution, Run, Task
    from worker_manager.store.queue_rows import Line
    from worker_manager.store.queue_table import QueueTable
    from worker_manager.store.transactions import Writes

ATTEMPTS = 8
"""How often one change is decided before giving up on lost races."""
LOOKAHEAD = 20
"""How many more waiting tasks a claimer looks at than it wants, in case others take some."""
SETTLED_AT_ONCE = 100
"""How many overdue claims one call settles at most."""
SETTLED_EVERY = timedelta(seconds=30)
"""How often claimers look for overdue claims of one queue, all in one container together.

Whoever counts tasks looks each time."""
QUEUES_KEPT = 1000
"""Of how many queues is remembered when somebody looked."""
PASSED_AT_ONCE = 10
"""How many waiting tasks that are past their deadline one claimer resolves in passing."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """Every task; ``claim_timeout`` is how long a claim holds unless renewed.

    ``ended`` gives what is to be written beside the end of a run that a worker had.
    """

    table: QueueTable
    clock: Callable[[], datetime]
    claim_timeout: timedelta
    ended: Callable[[Task, Run], Writes | None]
    _settled: dict[str, datetime] = field(default_factory=dict, init=False, repr=False)

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

    def claim_one(self, task_id: str, run_id: int, claimer: Claimer) -> Task | None:
        """Claim just this run, as ``tasks.claim_run``; ``None`` if the claimer is barred."""
        group, worker_id, timeout = claimer.key.group, claimer.key.worker_id, self.claim_timeout
        for _ in range(ATTEMPTS):
            if claimer.is_barred:
                return None
            now = self.now()
            before = self._stored(task_id, now)
            if tasks.settle(before, now) != before:
                # by itself, as the worker that lost a run may be the one that claims the next
                self._change(task_id, _unchanged)
                continue
            after = tasks.claim_run(before, run_id, group, worker_id, now=now, timeout=timeout)
            if after == before:
                return after
            try:
                self._replace(before, after, claimer.along(after, now))
            except ConflictError:
                claimer.lost()
                continue
            claimer.won()
            return after
        raise _too_often(task_id)

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

    def cancel(self, task_id: str) -> Task:
        """End a task that is not resolved yet, as ``tasks.cancel``."""
        return self._change(task_id, tasks.cancel)

    def resolve_claims_of(
        self, queue_id: str, group: str, worker_id: str, *, gone: datetime
    ) -> list[Task]:
        """End what a worker that is ``gone`` since then still claims; tasks that it did end.

        A claim that is resolved, or made anew, meanwhile is left alone.
        """
        ended: list[Task] = []

        def give_up(task: Task, now: datetime) -> Task:
            return tasks.abandon(task, group, worker_id, gone=gone, now=now)

        for line in self.table.held(queue_id, records.holder_of(group, worker_id)):
            try:
                ended.append(self._change(line.task_id, give_up))
            except ConflictError:
                continue
            except NotFoundError:
                self.table.drop(line)
        return ended

    def waiting(self, queue_id: str, *, wanted: int) -> list[Line]:
        """Lines of tasks that wait, best first, some more than are ``wanted``.

        Those past their deadline are passed over, however many, and a few of them resolved.
        """
        now = self.now()
        limit = wanted + LOOKAHEAD
        lines = self.table.lines(queue_id, Listed.PENDING, limit=limit)
        living = [line for line in lines if line.until > now]
        if len(living) == len(lines):
            return living
        for line in [line for line in lines if line.until <= now][:PASSED_AT_ONCE]:
            self._settle(line)
        if len(lines) == limit:
            missing, last = limit - len(living), lines[-1].order
            living += self.table.living(queue_id, now=now, limit=missing, after=last)
        return living

    def claim(self, claimer: Claimer, *, wanted: int) -> list[Task]:
        """Claim the best waiting tasks; after a lost race go on elsewhere in the list.

        Where a claimer goes on depends on its name, lest all run after each other.  When something
        fails half way, those claimed by then are the answer: nobody else would work on them.
        """
        queue_id = claimer.key.pool_id
        self.settle_overdue(queue_id)
        waiting = deque(self.waiting(queue_id, wanted=wanted))
        if waiting:
            claimer.check_type()
        elsewhere = crc32(f"{claimer.key.group}/{claimer.key.worker_id}".encode())
        claimed: list[Task] = []
        while waiting and len(claimed) < wanted and not claimer.is_barred:
            line = waiting.popleft()
            try:
                outcome = self._claim(line, claimer)
            except Exception:
                if not claimed:
                    raise
                logger.exception("not all tasks could be claimed", pool=queue_id)
                return claimed
            match outcome:
                case _Race.OF_THE_WORKER:
                    waiting.appendleft(line)
                case _Race.OF_THE_TASK:
                    waiting.rotate(-(elsewhere % len(waiting)) if waiting else 0)
                case task:
                    claimed.append(task)
        return claimed

    def settle_overdue(self, queue_id: str) -> None:
        """Settle, unless this container did so within ``SETTLED_EVERY``."""
        settled = self._settled.get(queue_id)
        if settled is None or not settled <= self.now() < settled + SETTLED_EVERY:
            self.settle(queue_id)

    def settle(self, queue_id: str) -> bool:
        """Write what time did to claims that ran out; whether that were all of them."""
        now = self.now()
        overdue = self.table.lines(queue_id, Listed.CLAIMED, limit=SETTLED_AT_ONCE, due=now)
        is_settled = [self._settle(line) for line in overdue]
        is_all = all(is_settled) and len(overdue) < SETTLED_AT_ONCE
        if is_all:
            if len(self._settled) >= QUEUES_KEPT:
                self._settled.clear()
            self._settled[queue_id] = now
        return is_all

    def _settle(self, line: Line) -> bool:
        """Write what time did to a task, if races allow.  A line whose task is gone is dropped."""
        try:
            self._change(line.task_id, _unchanged)
        except NotFoundError:
            self.table.drop(line)
        except QueueUnavailableError:
            return False
        return True

    def _claim(self, line: Line, claimer: Claimer) -> Task | _Race:
        now = self.now()
        try:
            before = self._stored(line.task_id, now)
        except NotFoundError:
            self.table.drop(line)
            return _Race.OF_THE_TASK
        if before.last.state is not tasks.RunState.PENDING or before.deadline <= now:
            self._settle(line)
            return _Race.OF_THE_TASK
        group, worker_id = claimer.key.group, claimer.key.worker_id
        after = tasks.claim(before, group, worker_id, now=now, timeout=self.claim_timeout)
        try:
            self._replace(before, after, claimer.along(after, now))
        except ConflictError:
            return _Race.OF_THE_WORKER if claimer.lost() else _Race.OF_THE_TASK
        claimer.won()
        return after

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
        raise _too_often(task_id)

    def _replace(self, before: Task, after: Task, also: Writes | None = None) -> None:
        if after != before:
            self.table.replace(
                records.to_stored(after),
                old_line=records.line_of(before),
                new_line=records.line_of(after),
                also=[part for part in (also, self._end(before, after)) if part is not None],
            )

    def _end(self, before: Task, after: Task) -> Writes | None:
        """What goes along with the end of the run that a worker had before."""
        ran = before.last
        over = after.runs[ran.run_id]
        if ran.state is tasks.RunState.RUNNING and over.state not in tasks.OPEN:
            return self.ended(after, over)
        return None

    def _stored(self, task_id: str, now: datetime) -> Task:
        stored = self.table.read(task_id)
        if stored is None or stored.expires <= now:
            raise NotFoundError(f"task {task_id} does not exist")
        return records.from_stored(stored)


class _Race(Enum):
    """Why a task was not claimed: somebody else was faster at it, or the worker changed."""

    OF_THE_TASK = auto()
    OF_THE_WORKER = auto()


def _unchanged(task: Task, _now: datetime) -> Task:
    """Nothing but what time did to it."""
    return task


def _too_often(task_id: str) -> QueueUnavailableError:
    return QueueUnavailableError(f"task {task_id} is changed too often at once")
