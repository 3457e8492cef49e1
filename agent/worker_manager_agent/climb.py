"""One run from its claim to its end: rung after rung, each written down before it is climbed.

What an earlier holder of the run began and did not end may have been done.  So the machine is
looked at first: if it comes up, or is up and stays so, nothing is done to it any more, and the
worker manager waits for its worker; only a machine that stays down gets the next rung.  That is
how no machine is reset twice for one run, whoever died when.
Read next: ``lease``, ``ladder``, ``look``, ``rungs``.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from worker_manager_agent import ladder
from worker_manager_agent.failures import AgentError, NotDoneError
from worker_manager_agent.inventory import Rung
from worker_manager_agent.look import Seen, Watch
from worker_manager_agent.messages import Attempt
from worker_manager_agent.rungs.ticket import Case

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker_manager_agent.inventory import Host
    from worker_manager_agent.lease import Lease
    from worker_manager_agent.rungs import Rungs

logger = logging.getLogger(__name__)

REBOOT = "reboot"
"""The one operation that the agent knows."""
SUCCEEDED, FAILED = "succeeded", "failed"
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Climber:
    """Brings machines back."""

    rungs: Rungs
    monotonic: Callable[[], float]
    clock: Callable[[], datetime]
    is_stopping: Callable[[], bool]
    """Whether no rung shall be begun any more."""

    async def climb(self, lease: Lease, host: Host | None) -> None:
        """Do what a run wants, up to its end; or leave it to whoever takes it up next."""
        run = lease.run
        if run.action.operation != REBOOT:
            words = f"this agent knows no {run.action.operation}, only {REBOOT}"
            return await lease.resolve(FAILED, words)
        if host is None:
            return await lease.resolve(FAILED, f"this agent is for no machine of {run.target}")
        attempts = list(run.attempts)
        enough = await self._done_before(lease, host, attempts)
        if enough is not None:
            return await lease.resolve(SUCCEEDED, enough)
        return await self._go_on(lease, host, attempts)

    async def _done_before(self, lease: Lease, host: Host, attempts: list[Attempt]) -> str | None:
        """Why nothing more is to be done after what others tried, in words; ``None`` if it is."""
        last = attempts[-1] if attempts else None
        if last is None or last.method == Rung.TICKET:
            return None
        if last.result == "ok":
            return f"{host.title} came up after attempt {last.number} ({last.method})"
        return await self._look_after(lease, host, last) if last.result == UNKNOWN else None

    async def _go_on(self, lease: Lease, host: Host, attempts: list[Attempt]) -> None:
        for rung in ladder.left(host, attempts):
            if not host.has(rung):
                await lease.log(f"{rung} is skipped: nothing is known of {host.title} for it")
                continue
            if self.is_stopping():
                return await lease.log("the agent was stopped; whoever is next goes on")
            attempt = await self._try(lease, host, rung, attempts)
            attempts.append(attempt)
            if attempt.result == "ok" and rung is not Rung.TICKET:
                words = f"{host.title} came up after attempt {attempt.number} ({rung})"
                return await lease.resolve(SUCCEEDED, words)
        words = "people were told; " if ladder.is_told(attempts) else ""
        return await lease.resolve(
            FAILED, f"{words}nothing brought {host.title} back: {ladder.summary(attempts)}"
        )

    async def _try(self, lease: Lease, host: Host, rung: Rung, attempts: list[Attempt]) -> Attempt:
        """Climb one rung: write it down, do it, look, and write down what came of it."""
        number = len(attempts) + 1
        started = self.clock()
        await lease.begin(number, rung)
        logger.info("run %s: attempt %d: %s of %s", lease.run.run_id, number, rung, host.title)
        result, words = await self._do(lease, host, rung, attempts)
        await lease.end(number, result, words)
        logger.info("run %s: attempt %d: %s: %s", lease.run.run_id, number, result, words)
        return Attempt(
            number=number, method=rung.value, started=started, result=result, message=words
        )

    async def _do(
        self, lease: Lease, host: Host, rung: Rung, attempts: list[Attempt]
    ) -> tuple[str, str]:
        """How it ended, and in words.  Only what was surely not done needs no look."""
        watch = Watch(host, monotonic=self.monotonic)
        watching = asyncio.create_task(watch.outcome())
        try:
            try:
                words = await self.rungs.climb(rung, host, _case(lease, host, attempts))
            except NotDoneError as error:
                return "error", str(error)
            except Exception as error:  # whatever it was, the machine shows what was done
                if rung is Rung.TICKET:
                    return "error", f"{type(error).__name__}"
                words = f"it broke off: {type(error).__name__}"
            if rung is Rung.TICKET:
                return "ok", words
            watch.asked()
            seen = await watching
        finally:
            watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watching
        return ("ok" if seen is Seen.CAME_UP else "no-change"), f"{words}; {seen}"

    async def _look_after(self, lease: Lease, host: Host, attempt: Attempt) -> str | None:
        """Whether what may have been done is enough, in words; ``None`` if it is not."""
        told = f"attempt {attempt.number} ({attempt.method}) may have been done"
        await lease.log(f"{told}: {host.title} is looked at")
        try:
            await self.rungs.restore_power(attempt.method, host)
        except AgentError as error:
            await lease.log(f"its power may be off, and cannot be switched on: {error}")
        since = (self.clock() - attempt.started).total_seconds()
        watch = Watch(host, monotonic=self.monotonic)
        watch.asked()
        left = max(0.0, host.look.down_within_seconds - max(0.0, since))
        seen = await watch.outcome(down_within=left)
        await lease.log(f"{host.title}: {seen}")
        match seen:
            case Seen.CAME_UP:
                return f"{told}, and {host.title} came up"
            case Seen.STAYED_UP:
                return f"{told}, and {host.title} is up: nothing more is done to it"
            case Seen.STAYED_DOWN:
                return None


def _case(lease: Lease, host: Host, attempts: list[Attempt]) -> Case:
    run = lease.run
    return Case(
        host=host.title,
        worker=str(run.target),
        run=run.run_id,
        action=run.action.name,
        requested_by=run.requested_by,
        reason=run.reason,
        attempts=ladder.summary(attempts),
    )


def utc_now() -> datetime:
    """The time."""
    return datetime.now(UTC)
