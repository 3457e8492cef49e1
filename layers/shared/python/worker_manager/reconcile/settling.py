"""Writing verdicts down, then acting on those whose write won.

A failure is recorded together with the transition that it explains, so that no crash can hide it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, assert_never

from worker_manager.core.errors import CloudError, NotAuthorizedError
from worker_manager.core.events import (
    WORKER_REMOVED,
    WORKER_STOPPED,
    WORKER_STOPPING,
    with_event,
)
from worker_manager.core.ids import derived_slugid
from worker_manager.core.lifecycle import Gone, Keep, Launched, Note, Stop, StopAgain, Verdict
from worker_manager.core.model import Json, Location, PoolError, State, Worker
from worker_manager.metrics import meter
from worker_manager.providers.protocol import Names, Stepwise
from worker_manager.reconcile.provider_status import provider_failed, provider_recovered
from worker_manager.store.provider_status import Activity
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from worker_manager.reconcile.deps import Deps


@dataclass(slots=True)
class Settling:
    """Verdicts of one scan, or of one look at creations, on their way into the table.

    ``changed`` are rows as written, ``to_terminate`` workers whose machine is to go, ``errors``
    what was recorded with them.
    """

    deps: Deps
    now: datetime
    changed: list[Worker] = field(default_factory=list)
    to_terminate: list[Worker] = field(default_factory=list)
    errors: list[PoolError] = field(default_factory=list)

    def write(self, worker: Worker, verdict: Verdict, **also: Any) -> bool:
        """Write one verdict, if nobody changed the row since it was read; whether it moved on.

        ``also`` are changes that go with the news that a machine runs.
        """
        before = len(self.changed)
        match verdict:
            case Keep():
                pass
            case Note():
                self._note(worker, verdict)
            case Launched():
                self.deps.stores.workers.change(
                    worker, launched=self.now, deadline=verdict.deadline, **also
                )
            case Stop():
                self._stop(worker, verdict)
            case Gone():
                self._gone(worker, verdict)
            case StopAgain(stuck=False):
                self.to_terminate.append(worker)
            case StopAgain():
                self._stuck(worker)
            case _:
                assert_never(verdict)
        return len(self.changed) > before

    def tell(self) -> None:
        """Publish what was written."""
        self.deps.outbox.send_workers(self.changed)
        for error in self.errors:
            self.deps.outbox.tell(error, self.deps.provider_id)

    def _stop(self, worker: Worker, verdict: Stop) -> None:
        after = self._transition(
            worker,
            (WORKER_REMOVED, WORKER_STOPPING),
            verdict,
            state=State.STOPPING,
            stopping_since=self.now,
        )
        if after is not None:
            self.to_terminate.append(after)

    def _gone(self, worker: Worker, verdict: Gone) -> None:
        after = self._transition(
            worker, (WORKER_STOPPED,), verdict, state=State.STOPPED, quarantine_until=None
        )
        if after is not None:
            meter.stopped(after, self.now)

    def _transition(
        self, worker: Worker, names: tuple[str, ...], verdict: Stop | Gone, **changes: Any
    ) -> Worker | None:
        """Change state, with the events that tell of it and the failure behind it, in one write."""
        reason, failure = verdict.reason, verdict.failure
        if verdict.by is not None:
            changes["stopped_by"] = verdict.by
        changes = with_event(
            worker, *names, at=self.now, reason=reason, stop_reason=reason, **changes
        )
        if failure is None or worker.launch_config_id is None:
            written = self.deps.stores.workers.change(worker, **changes)
        else:
            written = self._fail(worker, worker.launch_config_id, verdict, changes)
        if written is not None:
            self.changed.append(written)
            logger.info(
                names[0],
                pool=worker.key.pool_id,
                worker=worker.key.worker_id,
                group=worker.key.group,
                reason=reason,
            )
        return written

    def _fail(
        self, worker: Worker, launch_config_id: str, verdict: Stop | Gone, changes: Json
    ) -> Worker | None:
        """Write ``changes`` together with the error; then count it against the launch config."""
        failure = verdict.failure or ""
        title = "Operation Error" if verdict.code else f"Worker {failure.replace('-', ' ')}"
        error = self._error(worker, failure, title, changes["stop_reason"], code=verdict.code)
        written = self._record(worker, error, changes)
        if written is not None:
            self.deps.stores.health.add(
                worker.key.pool_id,
                launch_config_id,
                self.now,
                failed=failure,
                reason=changes["stop_reason"],
            )
        return written

    def _record(self, worker: Worker, error: PoolError, changes: Json) -> Worker | None:
        written = self.deps.outbox.change_and_record(
            worker, error, self.deps.provider_id, **changes
        )
        if written is not None:
            self.errors.append(error)
            meter.failed(worker.provider_id, error.kind)
        return written

    def _note(self, worker: Worker, verdict: Note) -> None:
        after = self.deps.stores.workers.change(
            worker,
            first_claim=verdict.first_claim,
            quarantine_until=verdict.quarantine_until,
        )
        first = worker.first_claim is None and verdict.first_claim is not None
        if after is not None and first and worker.launch_config_id:
            self.deps.stores.health.add(
                worker.key.pool_id, worker.launch_config_id, self.now, claimed=1
            )

    def _stuck(self, worker: Worker) -> None:
        reason = f"told to stop at {worker.stopping_since}, and still there"
        error = self._error(worker, "stuck-stopping", "Machine does not go away", reason)
        after = self._record(worker, error, {"modified": self.now})
        if after is None:
            return
        self.to_terminate.append(after)
        logger.error(
            "a machine does not go away", pool=worker.key.pool_id, worker=worker.key.worker_id
        )

    def _error(
        self, worker: Worker, kind: str, title: str, description: str, *, code: str | None = None
    ) -> PoolError:
        """An error of a worker, once for each version of its row."""
        return PoolError(
            error_id=derived_slugid("worker", worker.key, kind, worker.version),
            pool_id=worker.key.pool_id,
            reported=self.now,
            kind=kind,
            title=title,
            description=description,
            extra={
                "code": code or kind,
                "workerGroup": worker.key.group,
                "workerId": worker.key.worker_id,
            },
            launch_config_id=worker.launch_config_id,
        )


def whole(workers: Sequence[Worker], deps: Deps) -> Sequence[Worker]:
    """The workers as a provider needs them that keeps facts of its own in their rows."""
    if not isinstance(deps.provider, Names | Stepwise):
        return workers
    rows = deps.stores.workers.get_many(worker.key for worker in workers)
    return [rows.get(worker.key, worker) for worker in workers]


def terminate(location: Location, workers: Sequence[Worker], deps: Deps) -> None:
    """Delete machines; what fails is tried again by the next scan, whose rows still say so."""
    if not workers:
        return
    try:
        result = deps.provider.terminate(whole(workers, deps))
    except CloudError as error:
        logger.warning("a delete failed", place=location, code=error.code, count=len(workers))
        if isinstance(error, NotAuthorizedError):
            provider_failed(deps, Activity.TERMINATE, error)
        return
    for key, failure in result.failed.items():
        logger.warning("a delete failed", place=location, code=failure.code, worker=key.worker_id)
    if result.done:
        provider_recovered(deps, Activity.TERMINATE)
        deps.stores.places.told_to_stop(deps.provider_id, location, len(result.done))
