"""Doing what no agent does: our own actions, and requests to other services.

``act`` takes messages, each naming a run; ``sweep_runs`` looks each minute through all runs that
are not over, writes down what time did to them, and sends on those whose message was lost or whose
taker went silent.  A message that comes twice finds the run taken, or over.
What is ours is harmless when it is done again; a request to another service is made at most once,
and so is a reboot, which its provider's ``advance`` does.
Read next: ``killing``, ``worker_manager.actions.course``.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from worker_manager.actions.course import LEASE, Ending
from worker_manager.actions.entities import (
    Kind,
    Lease,
    Operation,
    Result,
    Run,
    RunState,
)
from worker_manager.core.errors import ConflictError, InputInvalidError, NotFoundError
from worker_manager.core.lifecycle import OURSELVES
from worker_manager.core.messages import Act, Reboot
from worker_manager.core.model import State
from worker_manager.core.moments import FOR_EVER
from worker_manager.metrics import meter
from worker_manager.queues import Message
from worker_manager.reconcile.killing import kill, quarantine
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from worker_manager.actions.calls import HttpCaller
    from worker_manager.actions.ledger import Runs
    from worker_manager.core.model import WorkerKey
    from worker_manager.outbox import Outbox
    from worker_manager.queues import Sender
    from worker_manager.reconcile.deadline import Deadline
    from worker_manager.registry.backends.protocol import QueueBackend
    from worker_manager.registry.quarantines import Quarantines
    from worker_manager.store.audit import AuditStore
    from worker_manager.store.stores import Stores

LOST = timedelta(seconds=30)
"""After which a run whose message nobody took is sent on again."""
PAGE = 100
"""Open runs that are read with one request."""
ONE = timedelta(seconds=5)
"""What a look at a page of runs may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActDeps:
    """What actions are done with.

    ``senders`` are the queues ``advance`` of providers by id, of those that have machines;
    ``act`` is our own queue.
    """

    runs: Runs
    stores: Stores
    audit: AuditStore
    outbox: Outbox
    quarantines: Quarantines
    backend: QueueBackend
    caller: HttpCaller
    senders: Mapping[str, Sender]
    act: Sender
    clock: Callable[[], datetime]
    new_lease_id: Callable[[], str]


def act(messages: Mapping[str, Act], deps: ActDeps) -> list[str]:
    """Do what these runs ask for; the names of messages that should come again."""
    failed = []
    for name, message in messages.items():
        try:
            _act(message.run_id, deps)
        except NotFoundError:
            logger.warning("a message names no run", run=message.run_id)
        except Exception:
            meter.crashed()
            logger.exception("a run failed, it comes again", run=message.run_id)
            failed.append(name)
    return failed


def sweep_runs(deps: ActDeps, deadline: Deadline) -> dict[str, int]:
    """Look through all open runs, as far as time allows; how many, and what was done."""
    report = {"open": 0, "over": 0, "again": 0}
    after: str | None = ""
    while after is not None and deadline.allows(ONE):
        runs, after = deps.runs.open(limit=PAGE, after=after)
        messages = []
        for run in runs:
            settled = _settled(run, deps)
            report["over" if settled.state.is_final else "open"] += 1
            if _waits_for_us(settled, deps.clock()):
                messages.append(Message(Act(run.run_id).to_json()))
        report["again"] += _send_on(messages, deps)
    logger.info("swept runs", report=report)
    return report


def _send_on(messages: list[Message], deps: ActDeps) -> int:
    """Send runs on, how many; what the queue does not take is found again in a minute."""
    try:
        deps.act.send(messages)
    except Exception:
        meter.crashed()
        logger.exception("runs were not sent on", count=len(messages))
        return 0
    return len(messages)


def _settled(run: Run, deps: ActDeps) -> Run:
    """A run after what time did to it; one that fails is looked at again in a minute."""
    try:
        return deps.runs.settle(run.run_id, now=deps.clock(), known=run)
    except Exception:
        meter.crashed()
        logger.exception("a run was not settled", run=run.run_id)
        return run


def _waits_for_us(run: Run, now: datetime) -> bool:
    """Whether it is for us to do, and nobody is at it."""
    if run.state.is_final or run.verified is not None or run.action.kind is Kind.AGENT:
        return False
    if run.lease is not None:
        return run.lease.until <= now
    return run.requested + LOST <= now


def _act(run_id: str, deps: ActDeps) -> None:
    run = deps.runs.settle(run_id, now=deps.clock())
    if run.state.is_final or run.verified is not None or run.action.kind is Kind.AGENT:
        return
    if run.action.kind is Kind.BUILTIN and run.action.operation == Operation.REBOOT:
        if run.target.key is not None and _handed_on(run, run.target.key, deps):
            return
        do = _not_rebooted
    else:
        do = _call if run.action.kind is Kind.HTTP else _operate
    lease = Lease(deps.new_lease_id(), OURSELVES, deps.clock() + LEASE)
    try:
        taken = deps.runs.take(run_id, lease, now=deps.clock())
        do(taken, lease.lease_id, deps)
    except ConflictError as error:
        logger.info("a run is not ours to do now", run=run_id, why=str(error))


def _handed_on(run: Run, key: WorkerKey, deps: ActDeps) -> bool:
    """Let the provider of the worker reboot it; false if it has none that can."""
    worker = deps.stores.workers.get(key)
    if worker is None or worker.state not in (State.REQUESTED, State.RUNNING):
        return False
    sender = deps.senders.get(worker.provider_id)
    if sender is None:
        return False
    sender.send([Message(Reboot(key, run.run_id).to_json())])
    return True


def _not_rebooted(run: Run, lease_id: str, deps: ActDeps) -> None:
    message = "it has no machine of a cloud that could be rebooted"
    _resolve(run, lease_id, RunState.FAILED, message, deps)


def _operate(run: Run, lease_id: str, deps: ActDeps) -> None:
    """One of our own operations, which may be done again after all."""
    number = len(run.attempts) + 1
    method = str(run.action.operation)
    deps.runs.begin(run.run_id, lease_id, number=number, method=method, now=deps.clock())
    try:
        message = _do(run, deps, now=deps.clock())
    except InputInvalidError as error:
        _resolve(run, lease_id, RunState.FAILED, str(error), deps)
        return
    _resolve(run, lease_id, RunState.SUCCEEDED, message, deps)


def _do(run: Run, deps: ActDeps, *, now: datetime) -> str:
    key = run.target.key
    if key is None:
        raise InputInvalidError("target", "is no worker")
    match run.action.operation:
        case Operation.KILL:
            return kill(run, key, deps, now=now)
        case Operation.QUARANTINE:
            quarantine(run, key, deps, until=FOR_EVER, now=now)
            return "it gets no more tasks"
        case Operation.RELEASE:
            quarantine(run, key, deps, until=now, now=now)
            return "it gets tasks again"
    raise InputInvalidError("operation", f"{run.action.operation!r} is nothing we do")


def _call(run: Run, lease_id: str, deps: ActDeps) -> None:
    """A request to another service, once: one that was begun may have been done."""
    if run.attempts:
        message = "whoever called was gone before it told; it may have been done"
        _resolve(run, lease_id, RunState.FAILED, message, deps)
        return
    method = str(run.action.method).lower()
    deps.runs.begin(run.run_id, lease_id, number=1, method=method, now=deps.clock())
    result, message = deps.caller.call(run)
    deps.runs.end(run.run_id, lease_id, Ending(1, result, message), now=deps.clock())
    state = RunState.SUCCEEDED if result is Result.OK else RunState.FAILED
    _resolve(run, lease_id, state, message, deps)


def _resolve(run: Run, lease_id: str, state: RunState, message: str, deps: ActDeps) -> None:
    deps.runs.resolve(run.run_id, lease_id, state=state, message=message, now=deps.clock())
