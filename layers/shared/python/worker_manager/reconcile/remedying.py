"""Doing something about machines: asking for runs of actions, and quarantining.

Everything goes the way that it goes when a person asks for it, in our own name, with the same
locks, limits and records.  What was asked for before is not asked for again.
Where to read next: ``worker_manager.machines.remedies`` (what is to be done),
``worker_manager.actions.ledger``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from worker_manager.actions.entities import Kind, Level, Operation, Run, RunState, Target
from worker_manager.core.errors import ConflictError, InputInvalidError, WorkerManagerError
from worker_manager.core.lifecycle import OURSELVES
from worker_manager.core.moments import FOR_EVER
from worker_manager.machines.remedies import DAY, Cure, Done
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from worker_manager.actions.catalogue import Catalogue
    from worker_manager.actions.entities import Action
    from worker_manager.actions.ledger import Runs
    from worker_manager.machines.remedies import Remedy
    from worker_manager.registry.backends.protocol import QueueBackend
    from worker_manager.registry.quarantines import Quarantines
    from worker_manager.registry.registry import Registry

PAGE = 200
"""Runs that are read at once."""
REBOOT = "reboot"
"""The action that reboots a machine, whoever has it: for a machine in a rack, its agent."""
_VAIN = frozenset({RunState.FAILED, RunState.TIMED_OUT})


@dataclass(frozen=True, slots=True)
class Cures:
    """What may be done, and how what was done went."""

    registry: Registry
    runs: Runs
    catalogue: Catalogue
    quarantines: Quarantines
    backend: QueueBackend

    def lately(self, queue_id: str, now: datetime) -> list[Done]:
        """Reboots and ends of a pool's workers that anybody asked for within a day."""
        return [done for run in self._runs(queue_id, now - DAY) if (done := _done(run)) is not None]

    def apply(self, remedy: Remedy, now: datetime) -> bool:
        """Whether a remedy is under way now; what cannot be done is logged, and left be."""
        try:
            if remedy.cure is Cure.QUARANTINE:
                self._quarantine(remedy, now)
            else:
                self._request(remedy, now)
        except WorkerManagerError as error:
            logger.warning(
                "a remedy cannot be applied",
                cure=remedy.cure,
                pool=remedy.key.pool_id,
                worker=remedy.key.worker_id,
                error=str(error),
            )
            return False
        logger.info(
            "a remedy is applied",
            cure=remedy.cure,
            pool=remedy.key.pool_id,
            worker=remedy.key.worker_id,
            reason=remedy.reason,
        )
        return True

    def _runs(self, queue_id: str, since: datetime) -> Iterator[Run]:
        before: str | None = ""
        while before is not None:
            runs, before = self.runs.of_queue(queue_id, limit=PAGE, before=before)
            for run in runs:
                if run.requested < since:
                    return
                yield run

    def _quarantine(self, remedy: Remedy, now: datetime) -> None:
        """As for anybody; never over what is said."""
        known = self.registry.worker(remedy.key)
        if known is not None and known.is_quarantined(now):
            raise ConflictError("somebody put it into quarantine meanwhile")
        self.quarantines.impose(
            self.backend,
            remedy.key,
            FOR_EVER,
            info=remedy.reason,
            client_id=OURSELVES,
            now=now,
        )

    def _request(self, remedy: Remedy, now: datetime) -> None:
        target = Target.of_worker(remedy.key)
        level = Level.DEPLOYMENT if remedy.cure is Cure.KILL else None
        found = self.catalogue.find(target, remedy.cure.value, level)
        if (why := _refusal(found.action, remedy.cure)) is not None:
            raise InputInvalidError("action", f"{found.action.name!r} {why}")
        self.runs.request(
            Run(
                run_id=remedy.request_id,
                action=found.action,
                level=found.level,
                target=target,
                requested=now,
                requested_by=OURSELVES,
                reason=remedy.reason,
                was_silent=remedy.cure is Cure.REBOOT,
            )
        )


def _refusal(action: Action, cure: Cure) -> str | None:
    """Why nobody but a person may ask for what was declared by a cure's name, if so.

    Whoever declares actions says what they do and which scopes sign them.  A person shows to hold
    all that; we hold everything, and must not lend it to whoever makes a machine look ill.
    """
    if action.kind is Kind.HTTP and action.required_scopes:
        return "requires scopes, which nobody has shown to hold"
    if action.kind is Kind.BUILTIN and action.operation != cure.value:
        return f"does something else: {action.operation}"
    return None


def _done(run: Run) -> Done | None:
    """What a run has done, or does, to a machine, if it is one of these two things."""
    if run.target.key is None:
        return None
    if run.is_reboot or run.action.name == REBOOT:
        cure = Cure.REBOOT
    elif run.action.operation == Operation.KILL:
        cure = Cure.KILL
    else:
        return None
    # One that nobody took up says nothing of the machine.
    was_vain = run.state in _VAIN and bool(run.attempts)
    ended = (run.ended or run.requested) if run.state.is_final else None
    return Done(cure, run.target.key, run.requested, ended, was_vain=was_vain)
