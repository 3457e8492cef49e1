"""The working life of a registered machine: claim, run, report, and know when to leave.

Shaped after the stock generic-worker's main loop: before each claim it asks whether it should
terminate; told so, it finishes what it has begun and leaves.  Read next: ``registration``.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from enum import StrEnum
from math import ceil
from typing import TYPE_CHECKING, Any

import aiohttp
from taskcluster.exceptions import TaskclusterFailure  # type: ignore[import-untyped]

from infra.local.machines.registration import (
    Identity,
    Registration,
    queue_client,
    reregister,
    worker_manager_client,
)

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Awaitable, Callable, Mapping

    from infra.local.machines.behaviour import Behaviour

CALL_FAILURES = (TaskclusterFailure, aiohttp.ClientError, TimeoutError)
"""What a call by the stock client may raise."""
_DEFAULT_IDLE_SECONDS = 120.0


class Outcome(StrEnum):
    """What the fleet counts."""

    REGISTERED = "registered"
    REFUSED = "refused"
    RENEWED = "renewed"
    REBOOTED = "rebooted"
    HUNG = "hung"
    COMPLETED = "tasks completed"
    FAILED = "tasks failed"
    EXCEPTION = "tasks exception"
    ABANDONED = "tasks abandoned"
    LEFT = "left"
    CALL_FAILED = "calls failed"
    CRASHED = "crashed"


class Worker:
    """One registered machine at work.  ``outcomes`` is where it counts what it did."""

    def __init__(
        self,
        identity: Identity,
        registration: Registration,
        *,
        behaviour: Behaviour,
        http: aiohttp.ClientSession,
        outcomes: Counter[Outcome],
    ) -> None:
        self._identity = identity
        self._assignment = identity.assignment
        self._behaviour = behaviour
        self._http = http
        self._outcomes = outcomes
        self._running: set[asyncio.Task[None]] = set()
        self._take(registration)

    @property
    def is_busy(self) -> bool:
        """Whether it runs a task."""
        return bool(self._running)

    def behave(self, behaviour: Behaviour) -> None:
        """Be like this from now on, also in what it is at."""
        self._behaviour = behaviour

    async def work(self) -> None:
        """Work until told to leave, or until the credentials cannot be renewed."""
        busy_at = time.monotonic()
        async with asyncio.TaskGroup() as group:
            while await self._is_welcome():
                if self._running:
                    busy_at = time.monotonic()
                idle = time.monotonic() - busy_at >= self._idle_seconds
                if self._behaviour.asks_every_pass or idle:
                    if await self._should_terminate():
                        return
                    busy_at = time.monotonic() if idle else busy_at
                for claim in await self._claim():
                    task = group.create_task(self._run(claim))
                    self._running.add(task)
                    task.add_done_callback(self._running.discard)
                await self._pause()

    async def leave(self) -> None:
        """Remove itself at the worker manager, as far as that can be reached."""
        await self._attempt(lambda: self._manager.removeWorker(*self._name))

    async def report_error(self) -> None:
        """Tell the worker manager of a failed start."""
        error = {
            "workerGroup": self._assignment.worker_group,
            "workerId": self._identity.instance_id,
            "kind": "worker-error",
            "title": "Simulated start-up failure",
            "description": "This machine was told to fail after its registration.",
            "extra": {},
        }
        pool_id = self._assignment.worker_pool_id
        await self._attempt(lambda: self._manager.reportWorkerError(pool_id, error))

    @property
    def kept(self) -> tuple[Identity, Registration]:
        """What it knows of itself on its disk, which a reboot leaves."""
        return self._identity, self._registration

    @property
    def _name(self) -> tuple[str, str, str]:
        assignment = self._assignment
        return assignment.worker_pool_id, assignment.worker_group, self._identity.instance_id

    @property
    def _capacity(self) -> int:
        configured = self._registration.worker_config.get("capacity", 1)
        return int(self._behaviour.capacity or configured)

    @property
    def _idle_seconds(self) -> float:
        if self._behaviour.idle_seconds is not None:
            return self._behaviour.idle_seconds
        shutdown = self._registration.worker_config.get("shutdown") or {}
        return float(shutdown.get("afterIdleSeconds", _DEFAULT_IDLE_SECONDS))

    def _take(self, registration: Registration) -> None:
        self._registration = registration
        root_url, credentials = self._assignment.root_url, registration.credentials
        self._queue = queue_client(root_url, credentials, self._http)
        self._manager = worker_manager_client(root_url, credentials, self._http)

    async def _is_welcome(self) -> bool:
        """Renew the credentials when that is due; a failure means to leave."""
        if datetime.now(UTC) < self._registration.renew_at:
            return True
        try:
            self._take(await reregister(self._registration, self._manager, self._identity))
        except CALL_FAILURES:
            self._outcomes[Outcome.CALL_FAILED] += 1
            return False
        self._outcomes[Outcome.RENEWED] += 1
        return True

    async def _should_terminate(self) -> bool:
        answer = await self._attempt(lambda: self._manager.shouldWorkerTerminate(*self._name))
        return bool(answer and answer["terminate"])

    async def _claim(self) -> list[dict[str, Any]]:
        free = self._capacity - len(self._running)
        if free <= 0:
            return []
        pool_id, group, worker_id = self._name
        wanted = {"workerGroup": group, "workerId": worker_id, "tasks": free}
        answer = await self._attempt(lambda: self._queue.claimWork(pool_id, wanted))
        claims: list[dict[str, Any]] = answer["tasks"] if answer else []
        if claims and self._behaviour.hangs_in_task:
            self._outcomes[Outcome.HUNG] += 1
            await asyncio.Event().wait()
        return claims

    async def _pause(self) -> None:
        """Until the next look for work: a while, or until a task is done."""
        seconds = self._behaviour.poll_seconds
        if self._running:
            await asyncio.wait(self._running, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        else:
            await asyncio.sleep(seconds)

    async def _run(self, claim: Mapping[str, Any]) -> None:
        """Run one task to its report, with the task's own credentials."""
        name = (claim["status"]["taskId"], str(claim["runId"]))
        seconds = float(claim["task"]["payload"].get("seconds", self._behaviour.task_seconds))
        parts = max(1, ceil(seconds / self._behaviour.reclaim_seconds))
        root_url = self._assignment.root_url
        try:
            queue = queue_client(root_url, claim["credentials"], self._http)
            for part in range(parts):
                if part:
                    credentials = (await queue.reclaimTask(*name))["credentials"]
                    queue = queue_client(root_url, credentials, self._http)
                await asyncio.sleep(seconds / parts)
            match self._behaviour.task_outcome:
                case "completed":
                    await queue.reportCompleted(*name)
                    self._outcomes[Outcome.COMPLETED] += 1
                case "failed":
                    await queue.reportFailed(*name)
                    self._outcomes[Outcome.FAILED] += 1
                case "exception":
                    await queue.reportException(*name, {"reason": "internal-error"})
                    self._outcomes[Outcome.EXCEPTION] += 1
        except CALL_FAILURES:
            self._outcomes[Outcome.ABANDONED] += 1

    async def _attempt(self, call: Callable[[], Awaitable[Any]]) -> Any:
        """The answer of a call, or ``None`` when it failed: the next pass tries again."""
        try:
            return await call()
        except CALL_FAILURES:
            self._outcomes[Outcome.CALL_FAILED] += 1
            return None
