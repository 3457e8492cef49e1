"""A reset or power cycle by the machine's controller, over Redfish.

Two plain requests.  The known client libraries send a request again by themselves when its answer
is lost, which would reset a machine twice.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import aiohttp

from worker_manager_agent.answers import body_of
from worker_manager_agent.failures import NotDoneError
from worker_manager_agent.rungs.wholly import wholly

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker_manager_agent.inventory import Redfish

LONGEST_ANSWER = 1024 * 1024
"""Bytes."""
ON_TRIES = 3
"""Switching on what is on does nothing: only this may be asked for again."""
OFF = ("Off", "PoweringOff")
ACTION = "#ComputerSystem.Reset"
ALLOWED = "ResetType@Redfish.AllowableValues"


@dataclass(frozen=True, slots=True)
class _System:
    """What a controller says of its machine."""

    is_off: bool
    target: str
    """Where a reset is asked for."""
    allowed: Sequence[str] | None
    """The types of reset that it knows, if it says so."""

    def allows(self, kind: str) -> bool:
        return self.allowed is None or kind in self.allowed


async def reset(facts: Redfish, http: aiohttp.ClientSession) -> str:
    """Reset it once; if it is off, switch it on."""
    system = await _read(facts, http)
    if system.is_off:
        return await _ask(facts, http, system, "On")
    return await _ask(facts, http, system, "ForceRestart")


async def cycle(facts: Redfish, http: aiohttp.ClientSession) -> str:
    """Cycle its power once: by the controller, or off and on where that cannot; never left off."""
    system = await _read(facts, http)
    if system.is_off:
        return await _ask(facts, http, system, "On")
    if system.allowed is not None and system.allows("PowerCycle"):
        return await _ask(facts, http, system, "PowerCycle")
    return await wholly(_off_and_on(facts, http, system))


async def turn_on(facts: Redfish, http: aiohttp.ClientSession) -> None:
    """Switch it on, if it is off."""
    system = await _read(facts, http)
    if system.is_off:
        await _ask(facts, http, system, "On")


async def _off_and_on(facts: Redfish, http: aiohttp.ClientSession, system: _System) -> str:
    """From the first answer on it may be off: whatever follows, that is not "not done"."""
    if not system.allows("On"):
        raise NotDoneError("the controller knows no On")
    await _ask(facts, http, system, "ForceOff")
    words = ""
    for _ in range(ON_TRIES):
        await asyncio.sleep(facts.off_seconds)
        try:
            words = await _ask(facts, http, system, "On")
        except NotDoneError as error:
            words = str(error)
        if words == _accepted("On"):
            return "switched off and on"
    return f"switched off, and perhaps not on again: {words}"


async def _read(facts: Redfish, http: aiohttp.ClientSession) -> _System:
    try:
        status, answer = await _request(facts, http, "GET", facts.system)
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise NotDoneError(f"no answer: {type(error).__name__}: {error}"[:300]) from error
    if status != 200 or not isinstance(answer, dict):
        raise NotDoneError(f"{facts.system} is answered with {status}")
    actions = answer.get("Actions")
    offered = actions.get(ACTION) if isinstance(actions, dict) else None
    offered = offered if isinstance(offered, dict) else {}
    target = offered.get("target")
    if not isinstance(target, str) or not target.startswith("/redfish/"):
        raise NotDoneError("the controller offers no reset")
    return _System(answer.get("PowerState") in OFF, target, offered.get(ALLOWED))


async def _ask(facts: Redfish, http: aiohttp.ClientSession, system: _System, kind: str) -> str:
    """Ask for one type of reset, once."""
    if not system.allows(kind):
        raise NotDoneError(f"the controller knows no {kind}")
    try:
        status, _ = await _request(facts, http, "POST", system.target, {"ResetType": kind})
    except aiohttp.ClientConnectorError as error:
        raise NotDoneError(f"no connection: {error}") from error
    except (aiohttp.ClientError, OSError, ValueError) as error:
        return f"{kind} was sent: {type(error).__name__}"
    if 300 <= status < 500:
        raise NotDoneError(f"{kind} is answered with {status}")
    return _accepted(kind) if status < 300 else f"{kind} is answered with {status}"


def _accepted(kind: str) -> str:
    return f"{kind} was accepted"


async def _request(
    facts: Redfish,
    http: aiohttp.ClientSession,
    method: str,
    path: str,
    body: dict[str, str] | None = None,
) -> tuple[int, Any]:
    """The status and JSON of an answer; ``ValueError`` if it is too long or no JSON."""
    trusted: ssl.SSLContext | bool = True
    if facts.ca_file is not None:
        trusted = ssl.create_default_context(cafile=facts.ca_file)
    who = aiohttp.encode_basic_auth(facts.user, facts.password.get_secret_value())
    async with http.request(
        method,
        f"{facts.url}{path}",
        json=body,
        headers={"Authorization": who},
        ssl=trusted,
        allow_redirects=False,
        timeout=aiohttp.ClientTimeout(total=facts.timeout_seconds),
    ) as response:
        if method != "GET" or response.status != 200:
            return response.status, None
        return response.status, json.loads(await body_of(response, most=LONGEST_ANSWER))
