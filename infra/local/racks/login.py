"""The ssh server of a machine: there while it is up, mute while it hangs, else gone.

It lets one key in, to one account, and knows one command: ``reboot``.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import asyncssh

from infra.local.racks.machine import Condition

if TYPE_CHECKING:
    from infra.local.racks.machine import RackMachine

HOST = "127.0.0.1"
USER = "reboots"


class Login:
    """Serves one machine."""

    def __init__(
        self, machine: RackMachine, *, host_key: asyncssh.SSHKey, client_key: asyncssh.SSHKey
    ) -> None:
        self._machine = machine
        self._host_key = host_key
        public = client_key.export_public_key().decode()
        self._authorized = asyncssh.import_authorized_keys(public)
        self._listener: asyncssh.SSHAcceptor | asyncio.Server | None = None
        self._connections: set[asyncssh.SSHServerConnection] = set()
        self._mute: set[asyncio.StreamWriter] = set()
        self.port = 0
        self.commands: list[str] = []
        machine.changed.append(self.follow)

    async def follow(self, condition: Condition) -> None:
        """Be as the machine is."""
        await self.close()
        if condition is Condition.UP:
            self._listener = await asyncssh.listen(
                HOST,
                self.port,
                server_factory=lambda: _Account(self._connections),
                server_host_keys=[self._host_key],
                authorized_client_keys=self._authorized,
                process_factory=self._run,
            )
        elif condition is Condition.HANGING:
            self._listener = await asyncio.start_server(self._say_nothing, HOST, self.port)
        if self._listener is not None and not self.port:
            self.port = self._listener.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Be gone, and everybody who is logged in with it."""
        if self._listener is not None:
            self._listener.close()
            for connection in list(self._connections):
                connection.abort()
            for writer in list(self._mute):
                writer.transport.abort()
            self._listener = None

    async def _run(self, process: asyncssh.SSHServerProcess[str]) -> None:
        command = process.command or ""
        self.commands.append(command)
        if command != "reboot":
            process.stderr.write("only reboot is allowed\n")
            process.exit(1)
            return
        process.exit(0)
        self._rebooting = asyncio.create_task(self._machine.restart("ssh"))

    async def _say_nothing(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Read until the other side tires of it."""
        self._mute.add(writer)
        try:
            with contextlib.suppress(OSError):
                await reader.read()
        finally:
            self._mute.discard(writer)
            writer.close()


class _Account(asyncssh.SSHServer):
    """One connection."""

    def __init__(self, connections: set[asyncssh.SSHServerConnection]) -> None:
        self._connections = connections

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn
        self._connections.add(conn)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.discard(self._connection)

    def begin_auth(self, username: str) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        return False
