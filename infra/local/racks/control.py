"""The control side of a rack over HTTP: how its machines are, and what is to go wrong.

``GET /_control/machines`` tells of each; ``POST /_control`` takes a document with names by what
shall happen: ``{"hang": ["rack-1"], "fail": ["rack-2"], "mend": ["rack-3"]}``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from infra.local.racks.resident import Resident

HOST = "127.0.0.1"


async def _hang(resident: Resident) -> None:
    """It answers nothing more, and its worker calls nobody."""
    await resident.machine.hang()


async def _fail(resident: Resident) -> None:
    """Its tasks fail."""
    resident.fail(is_failing=True)


async def _mend(resident: Resident) -> None:
    """Its tasks are done again."""
    resident.fail(is_failing=False)


_DEEDS: Mapping[str, Callable[[Resident], Awaitable[None]]] = {
    "hang": _hang,
    "fail": _fail,
    "mend": _mend,
}


class Control:
    """Serves the residents of one rack, in its loop."""

    def __init__(self, residents: Mapping[str, Resident], *, port: int) -> None:
        self._residents = residents
        self._port = port
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Answer from now on."""
        app = web.Application()
        app.router.add_get("/_control/machines", self._machines)
        app.router.add_post("/_control", self._apply)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, HOST, self._port).start()

    @property
    def url(self) -> str:
        """Where it is, once it is started."""
        assert self._runner is not None
        return f"http://{HOST}:{self._runner.addresses[0][1]}"

    async def close(self) -> None:
        """Answer no more."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _machines(self, _request: web.Request) -> web.Response:
        return web.json_response(
            {
                name: {
                    "condition": resident.machine.condition,
                    "restarts": resident.machine.restarts,
                    "outcomes": resident.outcomes,
                }
                for name, resident in self._residents.items()
            }
        )

    async def _apply(self, request: web.Request) -> web.Response:
        try:
            wanted = self._wanted(await request.json())
        except (ValueError, TypeError, AttributeError) as error:
            raise web.HTTPBadRequest(text=json.dumps({"message": str(error)})) from error
        for deed, resident in wanted:
            await _DEEDS[deed](resident)
        return web.json_response({})

    def _wanted(self, document: Any) -> list[tuple[str, Resident]]:
        """What to do to whom; nothing is done of a document that makes no sense."""
        found = []
        for deed, names in document.items():
            for name in names:
                if deed not in _DEEDS or name not in self._residents:
                    raise ValueError(f"no {deed} of {name}")
                found.append((deed, self._residents[name]))
        return found
