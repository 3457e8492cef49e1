"""Runs of actions as they are told.  Where to read next: ``action_runs``, which finds them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker_manager.api.action_run_schemas import (
    ActionRun,
    RunAction,
    RunAttempt,
    RunLogLine,
    RunTarget,
)
from worker_manager.api.registry_answers import told

if TYPE_CHECKING:
    from worker_manager.actions.entities import Attempt, Run, Target


def run_answer(run: Run) -> ActionRun:
    """A run, with all that was tried and said.

    Whoever has it is told with its lease; only the one that it was given to knows its id.
    """
    lease = run.lease if not run.state.is_final and run.verified is None else None
    return ActionRun(
        run_id=run.run_id,
        action=_action(run),
        declared_at=run.level.value,
        target=target_answer(run.target),
        state=run.state.value,
        requested=run.requested,
        requested_by=run.requested_by,
        reason=run.reason,
        params=dict(run.params),
        attempts=[_attempt(attempt) for attempt in run.attempts],
        message=run.message,
        log=[RunLogLine(at=line.at, text=line.text) for line in run.log],
        **told(
            bulk_id=run.bulk_id,
            holder=run.lease.holder if run.lease else None,
            taken=run.taken,
            lease_until=lease.until if lease else None,
            verified=run.verified,
            ended=run.ended,
        ),
    )


def target_answer(target: Target) -> RunTarget:
    """What something is done to."""
    return RunTarget(
        provisioner_id=target.provisioner_id,
        **told(
            worker_type=target.worker_type,
            task_queue_id=target.queue_id,
            worker_group=target.worker_group,
            worker_id=target.worker_id,
        ),
    )


def _action(run: Run) -> RunAction:
    action = run.action
    return RunAction(
        name=action.name,
        title=action.title,
        kind=action.kind.value,
        context=action.context.value,
        timeout_seconds=int(action.timeout.total_seconds()),
        **told(
            url=action.url,
            method=action.method,
            operation=str(action.operation) if action.operation else None,
            agent_id=action.agent_id,
            params=dict(action.params) or None,
        ),
    )


def _attempt(attempt: Attempt) -> RunAttempt:
    return RunAttempt(
        number=attempt.number,
        method=attempt.method,
        started=attempt.started,
        message=attempt.message,
        **told(ended=attempt.ended, result=attempt.result and attempt.result.value),
    )
