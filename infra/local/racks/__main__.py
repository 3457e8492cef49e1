"""Run a rack of machines with workers: ``python -m infra.local.racks --config FILE --port PORT``.

The file says who the workers are (see ``Config``).  The inventory for an agent, and what it names,
is written beside the file before the port answers.  Read next: ``rack``, ``resident``, ``control``.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from pathlib import Path
from threading import Event
from typing import Any, TypedDict

import aiohttp

from infra.local.machines.assignment import Assignment
from infra.local.machines.behaviour import Behaviour
from infra.local.racks.control import Control
from infra.local.racks.rack import Rack
from infra.local.racks.resident import Resident

LADDER = ("ssh", "redfish-reset", "ipmi-cycle", "pdu")
SSH_SECONDS = 2.0
"""In which a machine answers that does not hang."""
STAYS_SECONDS = 86_400.0
"""Without work; then it asks whether it is still wanted."""
LOOK = {
    "connect_seconds": 0.5,
    "down_within_seconds": 5.0,
    "down_poll_seconds": 0.1,
    "up_within_seconds": 30.0,
    "up_poll_seconds": 0.2,
}


class Config(TypedDict):
    """Whose workers the machines are, and the secret of each by its name."""

    root_url: str
    worker_pool_id: str
    provider_id: str
    worker_group: str
    boot_seconds: float
    poll_seconds: float
    machines: dict[str, str]


class Crew:
    """A rack whose machines have workers, and its control side."""

    def __init__(self, rack: Rack, config: Config, *, port: int) -> None:
        self._rack = rack
        self._config = config
        self._port = port
        self._http: aiohttp.ClientSession
        self._control: Control

    async def start(self) -> str:
        """Let everybody come to work; the URL of the control side."""
        self._http = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60))
        config = self._config
        assignment = Assignment(
            root_url=config["root_url"],
            worker_pool_id=config["worker_pool_id"],
            provider_id=config["provider_id"],
            worker_group=config["worker_group"],
            launch_config_id="",
            worker_config={},
        )
        behaviour = Behaviour(
            poll_seconds=config["poll_seconds"],
            retry_seconds=2 * config["poll_seconds"],
            idle_seconds=STAYS_SECONDS,
        )
        residents = {
            name: Resident(
                self._rack.machine(name),
                assignment,
                secret=secret,
                behaviour=behaviour,
                http=self._http,
            )
            for name, secret in config["machines"].items()
        }
        for resident in residents.values():
            await resident.follow(resident.machine.condition)
        self._control = Control(residents, port=self._port)
        await self._control.start()
        return self._control.url

    async def close(self) -> None:
        """Send everybody home."""
        await self._control.close()
        for name in self._config["machines"]:
            await self._rack.machine(name).stop()
        await self._http.close()


def main(arguments: list[str]) -> None:
    """Run until SIGTERM or Ctrl-C; prints at the end how often each machine was restarted."""
    parser = argparse.ArgumentParser(prog="python -m infra.local.racks")
    parser.add_argument("--config", required=True, type=Path, help="JSON, see Config")
    parser.add_argument("--port", required=True, type=int, help="of the control side")
    given = parser.parse_args(arguments)
    config: Config = json.loads(given.config.read_text())
    stop = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with Rack(config["machines"], boot_seconds=config["boot_seconds"]) as rack:
        rack.write_files(
            given.config.parent,
            worker_group=config["worker_group"],
            look=LOOK,
            ladder=LADDER,
            ssh_seconds=SSH_SECONDS,
        )
        crew = Crew(rack, config, port=given.port)
        rack.do(crew.start())
        stop.wait()
        restarts: dict[str, Any] = {name: rack.machine(name).restarts for name in rack.places}
        rack.do(crew.close())
    print(json.dumps(restarts, sort_keys=True))


if __name__ == "__main__":
    main(sys.argv[1:])
