"""A Taskcluster queue elsewhere: looked at every few minutes, and told of quarantines at once.

The queue is right about what it saw, and about who is quarantined once it has seen the worker.  One
that it has never seen cannot be quarantined there; it is as soon as the queue has.  Nothing is
written for a worker of which nothing is new.  Read next: ``looks``, which says what is.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import TYPE_CHECKING

from worker_manager.core.errors import InputInvalidError, QueueUnavailableError
from worker_manager.registry.backends.looks import Look, ended, forgotten
from worker_manager.taskcluster.observed_queue import Forgotten, RunEnd
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from worker_manager.core.model import WorkerKey
    from worker_manager.registry.backends.looks import Run
    from worker_manager.registry.entities import RegistryWorker
    from worker_manager.registry.observations import Observation
    from worker_manager.registry.quarantines import Quarantines
    from worker_manager.registry.registry import Registry
    from worker_manager.taskcluster.observed_queue import ObservedQueue

SIDE_BY_SIDE = 8
"""Task queues that are looked at at once."""
ENDS_ASKED = 20
"""Runs of one task queue of whose end the queue is asked in one look."""
ROTATION_SECONDS = 300
"""How often another task queue comes first: a lack of time is shared by all."""
ITSELF = "task-queue"
"""Who changed a quarantine that was changed there."""


class RemoteBackend:
    """A Taskcluster queue, in the name of our own client."""

    def __init__(
        self,
        registry: Registry,
        quarantines: Quarantines,
        queue: ObservedQueue,
        now: Callable[[], datetime],
    ) -> None:
        self._registry = registry
        self._quarantines = quarantines
        self._queue = queue
        self._now = now

    def refresh(self, is_late: Callable[[], bool]) -> Mapping[str, int]:
        """As of ``QueueBackend``; a task queue that does not answer stops no other.

        First all task queues are looked at; how runs ended is asked with the time that is left.
        Counts: task queues that were looked at (``queues``), that did not answer (``failed``) or
        were not got to (``left``), their ``workers``, what was ``observed`` of them, and runs of
        which it is not known how they ended, though nobody holds them (``untold``).
        """
        names = sorted(self._queue.task_queues())
        first = self._turn() % max(1, len(names))
        counted = ("queues", "failed", "left", "workers", "observed", "untold")
        total = Counter(dict.fromkeys(counted, 0))
        over: dict[str, list[Run]] = {}

        def look(queue_id: str) -> Counter[str]:
            if is_late():
                return Counter(left=1)
            seen = self._look(queue_id)
            noted = self._note(seen)
            over[queue_id] = seen.over()
            return noted

        def ends(queue_id: str) -> Counter[str]:
            return self._note_ends(queue_id, over[queue_id], is_late)

        with ThreadPoolExecutor(SIDE_BY_SIDE) as threads:
            for found in threads.map(_apart(look), [*names[first:], *names[:first]]):
                total.update(found)
            for found in threads.map(_apart(ends), list(over)):
                total.update(found)
        return dict(total)

    def quarantine(self, key: WorkerKey, until: datetime, *, info: str) -> None:
        """Told at once; of a worker that the queue has never seen, when it has."""
        self._queue.quarantine(key.pool_id, key.group, key.worker_id, until, info=info)

    def outcome(self, key: WorkerKey, task_id: str, run_id: int) -> Observation | None:
        """The queue is asked for the task's status."""
        run, end = (key, task_id, run_id), self._queue.run_end(task_id, run_id)
        match end:
            case None:
                return None
            case Forgotten():
                return forgotten(run, self._now())
            case RunEnd():
                return ended(run, end)

    def close(self, queue_id: str, until: datetime) -> None:
        """It has no such thing."""
        raise InputInvalidError("taskQueueId", f"{queue_id} is not a queue of ours")

    def _turn(self) -> int:
        return int(self._now().timestamp() // ROTATION_SECONDS)

    def _look(self, queue_id: str) -> Look:
        # Here first: a quarantine that is written meanwhile is then newer than what we know of it,
        # and is not taken for one that was lifted there.
        known = dict(self._known(queue_id))
        workers, claims = self._queue.workers(queue_id), self._queue.claims(queue_id)
        return Look(queue_id, known, workers, claims)

    def _note(self, look: Look) -> Counter[str]:
        # Before it is noted that they called: a quarantine that was not told is told the next time.
        for seen in look.workers:
            key = look.key_of(seen)
            self._agree(key, seen.activity.quarantine_until, look.known.get(key))
        news = list(look.news(interval=self._registry.interval))
        self._registry.observe(news)
        return Counter(queues=1, workers=len(look.workers), observed=len(news))

    def _note_ends(
        self, queue_id: str, over: Sequence[Run], is_late: Callable[[], bool]
    ) -> Counter[str]:
        """Note how runs ended that nobody holds any more, in another order each time.

        So a lack of time, or one of which the queue does not tell, keeps none back for long.
        """
        chance = Random(f"{queue_id}@{self._turn()}")
        ends: list[Observation] = []
        for run in chance.sample(over, min(len(over), ENDS_ASKED)):
            if is_late():
                break
            try:
                end = self.outcome(*run)
            except QueueUnavailableError as error:
                logger.warning("the queue does not tell how a run ended", error=str(error))
                break
            if end is not None:
                ends.append(end)
        self._registry.observe(ends)
        return Counter(observed=len(ends), untold=len(over) - len(ends))

    def _known(self, queue_id: str) -> Iterator[tuple[WorkerKey, RegistryWorker]]:
        return ((worker.key, worker) for worker in self._registry.all_workers(queue_id))

    def _agree(self, key: WorkerKey, there: datetime | None, known: RegistryWorker | None) -> None:
        """Let both sides say the same of a quarantine."""
        now = self._now()
        here = known.quarantine_until if known and known.is_quarantined(now) else None
        there = there if there is not None and there > now else None
        if here == there:
            return
        if known is not None and known.first_claim is None and here is not None:
            self.quarantine(key, here, info=known.quarantine_info)
            return
        current = self._registry.worker(key)
        before = known.quarantine_until if known else None
        if current is not None and known is not None and current.quarantine_until != before:
            return  # somebody changed it since we looked
        self._quarantines.change(
            key, there or now, info="changed at the task queue", client_id=ITSELF, now=now
        )


def _apart(ask: Callable[[str], Counter[str]]) -> Callable[[str], Counter[str]]:
    """``ask`` of a task queue, so that no other suffers from what goes wrong with it."""

    def asked(queue_id: str) -> Counter[str]:
        try:
            return ask(queue_id)
        except QueueUnavailableError as error:
            logger.warning("a task queue was not observed", pool=queue_id, error=str(error))
        except Exception:
            logger.exception("a task queue could not be observed", pool=queue_id)
        return Counter(failed=1)

    return asked
