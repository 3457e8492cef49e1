"""A simulated day, with and without health: a region without capacity, a broken image, a quota.

Ten pools whose load follows the hours of the day, three regions, two machine types; the real
planning and settling code over rows in memory, by a virtual clock.  At nine a region loses its
capacity for two hours, at noon a pool's image breaks until it is replaced three hours later, at
five in the afternoon others use up half of a region's quota for two hours.  It is held against the
same seed without health.  Where to read next: ``day_pool``, then ``day_results``.
"""

from __future__ import annotations

import heapq
import math
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from random import Random
from typing import TYPE_CHECKING

from tests.benchmarks.day_books import PROVIDER, OfferingBook
from tests.benchmarks.day_cloud import DayCloud
from tests.benchmarks.day_pool import DayPool, machines_by_location
from tests.benchmarks.day_results import Outcome, detail, measures
from tests.benchmarks.day_tasks import Task, TaskQueue
from worker_manager.core.model import LaunchConfigHead, Location, Pool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.benchmarks.day_cloud import Machine
    from tests.benchmarks.results import Detail, Measure
    from worker_manager.core.model import WorkerKey

MIDNIGHT = datetime(2026, 1, 5, tzinfo=UTC)
REGIONS = tuple(Location(name) for name in ("us-east-1", "us-west-2", "eu-central-1"))
TYPES = ("m6i.large", "c6i.large")
POOLS = 10
TICK = timedelta(seconds=30)
POLL = timedelta(seconds=20)
"""How often an idle worker asks for work and whether to terminate."""
IDLE = timedelta(seconds=120)
"""After which it leaves by itself."""
PEAK = 1.6
"""Tasks a minute that come to the largest pool at the busiest hour."""
TASK_MINUTES = 12.0
"""Mean; durations are spread exponentially."""
REGISTRATION_SECONDS = 1_800


@dataclass(frozen=True, slots=True)
class Incident:
    """Something that is wrong from hour to hour."""

    name: str
    begin: float
    end: float

    def covers(self, moment: datetime) -> bool:
        """Whether it is wrong at this moment."""
        hour = (moment - MIDNIGHT) / timedelta(hours=1)
        return self.begin <= hour < self.end


CAPACITY = Incident("no capacity in a region", 9, 11)
IMAGE = Incident("a broken image", 12, 15)
QUOTA = Incident("a quota is hit", 17, 19)
DARK_REGION, SCARCE_REGION = REGIONS[0], REGIONS[1]
QUOTA_LEFT = 0.5
"""Others use up so much of the quota that this part of what runs there is what we may have."""
IMAGE_POOL = 0
"""The largest pool gets the broken image."""
FIRST, BROKEN, GOOD = "image-1", "image-2", "image-3"


def a_pool(number: int, *, image: str) -> Pool:
    """A pool with a launch config for each region and type; another image, other ids."""
    born = MIDNIGHT - timedelta(days=1)
    heads = tuple(
        LaunchConfigHead(
            launch_config_id=f"lc-{number}-{region}-{kind}-{image}",
            location=region,
            manager={},
            capacity_per_instance=1,
            modified=born,
            offering=f"{region}/{kind}/spot",
        )
        for region in REGIONS
        for kind in TYPES
    )
    return Pool(
        pool_id=f"day/pool-{number}",
        provider_id=PROVIDER,
        description="",
        owner="owner@example.com",
        email_on_error=False,
        config={
            "minCapacity": 0,
            "maxCapacity": 60,
            "lifecycle": {"registrationTimeout": REGISTRATION_SECONDS},
        },
        heads=heads,
        created=born,
        modified=born,
        version=1,
    )


@dataclass
class Day:
    """One run."""

    seed: int
    heals: bool
    hours: float
    now: datetime = MIDNIGHT
    pools: list[DayPool] = field(default_factory=list)
    queues: list[TaskQueue] = field(default_factory=list)
    first_wave: int = 0
    _events: list[tuple[datetime, int, Callable[[], None]]] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        """Pools without machines, and everybody's tasks of the whole day."""
        self.cloud = DayCloud(Random(f"{self.seed} cloud"))
        self.offerings = OfferingBook()
        for number in range(POOLS):
            pool = a_pool(number, image=FIRST)
            self.queues.append(TaskQueue())
            self.pools.append(
                DayPool(
                    pool=pool,
                    images=_images(pool, FIRST),
                    cloud=self.cloud,
                    offerings=self.offerings,
                    booting=self._booter(number),
                    ending=self.queues[number].forget,
                    heals=self.heals,
                )
            )
            for task in tasks_of(number, seed=self.seed, hours=self.hours):
                self._at(task.created, self._arrival(number, task))

    def run(self) -> Outcome:
        """All ticks of the day, and three hours more for what is left."""
        last = MIDNIGHT + timedelta(hours=self.hours + 3)
        for tick in range(int((last - MIDNIGHT) / TICK)):
            self._until(MIDNIGHT + tick * TICK)
            self._let_things_go_wrong()
            self._provision(f"{tick:05d}")
            if tick % 2 == 1:
                self._scan()
        self.cloud.close(self.now)
        unserved = sum(len(queue.pending) for queue in self.queues)
        return Outcome(self.cloud, self.queues, unserved, IMAGE_POOL, self.first_wave)

    def _at(self, moment: datetime, happens: Callable[[], None]) -> None:
        heapq.heappush(self._events, (moment, next(self._numbers), happens))

    def _until(self, moment: datetime) -> None:
        while self._events and self._events[0][0] <= moment:
            self.now, _, happens = heapq.heappop(self._events)
            happens()
        self.now = moment

    def _let_things_go_wrong(self) -> None:
        dark = {f"{DARK_REGION}/{kind}/spot": 0 for kind in TYPES}
        self.cloud.capacity = dark if CAPACITY.covers(self.now) else {}
        if not QUOTA.covers(self.now):
            self.cloud.quota = {}
        elif not self.cloud.quota:
            running = machines_by_location(self.cloud)[SCARCE_REGION]
            self.cloud.quota = {SCARCE_REGION: round(running * QUOTA_LEFT)}
        if IMAGE.covers(self.now) and not self.cloud.broken_images:
            self.cloud.broken_images = {BROKEN}
            self._roll_out(BROKEN)
        elif self.cloud.broken_images and not IMAGE.covers(self.now):
            self.cloud.broken_images = set()
            self._roll_out(GOOD)

    def _roll_out(self, image: str) -> None:
        """Another image makes other launch configs: the old ones are archived."""
        pool = self.pools[IMAGE_POOL]
        pool.pool = a_pool(IMAGE_POOL, image=image)
        pool.images = {**pool.images, **_images(pool.pool, image)}

    def _provision(self, tick: str) -> None:
        """What a tick's messages bring along is the same for all of its pools."""
        around = self.offerings.brought_along(machines_by_location(self.cloud), self.now)
        order = list(zip(self.pools, self.queues, strict=True))
        Random(tick).shuffle(order)
        for pool, queue in order:
            pool.provision(
                tick,
                demand=queue.counts,
                busy=frozenset(queue.working),
                around=around,
                now=self.now,
            )

    def _scan(self) -> None:
        seen = {region: self.cloud.list(region, self.now) for region in REGIONS}
        for pool, queue in zip(self.pools, self.queues, strict=True):
            for key in queue.working:
                pool.heard_of(key, self.now)
            pool.scan(seen, self.now)
        if not self.first_wave:
            self.first_wave = self._first_wave()

    def _first_wave(self) -> int:
        """Machines of the broken image, once the first of them is told to go."""
        broken = [m for m in self.cloud.machines.values() if m.boots_at is None]
        return len(broken) if any(m.told is not None for m in broken) else 0

    def _booter(self, number: int) -> Callable[[Machine], None]:
        def booting(machine: Machine) -> None:
            if machine.boots_at is not None:
                self._at(machine.boots_at, lambda: self._up(number, machine))

        return booting

    def _arrival(self, number: int, task: Task) -> Callable[[], None]:
        def arrive() -> None:
            queue = self.queues[number]
            queue.pending.append(task)
            if queue.idle:
                longest = min(queue.idle, key=lambda key: queue.idle[key])
                self._ask_for_work(number, longest)

        return arrive

    def _up(self, number: int, machine: Machine) -> None:
        if self.pools[number].register(machine, self.now):
            machine.has_asked_for_work = True
            self._ask_for_work(number, machine.key)

    def _ask_for_work(self, number: int, key: WorkerKey) -> None:
        """Begin a task, or come back in a while."""
        queue = self.queues[number]
        was_idle = key in queue.idle
        task = queue.claim(key, self.now)
        if task is not None:
            self.cloud.machines[key].has_worked = True
            self._at(self.now + task.lasts, lambda: self._done(number, key))
        elif not was_idle:
            self._at(self.now + POLL, lambda: self._poll(number, key))

    def _done(self, number: int, key: WorkerKey) -> None:
        queue, pool = self.queues[number], self.pools[number]
        if key not in queue.working:
            return
        queue.working.discard(key)
        pool.heard_of(key, self.now)
        if pool.should_terminate(key):
            pool.remove(key, self.now)
        else:
            self._ask_for_work(number, key)

    def _poll(self, number: int, key: WorkerKey) -> None:
        """An idle worker asks whether to go on."""
        queue, pool = self.queues[number], self.pools[number]
        since = queue.idle.get(key)
        if since is None:
            return
        pool.heard_of(key, self.now)
        if pool.should_terminate(key) or self.now - since >= IDLE:
            pool.remove(key, self.now)
        else:
            self._at(self.now + POLL, lambda: self._poll(number, key))


def _images(pool: Pool, image: str) -> dict[str, str]:
    return {head.launch_config_id: image for head in pool.heads}


def tasks_of(number: int, *, seed: int, hours: float) -> Iterator[Task]:
    """A pool's tasks: Poisson, a tenth as many at night as at one in the afternoon."""
    rng = Random(f"{seed} tasks {number}")
    peak = PEAK * (1 - number / (2 * POOLS))
    moment = MIDNIGHT
    while True:
        moment += timedelta(minutes=rng.expovariate(peak))
        hour = (moment - MIDNIGHT) / timedelta(hours=1)
        if hour >= hours:
            return
        busy = 0.55 - 0.45 * math.cos((hour - 1) / 12 * math.pi)
        if rng.random() < busy:
            lasts = timedelta(minutes=rng.expovariate(1 / TASK_MINUTES))
            yield Task(moment, max(lasts, timedelta(seconds=20)))


def simulate(*, seed: int = 1, heals: bool, hours: float = 24.0) -> Outcome:
    """Run a day."""
    return Day(seed, heals, hours).run()


def measure_day(*, scale: float = 1.0) -> tuple[list[Measure], Detail]:
    """The same day twice; ``scale`` is of its length."""
    began = time.process_time()
    healing = simulate(heals=True, hours=24 * scale)
    plain = simulate(heals=False, hours=24 * scale)
    seconds = time.process_time() - began
    return measures(healing, plain, seconds=seconds), detail(healing, plain)
