"""The controllers of machines over IPMI 2.0: pyghmi's own server side, acting on a machine.

pyghmi serves all of a process from one thread, which outlives them.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from pyghmi.ipmi.bmc import Bmc
from pyghmi.ipmi.private import session
from pyghmi.ipmi.private.serversession import ServerSession

from infra.local.racks.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from infra.local.racks.machine import RackMachine

HOST = "127.0.0.1"
PATIENCE_SECONDS = 10

SHORTEST = 48
"""Bytes of a packet that asks for a session; see 13.17 of the IPMI 2.0 specification."""
NEW_SESSION = b"\x06\x10"
AUTHENTICATION = 12
"""Where the payload of that says how the client would be authenticated."""
SHA1 = 1
NO_SUCH_SUITE = 0x11


class Controller(Bmc):  # type: ignore[misc]
    """Serves one machine, to whom its password is known."""

    def __init__(
        self, machine: RackMachine, loop: asyncio.AbstractEventLoop, *, passwords: dict[str, str]
    ) -> None:
        self._machine = machine
        self._loop = loop
        session.ipv6support, session.myself = False, HOST  # else it wakes itself where it is not
        self.udp_port = free_port(HOST)
        super().__init__(passwords, port=self.udp_port, address=HOST)

    def sessionless_data(self, data: bytes, sockaddr: tuple[str, int]) -> None:
        """What comes from somebody new."""
        if len(data) >= SHORTEST and data[4:6] == NEW_SESSION:
            _Session(
                self.authdata, self.kg, sockaddr, self.serversocket, data[16:], self.uuid, bmc=self
            )
        else:
            super().sessionless_data(data, sockaddr)

    def get_power_state(self) -> str:
        """``on`` or ``off``."""
        return "on" if self._machine.is_on else "off"

    def power_on(self) -> int:
        """Switch it on."""
        return self._do(self._machine.turn_on("ipmi-on"))

    def power_off(self) -> int:
        """Switch it off."""
        return self._do(self._machine.turn_off("ipmi-off"))

    def power_cycle(self) -> int:
        """Off and on."""
        return self._do(self._machine.restart("ipmi-cycle"))

    def power_reset(self) -> int:
        """Reset it."""
        return self._do(self._machine.restart("ipmi-reset"))

    def _do(self, what: Coroutine[Any, Any, None]) -> int:
        """Have it done in the machine's loop; the completion code of success."""
        asyncio.run_coroutine_threadsafe(what, self._loop).result(PATIENCE_SECONDS)
        return 0


class _Session(ServerSession):  # type: ignore[misc]
    """A talk with one client: refuses, as controllers do, what it does not know.

    pyghmi's would go on with SHA-1 where the client asked for something better, and fail.
    """

    def create_open_session_response(self, request: bytearray) -> bytearray:
        if request[AUTHENTICATION] != SHA1:
            return bytearray([request[0], NO_SUCH_SUITE, 0, 0]) + request[4:8]
        answer: bytearray = super().create_open_session_response(request)
        return answer


def serve_all() -> None:
    """Let all controllers of this process answer from now on."""
    if not any(thread.name == _THREAD for thread in threading.enumerate()):
        threading.Thread(target=Bmc.listen, name=_THREAD, daemon=True).start()


_THREAD = "controllers"
