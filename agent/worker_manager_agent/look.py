"""Whether a machine is up, and whether it went down and came up, as seen from the network."""

from __future__ import annotations

import asyncio
import contextlib
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from worker_manager_agent.inventory import Host

DOWN_AFTER = 2
"""Looks in a row that must fail: a single one may have been lost on the way."""


class Seen(StrEnum):
    """What became of a machine."""

    CAME_UP = "it went down and came up"
    STAYED_UP = "it did not go down"
    STAYED_DOWN = "it did not come up"


async def is_up(host: Host) -> bool:
    """Whether its port takes a connection now and says what it should."""
    look = host.look
    banner = look.banner.encode()
    try:
        async with asyncio.timeout(look.connect_seconds):
            reader, writer = await asyncio.open_connection(host.address, look.port)
            try:
                return await reader.readexactly(len(banner)) == banner
            finally:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()
    except (OSError, TimeoutError, asyncio.IncompleteReadError):
        return False


class Watch:
    """Looks at a machine from before something is done to it, so that no short absence is missed.

    The time that it may take to go down counts from ``asked``.
    """

    def __init__(self, host: Host, *, monotonic: Callable[[], float]) -> None:
        self._host = host
        self._monotonic = monotonic
        self._asked_at: float | None = None

    def asked(self) -> None:
        """What should bring it down was done now."""
        self._asked_at = self._monotonic()

    async def outcome(self, *, down_within: float | None = None) -> Seen:
        """What became of it; one that is down to begin with need not go down.

        ``down_within`` is in seconds, if it is not what the host says.
        """
        look = self._host.look
        limit = look.down_within_seconds if down_within is None else down_within
        failed = 0
        while failed < DOWN_AFTER:
            failed = 0 if await is_up(self._host) else failed + 1
            if failed == 0 and self._is_past(limit):
                return Seen.STAYED_UP
            await asyncio.sleep(look.down_poll_seconds)
        down_at = self._monotonic()
        while not await is_up(self._host):
            if self._is_past(look.up_within_seconds, since=down_at):
                return Seen.STAYED_DOWN
            await asyncio.sleep(look.up_poll_seconds)
        return Seen.CAME_UP

    def _is_past(self, limit: float, *, since: float = 0.0) -> bool:
        """Whether so much time passed since it was asked, and since another moment."""
        if self._asked_at is None:
            return False
        return self._monotonic() >= max(self._asked_at, since) + limit
