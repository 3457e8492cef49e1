"""A rack of simulated machines, with all that an agent needs to know of them.

It lives in a thread with a loop of its own; ``do`` lets something happen there.
"""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import asyncssh

from infra.local.racks.controller import Controller, serve_all
from infra.local.racks.login import HOST, USER, Login
from infra.local.racks.machine import RackMachine
from infra.local.racks.outlets import PowerUnit
from infra.local.racks.redfish import SYSTEM, RedfishService

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable
    from pathlib import Path
    from types import TracebackType
    from typing import Self

PASSWORD = "correct-horse-battery"
AUTH_KEY = "an-auth-key-of-the-rack"
PRIV_KEY = "a-priv-key-of-the-rack"
COMMUNITY = "the-community-of-the-rack"
SECRETS = (PASSWORD, AUTH_KEY, PRIV_KEY, COMMUNITY)
OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Place:
    """A machine in the rack, and all that is beside it."""

    machine: RackMachine
    login: Login
    controller: Controller
    redfish: RedfishService
    outlet: str


class Rack:
    """Some machines, up when entered."""

    def __init__(self, names: Iterable[str], *, boot_seconds: float = 5.0) -> None:
        self._names = tuple(names)
        self._boot_seconds = boot_seconds
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="rack", daemon=True)
        self._client_key = asyncssh.generate_private_key("ssh-ed25519")
        self._host_key = asyncssh.generate_private_key("ssh-ed25519")
        self.unit: PowerUnit
        self.places: dict[str, Place] = {}

    def __enter__(self) -> Self:
        self._thread.start()
        self.do(self._start())
        serve_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.do(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def do(self, what: Coroutine[Any, Any, Any]) -> Any:
        """Let something happen in the rack, and wait for it."""
        return asyncio.run_coroutine_threadsafe(what, self._loop).result(30)

    def machine(self, name: str) -> RackMachine:
        """A machine by its name."""
        return self.places[name].machine

    def write_files(
        self,
        folder: Path,
        *,
        worker_group: str,
        look: dict[str, Any],
        ladder: Iterable[str] | None = None,
        ticket_url: str | None = None,
        ssh_seconds: float | None = None,
    ) -> Path:
        """The inventory and the secrets that it names; the path of the inventory.

        ``ssh_seconds`` is how long the agent waits for a login, if not as long as it usually does.
        """
        self._client_key.write_private_key(folder / "key")
        (folder / "key").chmod(0o600)
        public = self._host_key.export_public_key().decode().strip()
        lines = [f"[{HOST}]:{each.login.port} {public}" for each in self.places.values()]
        (folder / "known_hosts").write_text("\n".join(lines) + "\n")
        for name, secret in zip(("password", "auth", "priv"), SECRETS, strict=False):
            (folder / name).touch(mode=0o600)
            (folder / name).write_text(secret)
        path = folder / "inventory.toml"
        tables = [
            self._host(
                place, worker_group, look, ladder, ticket_url=ticket_url, ssh_seconds=ssh_seconds
            )
            for place in self.places.values()
        ]
        path.write_text("\n".join(tables))
        return path

    def _host(
        self,
        place: Place,
        worker_group: str,
        look: dict[str, Any],
        ladder: Iterable[str] | None,
        *,
        ticket_url: str | None,
        ssh_seconds: float | None,
    ) -> str:
        password = {"file": "password"}
        address = {"address": HOST}
        port = place.login.port
        tables: dict[str, dict[str, Any]] = {
            "look": {"port": port, **look},
            "ssh": {"user": USER, "port": port, "key": "key", "known_hosts": "known_hosts"},
            "ipmi": {
                **address,
                "port": place.controller.udp_port,
                "user": OPERATOR,
                "password": password,
            },
            "redfish": {
                "url": f"http://{HOST}:{place.redfish.port}",
                "system": SYSTEM,
                "user": OPERATOR,
                "password": password,
                "off_seconds": 0.1,
            },
            "pdu": {
                **address,
                "port": self.unit.port,
                "outlet": place.outlet,
                "off_seconds": 0.1,
                "v3": {
                    "name": OPERATOR,
                    "auth_key": {"file": "auth"},
                    "priv_key": {"file": "priv"},
                },
            },
        }
        if ssh_seconds is not None:
            tables["ssh"]["timeout_seconds"] = ssh_seconds
        if ticket_url is not None:
            text = "{host} of {worker} needs a person: {attempts}"
            tables["ticket"] = {"url": ticket_url, "body": {"text": text, "run": "{run}"}}
        host: dict[str, Any] = {
            "worker_group": worker_group,
            "worker_id": place.machine.name,
            **address,
            **tables,
        }
        if ladder is not None:
            host["ladder"] = list(ladder)
        return "[[host]]\n" + "".join(f"{name} = {_toml(host[name])}\n" for name in host)

    async def _start(self) -> None:
        self.unit = PowerUnit(
            user=OPERATOR, auth_key=AUTH_KEY, priv_key=PRIV_KEY, community=COMMUNITY
        )
        for number, name in enumerate(self._names, 1):
            machine = RackMachine(name, boot_seconds=self._boot_seconds)
            login = Login(machine, host_key=self._host_key, client_key=self._client_key)
            controller = Controller(machine, self._loop, passwords={OPERATOR: PASSWORD})
            redfish = RedfishService(machine, user=OPERATOR, password=PASSWORD)
            place = Place(machine, login, controller, redfish, f"aa{number}")
            self.unit.feed(place.outlet, machine)
            self.places[name] = place
            await redfish.start()
            await machine.come_up()
        await self.unit.start()

    async def _close(self) -> None:
        for place in self.places.values():
            await place.machine.stop()
            await place.redfish.close()
        await self.unit.close()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await asyncio.sleep(0.01)


def _toml(value: Any) -> str:
    """A value as TOML writes it within one line."""
    if isinstance(value, dict):
        pairs = ", ".join(f"{name} = {_toml(each)}" for name, each in value.items())
        return f"{{ {pairs} }}"
    return json.dumps(value)
