"""The Redfish service of a machine's controller: its state, and resets of it."""

from __future__ import annotations

import asyncio
import hmac
from typing import TYPE_CHECKING, Any

import aiohttp
from aiohttp import web

if TYPE_CHECKING:
    from infra.local.racks.machine import RackMachine

HOST = "127.0.0.1"
SYSTEM = "/redfish/v1/Systems/1"
TARGET = f"{SYSTEM}/Actions/ComputerSystem.Reset"
KINDS = ("On", "ForceOff", "ForceRestart", "PowerCycle")


class RedfishService:
    """Serves one machine; ``kinds`` are the types of reset that it knows."""

    def __init__(self, machine: RackMachine, *, user: str, password: str) -> None:
        self._machine = machine
        self._expected = aiohttp.encode_basic_auth(user, password)
        self._runner: web.AppRunner | None = None
        self.kinds: tuple[str, ...] = KINDS
        self.answers_late_seconds = 0.0
        """How long it takes to answer, after it did what it was asked for."""
        self.port = 0

    async def start(self) -> None:
        """Answer from now on."""
        app = web.Application()
        app.router.add_get(SYSTEM, self._state)
        app.router.add_post(TARGET, self._reset)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, HOST, self.port)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def close(self) -> None:
        """Answer no more."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _state(self, request: web.Request) -> web.Response:
        self._check(request)
        reset = {"target": TARGET, "ResetType@Redfish.AllowableValues": list(self.kinds)}
        return web.json_response(
            {
                "@odata.id": SYSTEM,
                "@odata.type": "#ComputerSystem.v1_22_0.ComputerSystem",
                "Id": "1",
                "Name": self._machine.name,
                "PowerState": "On" if self._machine.is_on else "Off",
                "Actions": {"#ComputerSystem.Reset": reset},
            }
        )

    async def _reset(self, request: web.Request) -> web.Response:
        self._check(request)
        asked: Any = await request.json()
        kind = asked.get("ResetType")
        if kind not in self.kinds:
            raise web.HTTPBadRequest
        await self._do(kind)
        await asyncio.sleep(self.answers_late_seconds)
        return web.Response(status=204)

    async def _do(self, kind: str) -> None:
        match kind:
            case "ForceRestart":
                await self._machine.restart("redfish-reset")
            case "PowerCycle":
                await self._machine.restart("redfish-cycle")
            case "ForceOff":
                await self._machine.turn_off("redfish-off")
            case _:
                await self._machine.turn_on("redfish-on")

    def _check(self, request: web.Request) -> None:
        given = request.headers.get("Authorization", "")
        if not hmac.compare_digest(given, self._expected):
            raise web.HTTPUnauthorized
