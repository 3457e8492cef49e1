"""All machines of one simulated cloud: started when an instance runs, cut off when it does not.

One thread with one event loop carries them all.  Read next: ``machine``.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from threading import Thread
from typing import TYPE_CHECKING

import aiohttp

from infra.local.machines.behaviour import Rules
from infra.local.machines.hypervisor import HYPERVISORS, Hypervisor
from infra.local.machines.machine import Machine, Phase
from infra.local.machines.worker import Outcome

if TYPE_CHECKING:
    from types import TracebackType


class MachineFleet:
    """The machines of the cloud at ``cloud_url``, from ``start`` to ``stop``.

    ``kind`` is which cloud it is (``hypervisor.HYPERVISORS``).
    ``poll_seconds`` is how often it looks which instances run.
    """

    def __init__(
        self,
        cloud_url: str,
        *,
        kind: str = "ec2",
        rules: Rules | None = None,
        poll_seconds: float = 0.5,
    ) -> None:
        self.outcomes: Counter[Outcome] = Counter()
        self._cloud_url = cloud_url
        self._hypervisor = HYPERVISORS[kind]
        self._rules = rules or Rules()
        self._poll_seconds = poll_seconds
        self._machines: dict[str, Machine] = {}
        self._lives: dict[str, asyncio.Task[None]] = {}
        self._reboots: dict[str, int] = {}
        self._stopping = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = Thread(target=self._carry, name="machines", daemon=True)

    def start(self) -> MachineFleet:
        """Watch the cloud from now on."""
        self._loop = asyncio.new_event_loop()
        self._thread.start()
        return self

    def stop(self) -> None:
        """Cut all machines off and wait until they are."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join()

    def phases(self) -> Counter[Phase]:
        """How many machines are where in their life."""
        return Counter(machine.phase for machine in list(self._machines.values()))

    def __enter__(self) -> MachineFleet:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _carry(self) -> None:
        assert self._loop is not None
        loop = self._loop
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(self._watch())

    async def _watch(self) -> None:
        connector = aiohttp.TCPConnector(limit=0)
        timeout = aiohttp.ClientTimeout(total=60)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as http:
            hypervisor = self._hypervisor(self._cloud_url, http)
            while not self._stopping.is_set():
                await self._look(hypervisor, http)
                await self._pause()
            for life in self._lives.values():
                life.cancel()
            await asyncio.gather(*self._lives.values(), return_exceptions=True)

    async def _pause(self) -> None:
        try:
            await asyncio.wait_for(self._stopping.wait(), self._poll_seconds)
        except TimeoutError:
            return

    async def _look(self, hypervisor: Hypervisor, http: aiohttp.ClientSession) -> None:
        """Start machines on instances that run, also anew; cut off those of others."""
        try:
            powered = await hypervisor.powered()
        except (aiohttp.ClientError, TimeoutError):
            return
        for instance_id in [i for i in self._lives if i not in powered]:
            self._lives.pop(instance_id).cancel()
            del self._machines[instance_id], self._reboots[instance_id]
        for instance_id, power in powered.items():
            if power.is_running and instance_id not in self._lives:
                self._machines[instance_id] = Machine(
                    instance_id,
                    hypervisor=hypervisor,
                    http=http,
                    rules=self._rules,
                    outcomes=self.outcomes,
                )
                self._boot(instance_id, power.reboots)
            elif power.is_running and power.reboots != self._reboots[instance_id]:
                self._lives[instance_id].cancel()
                self._boot(instance_id, power.reboots)

    def _boot(self, instance_id: str, reboots: int) -> None:
        """Let a machine live, for the first time or after it was rebooted so often."""
        life = asyncio.create_task(self._machines[instance_id].live(), name=instance_id)
        life.add_done_callback(self._bury)
        self._lives[instance_id], self._reboots[instance_id] = life, reboots

    def _bury(self, life: asyncio.Task[None]) -> None:
        """Count a life that ended by an error; most are cut off when their instance goes."""
        if not life.cancelled() and life.exception() is not None:
            self.outcomes[Outcome.CRASHED] += 1
