"""The agent as it runs: it asks what is to be done, and does several runs side by side.

Told to stop, it takes up nothing more and begins no further rung; what is under way may go on for
a while, and what then is not over is left to whoever takes it up next.
Read next: ``climb``.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import defaultdict
from typing import TYPE_CHECKING

import aiohttp

from worker_manager_agent.api import Api
from worker_manager_agent.climb import FAILED, Climber, utc_now
from worker_manager_agent.failures import AgentError, ApiError, LeaseLostError
from worker_manager_agent.lease import Lease
from worker_manager_agent.rungs import Rungs

if TYPE_CHECKING:
    from worker_manager_agent.config import Config
    from worker_manager_agent.inventory import Host
    from worker_manager_agent.messages import Claimed

logger = logging.getLogger(__name__)

MOST_CLAIMED = 10
"""Runs that the worker manager gives at once."""


class Agent:
    """One agent; ``run`` goes on until ``stop``."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._stop = asyncio.Event()
        self._locks: defaultdict[tuple[str, str], asyncio.Lock] = defaultdict(asyncio.Lock)
        self._runs: set[asyncio.Task[None]] = set()

    def stop(self) -> None:
        """Take up nothing more, and come to an end soon."""
        self._stop.set()

    async def run(self) -> None:
        """Ask, and do, until told to stop."""
        settings = self._config.settings
        async with aiohttp.ClientSession() as http:
            api = Api(settings, self._config.credentials, http, chance=random.random)
            climber = Climber(Rungs(http), time.monotonic, utc_now, self._stop.is_set)
            stopping = asyncio.create_task(self._stop.wait())
            try:
                while not self._stop.is_set():
                    await self._take_up(api, climber)
                    await asyncio.wait((stopping,), timeout=settings.poll_seconds)
            finally:
                stopping.cancel()
                await self._finish()

    async def _take_up(self, api: Api, climber: Climber) -> None:
        settings = self._config.settings
        free = min(settings.most_at_once - len(self._runs), MOST_CLAIMED)
        if free <= 0:
            return
        sent = time.monotonic()
        try:
            claimed = await api.claim(most=free)
        except AgentError as error:
            logger.warning("nothing could be taken up: %s", error)
            return
        for each in claimed:
            lease = Lease(
                each,
                api,
                heartbeat_seconds=settings.heartbeat_seconds,
                lease_seconds=settings.lease_seconds,
                monotonic=time.monotonic,
                since=sent,
            )
            task = asyncio.create_task(self._do(lease, climber, self._host_of(each)))
            self._runs.add(task)
            task.add_done_callback(self._runs.discard)

    async def _do(self, lease: Lease, climber: Climber, host: Host | None) -> None:
        run = lease.run
        logger.info("run %s: %s of %s", run.run_id, run.action.name, run.target)
        try:
            await lease.hold(self._one_by_one(lease, climber, host))
        except LeaseLostError as error:
            logger.warning("run %s is let go: %s", run.run_id, error)
        except ApiError as error:
            logger.warning("run %s is left: %s", run.run_id, error)

    async def _one_by_one(self, lease: Lease, climber: Climber, host: Host | None) -> None:
        """Never two runs of one machine at once."""
        if host is None:
            return await climber.climb(lease, None)
        async with self._locks[host.worker_group, host.worker_id]:
            try:
                return await climber.climb(lease, host)
            except AgentError:
                raise
            except Exception as error:
                logger.exception("run %s: a fault of this agent", lease.run.run_id)
                return await lease.resolve(FAILED, f"a fault of the agent: {type(error).__name__}")

    def _host_of(self, claimed: Claimed) -> Host | None:
        target = claimed.run.target
        if target.worker_group is None or target.worker_id is None:
            return None
        if not self._config.settings.is_for(target.task_queue_id or ""):
            return None
        return self._config.hosts.get((target.worker_group, target.worker_id))

    async def _finish(self) -> None:
        """Let runs end for a while, then leave them."""
        if not self._runs:
            return
        runs = set(self._runs)
        await asyncio.wait(runs, timeout=self._config.settings.stop_seconds)
        for task in runs:
            task.cancel()
        await asyncio.gather(*runs, return_exceptions=True)
