"""How a run goes on: taken up, tried, told of, ended, and what time and sightings do to it.

Pure: a run goes in, the next one comes out, and what changes nothing gives back the same one.
What may not be raises ``ConflictError``.  An attempt is written before it is made, so one whose
end nobody told may have been made: it becomes ``unknown``, and is never begun again.
Read next: ``ledger``, which writes all of it down.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from worker_manager.actions.entities import (
    Attempt,
    Lease,
    LogLine,
    Result,
    RunState,
)
from worker_manager.core.errors import ConflictError

if TYPE_CHECKING:
    from datetime import datetime

    from worker_manager.actions.entities import Run

LEASE = timedelta(seconds=60)
"""How long whoever took a run has it for itself without saying anything."""
UNTAKEN = timedelta(hours=1)
"""How long a run waits for somebody to take it up."""
COMES_BACK = timedelta(minutes=30)
"""How long a worker may take, once its machine is up, until it is seen again."""
MOST_ATTEMPTS = 20
"""Of one run, however many have it in turn."""
LONGEST_LOG = 32 * 1024
"""Bytes of all log lines of a run; the oldest are dropped."""
LINE_BYTES = 32
"""What a line takes besides its text."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """An attempt that is about to be made."""

    number: int
    method: str


@dataclass(frozen=True, slots=True)
class Ending:
    """How an attempt ended, in whose words."""

    number: int
    result: Result
    message: str = ""


def said(run: Run, text: str, *, now: datetime) -> Run:
    """The run with one more line in its log; the oldest make room for it."""
    lines = (*run.log, LogLine(now, text))
    size = sum(len(line.text.encode()) + LINE_BYTES for line in lines)
    while size > LONGEST_LOG and len(lines) > 1:
        size -= len(lines[0].text.encode()) + LINE_BYTES
        lines = lines[1:]
    return replace(run, log=lines)


def take(run: Run, lease: Lease, *, now: datetime) -> Run:
    """Somebody takes the run up, for the first time or because the last one went silent."""
    if run.state.is_final:
        raise ConflictError(f"run {run.run_id} is over: {run.message}")
    if run.verified is not None:
        raise ConflictError(f"run {run.run_id} only waits for the worker to be seen")
    if run.lease is not None and run.lease.until > now:
        raise ConflictError(f"{run.lease.holder} has run {run.run_id}")
    after = run
    if run.lease is not None:
        after = said(after, f"{run.lease.holder} went silent", now=now)
    after = _given_up(after, now=now)
    after = replace(
        after,
        state=RunState.RUNNING if after.attempts else RunState.CLAIMED,
        taken=run.taken or now,
        lease=lease,
    )
    return said(after, f"taken up by {lease.holder}", now=now)


def hold(run: Run, lease_id: str, *, now: datetime) -> Run:
    """Whoever has the run keeps it for another while."""
    _check_held(run, lease_id)
    if run.lease is None or run.verified is not None:
        return run
    return replace(run, lease=replace(run.lease, until=max(run.lease.until, now + LEASE)))


def begin(run: Run, lease_id: str, beginning: Beginning, *, now: datetime) -> Run:
    """An attempt is about to be made; the answer to this allows it, and nothing else does.

    Asking again with the same words, before its end was told, is a repeat of one that is held by
    the same hands.
    """
    _check_held(run, lease_id)
    if run.verified is not None:
        raise ConflictError(f"run {run.run_id} only waits for the worker to be seen")
    opened = run.open_attempt
    number, method = beginning.number, beginning.method
    if opened is not None and (opened.number, opened.method) == (number, method):
        return run
    if opened is not None:
        raise ConflictError(f"attempt {opened.number} has not ended")
    if len(run.attempts) == MOST_ATTEMPTS:
        raise ConflictError(f"run {run.run_id} has had its {MOST_ATTEMPTS} attempts")
    if number != len(run.attempts) + 1:
        raise ConflictError(f"the next attempt is number {len(run.attempts) + 1}, not {number}")
    attempts = (*run.attempts, Attempt(number, method, now))
    after = replace(run, state=RunState.RUNNING, attempts=attempts)
    return said(after, f"attempt {number} begins: {method}", now=now)


def end(run: Run, lease_id: str, ending: Ending, *, now: datetime) -> Run:
    """An attempt ended; saying it again is fine, saying something else is not."""
    _check_held(run, lease_id)
    opened = run.open_attempt
    if opened is not None and opened.number == ending.number:
        return _ended(run, ending, now=now)
    for attempt in run.attempts:
        if (attempt.number, attempt.result) == (ending.number, ending.result):
            return run
    raise ConflictError(f"attempt {ending.number} is not under way")


def resolve(run: Run, lease_id: str, *, state: RunState, message: str, now: datetime) -> Run:
    """Whoever has the run is done with it.

    What makes a worker come back has succeeded only when it has: until then it is waited for.
    An attempt of which no end was told ended as the run did.  Saying it again is fine.
    """
    if _is_repeat(run, lease_id, state):
        return run
    _check_held(run, lease_id)
    if run.verified is not None:
        raise ConflictError(f"run {run.run_id} only waits for the worker to be seen")
    after = run
    if run.open_attempt is not None:
        result = Result.OK if state is RunState.SUCCEEDED else Result.ERROR
        after = _ended(after, Ending(run.open_attempt.number, result), now=now)
    if state is RunState.SUCCEEDED and run.is_reboot:
        after = replace(after, state=RunState.RUNNING, verified=now, message=message)
        return said(after, f"done, the worker is waited for: {message}", now=now)
    return finish(after, state, message, now=now)


def cancel(run: Run, *, by: str, reason: str, now: datetime) -> Run:
    """Nobody shall go on with the run; what was begun may have been done."""
    if run.state is RunState.CANCELLED:
        return run
    if run.state.is_final:
        raise ConflictError(f"run {run.run_id} is over: {run.message}")
    message = f"cancelled by {by}" + (f": {reason}" if reason else "")
    return finish(_given_up(run, now=now), RunState.CANCELLED, message, now=now)


def settle(
    run: Run, *, seen: datetime | None, now: datetime, comes_back: timedelta = COMES_BACK
) -> Run:
    """What a sighting of the worker, and then time, did to the run.

    ``seen`` is when the worker was last heard of.
    """
    if run.state.is_final:
        return run
    if (message := _comeback(run, seen)) is not None:
        return finish(run, RunState.SUCCEEDED, message, now=now)
    over = _overdue(run, now, comes_back)
    return run if over is None else finish(_given_up(run, now=now), *over, now=now)


def _overdue(run: Run, now: datetime, comes_back: timedelta) -> tuple[RunState, str] | None:
    """How a run ends for which time has run out."""
    if run.verified is not None:
        if now >= run.verified + comes_back:
            return RunState.FAILED, "the machine came up, its worker did not"
    elif run.taken is None:
        if now >= run.requested + UNTAKEN:
            return RunState.TIMED_OUT, "nobody took it up in time"
    elif now >= run.taken + run.action.timeout:
        return RunState.TIMED_OUT, "it took too long"
    return None


def finish(run: Run, state: RunState, message: str, *, now: datetime) -> Run:
    """The run is over."""
    after = replace(run, state=state, ended=now, message=message)
    return said(after, f"{state}: {message}" if message else str(state), now=now)


def _comeback(run: Run, seen: datetime | None) -> str | None:
    """How the worker came back, if it did and that was what was wanted."""
    if seen is None:
        return None
    if run.verified is not None:
        return "the worker was seen again" if seen > run.verified else None
    if run.was_silent and run.open_attempt is None and seen > run.requested:
        last = run.attempts[-1] if run.attempts else None
        if last is None:
            return "the worker came back by itself"
        return f"the worker was seen again after attempt {last.number} ({last.method})"
    return None


def _check_held(run: Run, lease_id: str) -> None:
    if run.state.is_final:
        raise ConflictError(f"run {run.run_id} is over: {run.message}")
    if run.lease is None or run.lease.lease_id != lease_id:
        raise ConflictError(f"somebody else has run {run.run_id} by now")


def _is_repeat(run: Run, lease_id: str, state: RunState) -> bool:
    """Whether this is what the same one said when it resolved the run."""
    if run.lease is None or run.lease.lease_id != lease_id:
        return False
    if run.verified is not None:
        return state is RunState.SUCCEEDED
    return run.state is state


def _ended(run: Run, ending: Ending, *, now: datetime) -> Run:
    last = run.attempts[-1]
    last = replace(last, ended=now, result=ending.result, message=ending.message)
    after = replace(run, attempts=(*run.attempts[:-1], last))
    text = f"attempt {last.number} ({last.method}): {ending.result}"
    return said(after, f"{text}: {ending.message}" if ending.message else text, now=now)


def _given_up(run: Run, *, now: datetime) -> Run:
    """Of an attempt that is under way nobody will tell how it ended."""
    opened = run.open_attempt
    if opened is None:
        return run
    ending = Ending(opened.number, Result.UNKNOWN, "it may have been done; it is not done again")
    return _ended(run, ending, now=now)
