"""One machine in a rack: on or off, up or hanging, and what was done to its power, in order."""

from __future__ import annotations

import asyncio
from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class Condition(StrEnum):
    """How a machine is."""

    OFF = "off"
    BOOTING = "booting"
    UP = "up"
    HANGING = "hanging"
    """On, and its network answers, but nothing behind it does."""


class RackMachine:
    """A machine.  Its methods are for the loop that it lives in; ``restarts`` counts by cause."""

    def __init__(self, name: str, *, boot_seconds: float) -> None:
        self.name = name
        self.boot_seconds = boot_seconds
        self.condition = Condition.OFF
        self.restarts: Counter[str] = Counter()
        self.deaf_to: set[str] = set()
        """Causes that are accepted, counted, and do nothing."""
        self.is_dead = False
        """Whether it never comes up again."""
        self.changed: list[Callable[[Condition], Awaitable[None]]] = []
        """Who is told of each change, one after the other."""
        self._booting: asyncio.Task[None] | None = None

    @property
    def is_on(self) -> bool:
        """Whether it has power."""
        return self.condition is not Condition.OFF

    async def restart(self, cause: str) -> None:
        """A reboot, a reset or a power cycle; at once, and up again after ``boot_seconds``."""
        self.restarts[cause] += 1
        if cause in self.deaf_to:
            return
        await self._stop_booting()
        await self._become(Condition.BOOTING)
        self._booting = asyncio.create_task(self._boot())

    async def turn_on(self, cause: str) -> None:
        """Power; a machine that has it notices nothing."""
        if not self.is_on:
            await self.restart(cause)

    async def turn_off(self, cause: str) -> None:
        """No power; not deaf to that."""
        self.restarts[cause] += 1
        await self._stop_booting()
        await self._become(Condition.OFF)

    async def hang(self) -> None:
        """Stop answering, but on the surface."""
        await self._stop_booting()
        await self._become(Condition.HANGING)

    async def come_up(self) -> None:
        """Be up now, by itself."""
        await self._stop_booting()
        await self._become(Condition.UP)

    async def stop(self) -> None:
        """Be off, and nobody's cause."""
        await self._stop_booting()
        await self._become(Condition.OFF)

    async def _boot(self) -> None:
        await asyncio.sleep(self.boot_seconds)
        if not self.is_dead:
            await self._become(Condition.UP)

    async def _stop_booting(self) -> None:
        if self._booting is not None:
            self._booting.cancel()
            await asyncio.gather(self._booting, return_exceptions=True)
            self._booting = None

    async def _become(self, condition: Condition) -> None:
        if condition is self.condition:
            return
        self.condition = condition
        for tell in self.changed:
            await tell(condition)
