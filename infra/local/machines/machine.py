"""One simulated machine from power-on to power-off.  Read next: ``worker``, ``registration``."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from infra.local.machines.registration import Identity, Registration, register
from infra.local.machines.worker import Outcome, Worker

if TYPE_CHECKING:
    from collections import Counter

    import aiohttp

    from infra.local.machines.behaviour import Behaviour, Rules
    from infra.local.machines.hypervisor import Hypervisor


class Phase(StrEnum):
    """Where a machine is in its life."""

    BOOTING = "booting"
    SILENT = "silent"
    """Up, but calls nobody: no worker's, or told to."""
    REGISTERING = "registering"
    REFUSED = "refused"
    IDLE = "idle"
    BUSY = "busy"
    OFF = "off"


class Machine:
    """The machine on one instance.  Cancelling ``live`` is pulling the plug.

    Calling it again is a reboot: who was registered calls nobody while it boots, and goes on with
    the credentials it kept, or registers again; what it was at is lost.
    """

    def __init__(
        self,
        instance_id: str,
        *,
        hypervisor: Hypervisor,
        http: aiohttp.ClientSession,
        rules: Rules,
        outcomes: Counter[Outcome],
    ) -> None:
        self._instance_id = instance_id
        self._hypervisor = hypervisor
        self._http = http
        self._rules = rules
        self._outcomes = outcomes
        self._phase = Phase.BOOTING
        self._worker: Worker | None = None

    @property
    def phase(self) -> Phase:
        """Where it is in its life now."""
        if self._phase is Phase.IDLE and self._worker is not None and self._worker.is_busy:
            return Phase.BUSY
        return self._phase

    async def live(self) -> None:
        """Boot, register, work, leave; what is over for good just waits to be taken away."""
        kept = None if self._worker is None else self._worker.kept
        self._phase, self._worker = Phase.BOOTING, None
        booted = datetime.now(UTC)
        instance = await self._hypervisor.metadata(self._instance_id)
        assignment = instance.assignment
        if assignment is None:
            return await self._wait_for_the_end(Phase.SILENT)
        behaviour = self._rules.behaviour_of(instance, assignment)
        await asyncio.sleep(self._rules.rng_of(instance).uniform(*behaviour.boot_seconds))
        if not behaviour.registers:
            return await self._wait_for_the_end(Phase.SILENT)
        if kept is not None:
            self._outcomes[Outcome.REBOOTED] += 1
            if behaviour.keeps_credentials:
                return await self._serve(*kept, behaviour)
        self._phase = Phase.REGISTERING
        proof = await self._hypervisor.proof(self._instance_id, root_url=assignment.root_url)
        identity = Identity(assignment, self._instance_id, proof, booted)
        registration = await register(identity, self._http, retry_seconds=behaviour.retry_seconds)
        if registration is None:
            self._outcomes[Outcome.REFUSED] += 1
            return await self._wait_for_the_end(Phase.REFUSED)
        self._outcomes[Outcome.REGISTERED] += 1
        return await self._serve(identity, registration, behaviour)

    async def _serve(
        self, identity: Identity, registration: Registration, behaviour: Behaviour
    ) -> None:
        if not behaviour.claims:
            return await self._wait_for_the_end(Phase.SILENT)
        self._phase = Phase.IDLE
        self._worker = Worker(
            identity,
            registration,
            behaviour=behaviour,
            http=self._http,
            outcomes=self._outcomes,
        )
        if behaviour.reports_error:
            await self._worker.report_error()
        else:
            await self._worker.work()
        await self._worker.leave()
        self._outcomes[Outcome.LEFT] += 1
        self._phase = Phase.OFF
        return await self._hypervisor.shut_down(self._instance_id)

    async def _wait_for_the_end(self, phase: Phase) -> None:
        self._phase = phase
        await asyncio.Event().wait()
