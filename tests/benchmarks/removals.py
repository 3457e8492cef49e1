"""Removing workers through the API while all fleets are being scanned, until their delete call.

B08: in the reference a removed worker waited for the scanner's turn, up to hours.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from statistics import quantiles
from threading import Lock
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tests.api.world import Api
from tests.benchmarks.fleets import scan_all, stand
from tests.benchmarks.results import Measure
from worker_manager.core.messages import Terminate, advance_from_json
from worker_manager.reconcile.advance import advance
from worker_manager.settings import ProviderSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.benchmarks.world import World
    from worker_manager.core.model import WorkerKey

REMOVALS = 30
"""Of each cloud, one after the other."""
ROOT_URL = "https://tc.example.com"


@dataclass(frozen=True, slots=True)
class Operator:
    """Somebody with all scopes."""

    api: Api

    def remove(self, key: WorkerKey) -> None:
        """As ``removeWorker`` is called; raises ``RuntimeError`` for a refusal."""
        path = "/".join(quote(part, safe="") for part in (key.pool_id, key.group, key.worker_id))
        answer = self.api("DELETE", f"workers/{path}")
        if answer.status != 200:
            raise RuntimeError(f"{key}: {answer.body}")


class Removals:
    """When removals were asked for, and when their delete calls were answered."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._asked: dict[WorkerKey, float] = {}
        self._answered: dict[WorkerKey, float] = {}

    def remove(self, api: Operator, key: WorkerKey) -> None:
        """Ask for one."""
        self._asked[key] = time.perf_counter()
        api.remove(key)

    def handler(self, world: World) -> Callable[[Any], None]:
        """What takes the messages of a world's queue ``advance``."""

        def handle(body: Any) -> None:
            message = advance_from_json(body)
            failed = advance([message], world.deps)
            if isinstance(message, Terminate) and not failed:
                with self._lock:
                    self._answered.setdefault(message.key, time.perf_counter())

        return handle

    def waits(self) -> list[float]:
        """Seconds between the two, of those that were answered."""
        with self._lock:
            return [moment - self._asked[key] for key, moment in self._answered.items()]


def operator(worlds: Mapping[str, World]) -> Operator:
    """The API in front of these worlds."""
    first = next(iter(worlds.values()))
    api = Api(first.tables, first.deps.clock, ROOT_URL)
    api.works_with(
        providers={name: ProviderSettings(name, name) for name in worlds},
        senders={name: world.deps.senders for name, world in worlds.items()},
    )
    return Operator(api)


def measure_removals(worlds: Mapping[str, World], *, scale: float = 1.0) -> list[Measure]:
    """Seconds from the call of ``removeWorker`` until the cloud has answered the delete."""
    fleets = stand(worlds, scale)
    scan_all(worlds)
    each = max(2, round(REMOVALS * scale))
    asked = Removals()
    for world in worlds.values():
        world.handle(**world.delivery.handlers, advance=asked.handler(world))
    api = operator(worlds)
    with ThreadPoolExecutor(1) as beside:
        scanning = beside.submit(scan_all, worlds)
        for number in range(each):
            for rows in fleets.values():
                asked.remove(api, rows[number * len(rows) // each].key)
        seconds = scanning.result()
    for world in worlds.values():
        world.delivery.drain(seconds=60)
    waits = sorted(asked.waits())
    return [
        Measure("removal_p95_seconds", round(quantiles(waits, n=20)[-1], 2), "s", 5),
        Measure("removal_worst_seconds", round(waits[-1], 2), "s", 5),
        Measure("removals_lost", len(fleets) * each - len(waits), "removals", 0),
        Measure("removal_scan_seconds", round(max(seconds.values()), 2), "s", 15),
    ]
