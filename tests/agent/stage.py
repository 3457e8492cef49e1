"""A rack, the registry's real API before it, and agents that can be killed between the two."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from infra.local.racks.machine import Condition
from tests.action_tables import an_action
from tests.api.registry_world import BASE, POOL, TYPE, RegistryApi
from tests.api.world import TOKEN, Clock
from tests.http_server import serving
from worker_manager.actions.declared import to_json
from worker_manager.core.ids import derived_slugid
from worker_manager.core.model import WorkerKey
from worker_manager.registry.observations import Kind, Observation
from worker_manager.taskcluster.clients import Client
from worker_manager_agent.config import Config, Credentials, Settings
from worker_manager_agent.inventory import load_inventory
from worker_manager_agent.service import Agent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from infra.local.racks.rack import Rack
    from worker_manager.store.tables import Tables

GROUP, NAME = "rack-1", "m-1"
RUN = derived_slugid("run")
QUICK = {
    "connect_seconds": 0.06,
    "down_within_seconds": 0.2,
    "down_poll_seconds": 0.02,
    "up_within_seconds": 0.7,
    "up_poll_seconds": 0.02,
}
PATIENCE_SECONDS = 20.0
DROPPED = "dropped"
"""What is returned before a request that then never arrives."""


class MovableClock(Clock):
    """The real time, and as much more as a test says."""

    ahead = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead


class Stage:
    """Requests of agents pass ``before`` and ``after``, by what they are about.

    These are names as ``begin 2``, ``end 2``, ``resolve``, ``claim``, ``heartbeat`` and ``log``.
    """

    def __init__(self, tables: Tables, rack: Rack, root_url: str) -> None:
        self.rack = rack
        self.machine = rack.machine(NAME)
        self.clock = MovableClock()
        self.api = RegistryApi(
            tables,
            root_url=root_url,
            clients=[Client("test/dc1", TOKEN, ("worker-registry:agent:dc1",))],
            clock=self.clock,
        )
        self.before: dict[str, Callable[[], object]] = {}
        self.after: dict[str, Callable[[], object]] = {}
        self._running = threading.Lock()
        self._one_by_one = threading.Lock()

    def handle(self, event: dict[str, Any]) -> dict[str, Any]:
        what = _about(event)
        with self._running:
            pass
        if self.before.pop(what, lambda: None)() is DROPPED:
            return {"statusCode": 503, "headers": {}, "body": "{}"}
        with self._one_by_one:
            answer = self.api.app.handle(event)
        self.after.pop(what, lambda: None)()
        return answer

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """No request is answered meanwhile."""
        with self._running:
            yield

    def see(self, *, ago: timedelta = timedelta()) -> None:
        """The machine's worker calls for work."""
        key = WorkerKey(POOL, GROUP, NAME)
        self.api.registry.observe([Observation(key, Kind.IDLE, self.clock() - ago)])

    def ask(self, **more: Any) -> None:
        """An operator wants a reboot of the machine."""
        path = f"{BASE}{TYPE}/workers/{GROUP}/{NAME}/actions/reboot"
        response = self.api("POST", path, {"requestId": RUN, "level": "worker-type", **more})
        assert response.status in (200, 202), response.body

    def run(self) -> Any:
        """The run, as it is told."""
        return self.api.ok("GET", f"{BASE}/action-runs/{RUN}")

    def settled(self) -> Any:
        """The run, after a minute's sweep."""
        self.api.runs.settle(RUN, now=self.clock())
        return self.run()

    def wait(self, until: Callable[[Any], object]) -> Any:
        """The run, once it is as wanted."""
        end = time.monotonic() + PATIENCE_SECONDS
        while not until(run := self.run()):
            assert time.monotonic() < end, run
            time.sleep(0.01)
        return run


def _about(event: dict[str, Any]) -> str:
    last = event["path"].rpartition("/")[2]
    body = json.loads(event["body"] or "{}")
    for word in ("begin", "end"):
        if word in body:
            return f"{word} {body[word]['number']}"
    return "log" if "log" in body else str(last)


def is_done(run: Any) -> bool:
    return "ended" in run or "verified" in run


class Living:
    """An agent in a thread of its own."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._thread.start()
        assert self._ready.wait(PATIENCE_SECONDS)

    def kill(self) -> None:
        """Stop whatever it does, wherever it is."""
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._loop.call_soon_threadsafe(self._task.cancel)
            self._thread.join(PATIENCE_SECONDS)
            assert not self._thread.is_alive()

    def stop(self) -> None:
        """Ask it to come to an end, and wait."""
        self.ask_to_stop()
        self.join()

    def ask_to_stop(self) -> None:
        """As a signal does."""
        self._loop.call_soon_threadsafe(self._agent.stop)

    def join(self) -> None:
        """Wait until it has come to an end."""
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive()

    def _live(self) -> None:
        async def live() -> None:
            self._agent = Agent(self._config)
            self._task = asyncio.ensure_future(self._agent.run())
            self._ready.set()
            await self._task

        runner = asyncio.Runner(loop_factory=lambda: self._loop)
        with runner, contextlib.suppress(asyncio.CancelledError):
            runner.run(live())


def a_config(inventory: Path, root_url: str, **settings: Any) -> Config:
    """What an agent starts with; its times are short."""
    given = {
        "root_url": root_url,
        "agent_id": "dc1",
        "inventory": str(inventory),
        "task_queues": [POOL],
        "poll_seconds": 0.05,
        "heartbeat_seconds": 0.1,
        "retry_seconds": 0.02,
        "stop_seconds": 0.0,
    }
    return Config(
        Settings.model_validate(given | settings),
        Credentials.model_validate({"client_id": "test/dc1", "access_token": TOKEN}),
        load_inventory(inventory, {}),
    )


@contextlib.contextmanager
def a_stage(tables: Tables, rack: Rack) -> Iterator[tuple[Stage, str]]:
    """A stage and its root URL, with the machine up, and an agent's reboot declared."""
    stages: list[Stage] = []

    def handle(url: str) -> Any:
        stages.append(Stage(tables, rack, url))
        return stages[0].handle

    with serving(handle) as url:
        stage = stages[0]
        reset(rack)
        stage.api.ok("PUT", f"{BASE}{TYPE}", {"actions": [to_json(an_action())]})
        yield stage, url


def reset(rack: Rack) -> None:
    """Let every machine be as when it was new, and up."""
    for place in rack.places.values():
        place.machine.restarts.clear()
        place.machine.deaf_to.clear()
        place.machine.is_dead = False
        place.redfish.answers_late_seconds = 0.0
        if place.machine.condition is not Condition.UP:
            rack.do(place.machine.come_up())
