"""A queue in memory with settable facts and failures; it keeps the real client's contract.

``tests/taskcluster/test_queue_client.py`` runs the same contract over this and the real one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from worker_manager.core.activity import Activity, Downtime, QueueCounts, SeenWorker, WorkerHistory
from worker_manager.core.errors import QueueUnavailableError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from worker_manager.core.model import Json


@dataclass
class FakeQueue:
    """Set what it should say, then give it to whatever asks a ``QueueClient``.

    ``now`` decides which quarantines are still in force; ``None`` shows them all.
    """

    now: datetime | None = None
    calls: Counter[str] = field(default_factory=Counter)
    """How often each method was called, failing calls included."""
    _counts: dict[str, QueueCounts] = field(default_factory=dict)
    _workers: defaultdict[str, dict[tuple[str, str], Activity]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    _busy: dict[str, frozenset[tuple[str, str]]] = field(default_factory=dict)
    _tasks: dict[tuple[str, str, str], tuple[Json, ...]] = field(default_factory=dict)
    _quarantines: dict[tuple[str, str, str], tuple[Json, ...]] = field(default_factory=dict)
    page: int = 1000
    """Workers in a page."""
    is_ordered: bool = True
    """Else pages are in the order in which workers were set, and tokens are numbers."""
    _failing: set[str] = field(default_factory=set)
    _failures_left: int = 0

    def set_counts(
        self,
        pool_id: str,
        *,
        pending: int = 0,
        claimed: int = 0,
        downtime: Downtime | None = None,
    ) -> None:
        """What ``counts`` says from now on; pools never set have nothing to do."""
        self._counts[pool_id] = QueueCounts(pending, claimed, downtime)

    def set_activity(
        self,
        pool_id: str,
        group: str,
        worker_id: str,
        *,
        first_claim: datetime | None = None,
        last_active: datetime | None = None,
        quarantine_until: datetime | None = None,
    ) -> None:
        """What ``activity`` says of one worker from now on."""
        self._workers[pool_id][group, worker_id] = Activity(
            first_claim, last_active, quarantine_until
        )

    def set_busy(self, pool_id: str, *workers: tuple[str, str]) -> None:
        """Which workers, by group and id, ``busy`` says hold a task from now on."""
        self._busy[pool_id] = frozenset(workers)

    def set_history(
        self,
        pool_id: str,
        group: str,
        worker_id: str,
        *,
        tasks: Sequence[Json] = (),
        quarantine_changes: Sequence[Json] = (),
    ) -> None:
        """What a worker claimed, and how its quarantine was changed, oldest first."""
        self._tasks[pool_id, group, worker_id] = tuple(tasks)
        self._quarantines[pool_id, group, worker_id] = tuple(quarantine_changes)

    def forget(self, pool_id: str, group: str, worker_id: str) -> None:
        """As when a day went by without a call of this worker."""
        self._workers[pool_id].pop((group, worker_id), None)

    def fail(self, pool_id: str | None = None, *, times: int | None = None) -> None:
        """Do not answer: for one pool or all, until ``recover``; or for the next calls only."""
        if times is not None:
            self._failures_left = times
        else:
            self._failing.add(pool_id if pool_id is not None else "*")

    def recover(self) -> None:
        """Answer again."""
        self._failing.clear()
        self._failures_left = 0

    def counts(self, pool_id: str) -> QueueCounts:
        """As ``QueueClient.counts``."""
        self._answer("counts", pool_id)
        return self._counts.get(pool_id, QueueCounts(pending=0, claimed=0))

    def activity(self, pool_id: str) -> Mapping[tuple[str, str], Activity]:
        """As ``QueueClient.activity``."""
        self._answer("activity", pool_id)
        return {key: self._visible(known) for key, known in self._workers[pool_id].items()}

    def busy(self, pool_id: str) -> frozenset[tuple[str, str]]:
        """As ``QueueClient.busy``."""
        self._answer("busy", pool_id)
        return self._busy.get(pool_id, frozenset())

    def worker_page(
        self, pool_id: str, token: str | None = None
    ) -> tuple[Sequence[SeenWorker], str | None]:
        """As ``QueueClient.worker_page``."""
        self._answer("worker_page", pool_id)
        names = list(self._workers[pool_id])
        if self.is_ordered:
            group, _, worker_id = (token or "").partition("#")
            names = [name for name in sorted(names) if name > (group, worker_id)]
            start = 0
        else:
            start = int(token or 0)
        shown = names[start : start + self.page]
        is_last = len(names) <= start + self.page
        following = "#".join(shown[-1]) if self.is_ordered and shown else str(start + self.page)
        return [self._seen(pool_id, *name) for name in shown], None if is_last else following

    def worker(self, pool_id: str, group: str, worker_id: str) -> WorkerHistory | None:
        """As ``QueueClient.worker``; it is remembered for a day."""
        self._answer("worker", pool_id)
        known = self._workers[pool_id].get((group, worker_id))
        if known is None:
            return None
        heard = known.last_active or datetime(2026, 1, 1, tzinfo=UTC)
        return WorkerHistory(
            activity=known,
            first_claim=known.first_claim,
            expires=heard + timedelta(days=1),
            recent_tasks=self._tasks.get((pool_id, group, worker_id), ()),
            quarantine_changes=self._quarantines.get((pool_id, group, worker_id), ()),
        )

    def _seen(self, pool_id: str, group: str, worker_id: str) -> SeenWorker:
        known = self._visible(self._workers[pool_id][group, worker_id])
        tasks = self._tasks.get((pool_id, group, worker_id))
        return SeenWorker(group, worker_id, known, tasks[-1] if tasks else None)

    def _answer(self, method: str, pool_id: str) -> None:
        self.calls[method] += 1
        if self._failures_left:
            self._failures_left -= 1
            raise QueueUnavailableError(f"{method} of {pool_id}: told to fail")
        if self._failing & {"*", pool_id}:
            raise QueueUnavailableError(f"{method} of {pool_id}: told to fail")

    def _visible(self, known: Activity) -> Activity:
        until = known.quarantine_until
        if until is not None and self.now is not None and until <= self.now:
            return Activity(known.first_claim, known.last_active)
        return known
