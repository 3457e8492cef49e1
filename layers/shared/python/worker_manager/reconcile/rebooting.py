"""Rebooting machines as runs of actions ask for, none of them twice for one asking.

An attempt is written down before the cloud is asked, by whoever took the run up.  One that the
cloud did not take is tried again later; one of which nobody knows whether it took it is not, and
the run fails saying so.  Between an attempt and what follows, a delayed message keeps the run:
a cloud answers before the machine is down, and who is heard of until then is not yet back.
Before that, the worker's row is marked: one that forgets its credentials when it boots may
register again for a while.  The mark is taken back where surely nothing was done, else it goes with
that registration, or lapses.
A message that comes twice finds the run taken; one that is lost, its lease over: ``act`` sends the
run on again, and whoever takes it up goes by what is written.
Where to read next: ``worker_manager.actions.course``; ``act``, which sends the messages;
``worker_manager.api.registration``, which honours the mark.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from math import ceil
from typing import TYPE_CHECKING

from worker_manager.actions.course import LEASE, Beginning, Ending
from worker_manager.actions.entities import Lease, Operation, Result, RunState
from worker_manager.core.errors import (
    CloudError,
    CloudUnavailableError,
    ConflictError,
    NotFoundError,
    NotReachedError,
    ThrottledError,
)
from worker_manager.core.lifecycle import OURSELVES
from worker_manager.core.model import State
from worker_manager.core.moments import whole_milliseconds
from worker_manager.providers.protocol import Rebooted, Reboots
from worker_manager.queues import Message
from worker_manager.reconcile.following import SOON, UNANSWERED
from worker_manager.telemetry import logger

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from worker_manager.actions.entities import Attempt, Run
    from worker_manager.core.messages import Reboot
    from worker_manager.core.model import Worker, WorkerKey
    from worker_manager.reconcile.deadline import Deadline
    from worker_manager.reconcile.deps import Deps, Ledger

HELD = LEASE - timedelta(seconds=15)
"""Longest that a message waits before the lease of its run is renewed."""
ATTEMPTS = 5
"""To mark a row that others are writing."""
IN_DOUBT = "it may have been rebooted"


@dataclass(frozen=True, slots=True)
class _Begun:
    """A run whose attempt is written down, to be made once."""

    message: Reboot
    worker: Worker
    number: int


def reboot(messages: Iterable[Reboot], deps: Deps, deadline: Deadline) -> frozenset[Reboot]:
    """Go on with these runs, all machines by one call; returns messages that should come again."""
    asked = list(dict.fromkeys(messages))
    if not asked:
        return frozenset()
    if not deadline.allows(2 * deps.call_limit):
        deps.senders["advance"].send(_later(message, SOON) for message in asked)
        return frozenset()
    failed: set[Reboot] = set()
    begun: list[_Begun] = []
    for message in asked:
        try:
            one = _begin(message, deps)
        except (ConflictError, NotFoundError) as error:
            logger.info("a reboot is not ours to do now", run=message.run_id, why=str(error))
        except Exception:
            logger.exception("a reboot was not begun, it comes again", run=message.run_id)
            failed.add(message)
        else:
            begun += [one] if one is not None else []
    _boot(begun, deps)
    return frozenset(failed)


def _begin(message: Reboot, deps: Deps) -> _Begun | None:
    """Take the run up and write down the attempt that is to be made; ``None`` if none is."""
    ledger = _ledger(deps)
    message, run = _held(message, deps, ledger)
    now = deps.clock()
    if message.not_before is not None and now < message.not_before:
        deps.senders["advance"].send([_later(message, message.not_before - now)])
        return None
    if run.open_attempt is not None:
        return None  # Whoever made it is at it, or was gone: its lease tells.
    if (over := _over(run.attempts)) is not None:
        _resolve(message, *over, deps)
        return None
    worker = _marked(message.key, deps)
    if isinstance(worker, str):
        _resolve(message, RunState.FAILED, worker, deps)
        return None
    number = len(run.attempts) + 1
    beginning = Beginning(number, Operation.REBOOT)
    ledger.runs.beat(run.run_id, str(message.lease_id), begin=beginning, now=now)
    return _Begun(message, worker, number)


def _held(message: Reboot, deps: Deps, ledger: Ledger) -> tuple[Reboot, Run]:
    """The run, for nobody but us for a while; raises ``ConflictError`` if it is not to be had."""
    now = deps.clock()
    if message.lease_id is not None:
        return message, ledger.runs.beat(message.run_id, message.lease_id, now=now)
    lease = Lease(ledger.new_lease_id(), OURSELVES, now + LEASE)
    run = ledger.runs.take(message.run_id, lease, now=now)
    return replace(message, lease_id=lease.lease_id), run


def _over(attempts: Sequence[Attempt]) -> tuple[RunState, str] | None:
    """What the attempts came to; ``None`` if another one is to be made.

    One that failed for good ends its run in the same write, so an error is one to get over.
    """
    match attempts[-1].result if attempts else None:
        case Result.OK:
            return RunState.SUCCEEDED, "its cloud rebooted it"
        case Result.UNKNOWN:
            return RunState.FAILED, f"nobody told how it went; {IN_DOUBT}"
    return None


def _marked(key: WorkerKey, deps: Deps) -> Worker | str:
    """The worker, which may register again from now on; or why it is not to be rebooted."""
    for _ in range(ATTEMPTS):
        worker = deps.stores.workers.get(key)
        if worker is None:
            return "the worker is unknown"
        if (why := _refusal(worker, deps)) is not None:
            return why
        now = whole_milliseconds(deps.clock())
        if (marked := deps.stores.workers.change(worker, rebooted=now)) is not None:
            return marked
    raise ConflictError("others are writing the worker's row")


def _refusal(worker: Worker, deps: Deps) -> str | None:
    """Why this provider does not reboot a worker now, if so."""
    if worker.state not in (State.REQUESTED, State.RUNNING):
        return f"the worker is {worker.state}"
    if worker.provider_id != deps.provider_id or not isinstance(deps.provider, Reboots):
        return f"{deps.provider_id} cannot reboot it"
    return None


def _boot(begun: Sequence[_Begun], deps: Deps) -> None:
    """Ask the cloud for what was begun, and write down what it said."""
    if not begun or not isinstance(deps.provider, Reboots):
        return
    try:
        told = deps.provider.reboot([one.worker for one in begun])
    except CloudError as error:
        told = Rebooted(failed={one.worker.key: error for one in begun})
    for one in begun:
        try:
            _end(one, told.failed.get(one.worker.key), deps)
        except ConflictError as error:
            logger.info("a reboot ended otherwise", run=one.message.run_id, why=str(error))
        except Exception:
            logger.exception("how a reboot went was not told", run=one.message.run_id)


def _end(one: _Begun, error: CloudError | None, deps: Deps) -> None:
    message = one.message
    if error is None:
        _ended(one, Result.OK, "", deps)
        _wait(message, deps.timing.reboot, deps)
    elif (wait := _patience(error)) is not None:
        _ended(one, Result.ERROR, str(error), deps)
        _wait(message, wait, deps)
    else:
        logger.warning("a reboot failed", worker=message.key.worker_id, code=error.code)
        why = str(error)
        if _is_in_doubt(error):
            why = f"{error}; {IN_DOUBT}"
            _ended(one, Result.UNKNOWN, str(error), deps)
        _resolve(message, RunState.FAILED, why, deps)
    if error is not None and not _is_in_doubt(error):
        deps.stores.workers.change(one.worker, rebooted=None)  # Else the mark lapses.


def _is_in_doubt(error: CloudError) -> bool:
    """Whether the machine may be rebooting all the same."""
    is_silence = isinstance(error, CloudUnavailableError | ThrottledError)
    return is_silence and _patience(error) is None


def _patience(error: CloudError) -> timedelta | None:
    """After how long a reboot is asked for again, if it surely was not done and may yet be."""
    match error:
        case ThrottledError(is_doubtful=False):
            return error.retry_after
        case NotReachedError():
            return UNANSWERED
    return None


def _ended(one: _Begun, result: Result, words: str, deps: Deps) -> None:
    _ledger(deps).runs.beat(
        one.message.run_id,
        str(one.message.lease_id),
        end=Ending(one.number, result, words),
        now=deps.clock(),
    )


def _resolve(message: Reboot, state: RunState, words: str, deps: Deps) -> None:
    _ledger(deps).runs.resolve(
        message.run_id, str(message.lease_id), state=state, message=words, now=deps.clock()
    )


def _wait(message: Reboot, wait: timedelta, deps: Deps) -> None:
    """Go on with a run after a while, and keep it until then."""
    waiting = replace(message, not_before=deps.clock() + wait)
    deps.senders["advance"].send([_later(waiting, wait)])


def _later(message: Reboot, wait: timedelta) -> Message:
    return Message(message.to_json(), delay=max(1, ceil(min(wait, HELD).total_seconds())))


def _ledger(deps: Deps) -> Ledger:
    if deps.ledger is None:
        raise NotFoundError("this function knows of no runs")
    return deps.ledger
