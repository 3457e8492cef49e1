"""One run that is held: what keeps it, and what is told before anything is done.

While it is held a heartbeat goes out again and again.  When the worker manager says that the run
is over or somebody else's, or cannot be reached for as long as a lease lasts, whatever is being
done for the run is stopped at once.  Read next: ``climb``.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Any

from worker_manager_agent.api import plain
from worker_manager_agent.failures import ApiError, LeaseLostError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from worker_manager_agent.api import Api
    from worker_manager_agent.messages import Claimed

logger = logging.getLogger(__name__)


class Lease:
    """A run for as long as it is ours."""

    def __init__(
        self,
        claimed: Claimed,
        api: Api,
        *,
        heartbeat_seconds: float,
        lease_seconds: float,
        monotonic: Callable[[], float],
        since: float,
    ) -> None:
        """``since`` is when the claim was sent, by ``monotonic``."""
        self.run = claimed.run
        self._lease_id = claimed.lease_id
        self._api = api
        self._heartbeat_seconds = heartbeat_seconds
        self._lease_seconds = lease_seconds
        self._monotonic = monotonic
        self._held_since = since
        self._one_by_one = asyncio.Lock()

    async def hold(self, work: Awaitable[None]) -> None:
        """Do the work and keep the run meanwhile; ``LeaseLostError`` if it was stopped for that."""
        working = asyncio.ensure_future(work)
        beating = asyncio.create_task(self._keep())
        try:
            await asyncio.wait((working, beating), return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                await _stopped(working)
                await beating
            await working
        finally:
            await _stopped(working)
            await _stopped(beating)

    async def begin(self, number: int, method: str) -> None:
        """Write down that an attempt is about to be made; only then may it be."""
        await self._say({"begin": {"number": number, "method": method}})

    async def end(self, number: int, result: str, message: str) -> None:
        """Write down how it ended: ``ok``, ``no-change`` or ``error``."""
        told = {"number": number, "result": result, "message": plain(message)}
        await self._say({"end": told})

    async def log(self, text: str) -> None:
        """Tell something of the run."""
        await self._say({"log": plain(text)})

    async def resolve(self, state: str, message: str) -> None:
        """Be done: ``succeeded`` or ``failed``."""
        async with self._one_by_one:
            run_id = self.run.run_id
            await self._api.resolve(run_id, self._lease_id, state=state, message=message)

    async def _say(self, said: dict[str, Any]) -> None:
        async with self._one_by_one:
            sent = self._monotonic()
            await self._api.heartbeat(self.run.run_id, {"leaseId": self._lease_id, **said})
            self._held_since = sent

    async def _keep(self) -> None:
        """Beat until the run is lost."""
        while True:
            await asyncio.sleep(min(self._heartbeat_seconds, self._left()))
            try:
                async with asyncio.timeout(self._left()):
                    await self._say({})
            except ApiError as error:
                logger.warning("a heartbeat failed: %s", error)
            except TimeoutError:
                raise LeaseLostError("the worker manager was not reached in time") from None

    def _left(self) -> float:
        """Seconds for which the run surely is ours."""
        return max(0.0, self._held_since + self._lease_seconds - self._monotonic())


async def _stopped(task: asyncio.Future[Any]) -> None:
    """Cancel what still goes on, and wait until it has stopped."""
    if not task.done():
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await task
