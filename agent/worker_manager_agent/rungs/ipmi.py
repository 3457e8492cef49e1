"""A reset or power cycle by the machine's controller, over IPMI 2.0.

pyghmi shares sockets, timers and a thread within a whole process and offers no way out of a call
that hangs, so that each call has a process of its own (``ipmi_call``), which can be ended.  What
it needs, the password too, goes to it through a pipe.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from worker_manager_agent.failures import NotDoneError

if TYPE_CHECKING:
    from worker_manager_agent.inventory import Ipmi

PROGRAM = Path(__file__).with_name("ipmi_call.py")
RESET, CYCLE = 3, 2
"""Chassis control of the IPMI specification."""


async def switch(facts: Ipmi, *, cycle: bool) -> str:
    """Reset or cycle it once; if it is off, switch it on."""
    call = {
        "address": facts.address,
        "port": facts.port,
        "user": facts.user,
        "password": facts.password.get_secret_value(),
        "privilege": {"operator": 3, "administrator": 4}[facts.privilege],
        "control": CYCLE if cycle else RESET,
    }
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        str(PROGRAM),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={},
    )
    said: list[dict[str, str]] = []
    try:
        async with asyncio.timeout(facts.timeout_seconds):
            await _converse(child, json.dumps(call).encode(), said)
    except TimeoutError:
        said.append({"unclear": "no answer in time"})
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    return _judged(said)


async def _converse(
    child: asyncio.subprocess.Process, call: bytes, said: list[dict[str, str]]
) -> None:
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(call)
    child.stdin.close()
    async for line in child.stdout:
        said.append(json.loads(line))
    await child.wait()


def _judged(said: list[dict[str, str]]) -> str:
    """What was done, if something may have been: it says so before it sends anything."""
    told = {name: text for line in said for name, text in line.items()}
    if "done" in told:
        return told["done"]
    if "refused" in told or "sending" not in told:
        raise NotDoneError(told.get("refused") or told.get("unclear") or "the call broke off")
    return f"{told['sending']} was sent: {told.get('unclear', 'the call broke off')}"
