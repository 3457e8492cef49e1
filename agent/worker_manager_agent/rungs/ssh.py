"""A reboot asked for by ssh: with one key, to a host that is known, and nothing else.

No agent, password, configuration of the user or other key is ever used.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import asyncssh

from worker_manager_agent.failures import NotDoneError

if TYPE_CHECKING:
    from worker_manager_agent.inventory import Ssh

KILLED = 128
"""Exit statuses from here on are those of a command that a signal ended, as a reboot does."""


async def reboot(facts: Ssh, address: str) -> str:
    """Log in and run the command."""
    try:
        async with asyncio.timeout(facts.timeout_seconds):
            connection = await _connect(facts, address)
    except (OSError, TimeoutError, asyncssh.Error, ValueError) as error:
        raise NotDoneError(f"no login: {_words(error)}") from error
    try:
        async with asyncio.timeout(facts.timeout_seconds):
            return _judged(facts, await connection.run(facts.command, check=False))
    except asyncssh.ChannelOpenError as error:
        raise NotDoneError(f"no command: {_words(error)}") from error
    except (OSError, TimeoutError, asyncssh.Error) as error:
        return f"{facts.command!r} was sent: {_words(error)}"
    finally:
        connection.abort()


async def _connect(facts: Ssh, address: str) -> asyncssh.SSHClientConnection:
    passphrase = facts.passphrase.get_secret_value() if facts.passphrase else None
    return await asyncssh.connect(
        address,
        facts.port,
        config=None,
        username=facts.user,
        client_keys=[asyncssh.read_private_key(facts.key, passphrase)],
        known_hosts=str(facts.known_hosts),
        agent_path=None,
        agent_forwarding=False,
        preferred_auth="publickey",
        gss_host=None,
        connect_timeout=facts.timeout_seconds,
    )


def _judged(facts: Ssh, done: asyncssh.SSHCompletedProcess) -> str:
    status = done.exit_status
    if status is not None and 0 < status < KILLED:
        said = str(done.stderr or "").strip()[:200]
        raise NotDoneError(f"{facts.command!r} ended with {status}: {said}")
    return f"{facts.command!r} was run"


def _words(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return f"{type(error).__name__}: {error}"[:300]
