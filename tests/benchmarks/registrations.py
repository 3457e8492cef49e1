"""A burst of registrations on the deployed system.

Real machines of the simulated EC2, ordered by the deployed functions, each with its own signed
identity document, register at a steady rate (B02: that is when the reference's web tier died).
They retry as stock workers do: a 5xx after the time that Retry-After names, a 4xx never.  What must
hold is in ``Burst.measures``; a short version of the same is a journey.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import requests

from infra.local.samples import launch_config
from infra.local.stage import LocalStage
from tests.benchmarks.results import Measure
from tests.journeys.world import BASE, DEAF_IMAGE, EC2_CONFIG, World, a_pool, until

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parents[2]
RATE = 34
"""Registrations a second: 2,000 a minute."""
SECONDS = 60
PATIENCE_SECONDS = 90
"""After which every machine must be registered, counted from the first one's attempt."""
POOLS = 40
MOST_TICKS = 5
"""Of pools whose machines are not there yet."""
REGION = "eu-west-1"


@dataclass
class Burst:
    """What came of a burst.

    ``answers`` counts (status, has Retry-After); the status of a call without answer is 0.
    """

    machines: int
    answers: Counter[tuple[int, bool]] = field(default_factory=Counter)
    registered_after: list[float] = field(default_factory=list)
    """Seconds from the burst's begin to each registration."""

    @property
    def wrong_answers(self) -> int:
        """Answers that a stock worker should never see: anything but 200 and a polite 503."""
        right = self.answers[200, False] + self.answers[503, True]
        return self.answers.total() - right

    @property
    def last(self) -> float:
        """When the last machine was registered."""
        return max(self.registered_after, default=0.0)

    def measures(self, *, within: float) -> list[Measure]:
        """What is promised, and how it was kept."""
        return [
            Measure("burst_registrations_wrong_answers", self.wrong_answers, "calls", 0),
            Measure(
                "burst_registrations_missing",
                self.machines - len(self.registered_after),
                "machines",
                0,
            ),
            Measure("burst_registrations_seconds", round(self.last, 1), "s", within),
        ]


async def burst(
    root_url: str, bodies: Sequence[dict[str, Any]], *, rate: float, patience_seconds: float
) -> Burst:
    """Register a machine with each body, ``rate`` of them a second."""
    found = Burst(len(bodies))
    began = time.monotonic()
    timeout = aiohttp.ClientTimeout(total=30)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(root_url, timeout=timeout, connector=connector) as http:

        async def one(number: int, body: dict[str, Any]) -> None:
            await asyncio.sleep(began + number / rate - time.monotonic())
            while time.monotonic() - began < patience_seconds:
                wait_seconds = await _attempt(http, body, found)
                if wait_seconds is None:
                    found.registered_after.append(time.monotonic() - began)
                    return
                await asyncio.sleep(wait_seconds)

        await asyncio.gather(*(one(number, body) for number, body in enumerate(bodies)))
    return found


async def _attempt(http: aiohttp.ClientSession, body: dict[str, Any], found: Burst) -> float | None:
    """Seconds to wait before the next attempt; ``None`` if there need be none."""
    status, retry_after = 0, None
    with suppress(aiohttp.ClientError, TimeoutError):
        async with http.post(f"{BASE}/worker/register", json=body) as answer:
            await answer.read()
        status, retry_after = answer.status, answer.headers.get("Retry-After")
    found.answers[status, retry_after is not None] += 1
    if status == 200:
        return None
    return float(retry_after or 5)


def prepare(world: World, *, machines: int, pools: int, prefix: str) -> list[dict[str, Any]]:
    """Have machines launched in new pools; what each of them sends to register.

    Their region is none that others use: so many machines at once would move its breaker.
    """
    each = machines // pools
    ids = [f"{prefix}/pool-{number}" for number in range(pools)]
    configs = [launch_config("lc-deaf", REGION, image=DEAF_IMAGE)]
    for pool_id in ids:
        world.manager.createWorkerPool(pool_id, a_pool(configs, minimum=each, maximum=each))
    bodies: list[list[dict[str, Any]]] = []
    for pool_id in ids:
        workers = _requested(world, pool_id, each)
        bodies.append([world.registration(worker) for worker in workers])
    return [body for together in zip(*bodies, strict=True) for body in together]


def _requested(world: World, pool_id: str, count: int) -> list[dict[str, Any]]:
    """The pool's workers; a tick repairs what was too busy to be done when the pool was made."""

    def all_of_them() -> list[dict[str, Any]]:
        found = world.workers(pool_id)
        return found if len(found) == count else []

    for _ in range(MOST_TICKS):
        with suppress(AssertionError):
            return until(all_of_them, seconds=30)
        world.tick()
    return until(all_of_them, seconds=30)


def measure_registrations(*, scale: float = 1.0) -> list[Measure]:
    """The burst on a stage of its own, deployed for it; ``scale`` is of its length."""
    pools = max(1, round(POOLS * scale))
    machines = round(RATE * SECONDS * scale / pools) * pools
    folder = ROOT / "build" / "bench" / "registrations"
    with (
        LocalStage(folder=folder, schedules=False, clouds={"ec2": EC2_CONFIG}) as stage,
        requests.Session() as http,
    ):
        http.trust_env = False
        bodies = prepare(World(stage, http), machines=machines, pools=pools, prefix="burst")
        found = asyncio.run(
            burst(stage.root_url, bodies, rate=RATE, patience_seconds=PATIENCE_SECONDS)
        )
    return found.measures(within=PATIENCE_SECONDS)
