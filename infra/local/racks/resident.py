"""The worker on a machine in a rack: at work while its machine is up, gone as soon as it is not.

It proves itself with the machine's secret whenever the machine has booted, as a worker-runner in a
rack does, and never removes itself: the machine stays.  Read next: ``infra.local.machines.worker``,
the same worker in a cloud.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from infra.local.machines.behaviour import changed
from infra.local.machines.registration import Identity, register
from infra.local.machines.worker import Outcome, Worker
from infra.local.racks.machine import Condition

if TYPE_CHECKING:
    import aiohttp

    from infra.local.machines.assignment import Assignment
    from infra.local.machines.behaviour import Behaviour
    from infra.local.racks.machine import RackMachine


class Resident:
    """The worker of one machine; ``outcomes`` counts what it did.  Lives in the rack's loop."""

    def __init__(
        self,
        machine: RackMachine,
        assignment: Assignment,
        *,
        secret: str,
        http: aiohttp.ClientSession,
        behaviour: Behaviour,
    ) -> None:
        self.machine = machine
        self.outcomes: Counter[Outcome] = Counter()
        self._assignment = assignment
        self._secret = secret
        self._http = http
        self._behaviour = behaviour
        self._worker: Worker | None = None
        self._life: asyncio.Task[None] | None = None
        machine.changed.append(self.follow)

    async def follow(self, condition: Condition) -> None:
        """Be as the machine is."""
        if self._life is not None:
            self._life.cancel()
            await asyncio.gather(self._life, return_exceptions=True)
            self._life = self._worker = None
        if condition is Condition.UP:
            self._life = asyncio.create_task(self._live(), name=self.machine.name)

    def fail(self, *, is_failing: bool) -> None:
        """Whether its tasks fail from now on, with the one that it is at."""
        outcomes = {True: "failed", False: "completed"}
        self._behaviour = changed(self._behaviour, {"task_outcome": outcomes[is_failing]})
        if self._worker is not None:
            self._worker.behave(self._behaviour)

    async def _live(self) -> None:
        booted = datetime.now(UTC)
        proof = {"staticSecret": self._secret}
        identity = Identity(self._assignment, self.machine.name, proof, booted)
        seconds = self._behaviour.retry_seconds
        while True:
            registration = await register(identity, self._http, retry_seconds=seconds)
            if registration is None:
                self.outcomes[Outcome.REFUSED] += 1
            else:
                self.outcomes[Outcome.REGISTERED] += 1
                self._worker = Worker(
                    identity,
                    registration,
                    behaviour=self._behaviour,
                    http=self._http,
                    outcomes=self.outcomes,
                )
                await self._worker.work()
            # Told to leave, or unknown: somebody may want it again.
            await asyncio.sleep(seconds)
