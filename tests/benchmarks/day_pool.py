"""One pool of the simulated day: rows in memory, and the steps of ``reconcile`` around the core.

``provision`` and ``scan`` here keep the order of steps of ``reconcile.provision`` and
``reconcile.scan``; every judgement is the core's.  Without healing the planning is told nothing of
outcomes.  Where to read next: ``day_cloud``, ``day``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, assert_never

from tests.benchmarks.day_books import PROVIDER, HealthBook
from worker_manager.core import surplus
from worker_manager.core.activity import Activity, QueueCounts
from worker_manager.core.breaker import SHARED_KINDS
from worker_manager.core.lifecycle import (
    Gone,
    Keep,
    Launched,
    Note,
    Stop,
    StopAgain,
    Verdict,
    settle,
)
from worker_manager.core.model import Location, MachineStatus, State, Worker, WorkerKey
from worker_manager.core.planning import Decision, as_plan, decide
from worker_manager.core.plans import Control
from worker_manager.core.sightings import match
from worker_manager.core.timing import Timing
from worker_manager.observing import Around, observe
from worker_manager.reconcile.healing import confirm

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from tests.benchmarks.day_books import OfferingBook
    from tests.benchmarks.day_cloud import DayCloud, Machine
    from worker_manager.core.breaker import Breaker
    from worker_manager.core.facts import Facts
    from worker_manager.core.model import Pool, Sighting
    from worker_manager.core.plans import Order

TIMING = Timing()


@dataclass
class DayPool:
    """A pool, its rows, and what it remembers.

    ``images`` are by launch config.  ``booting`` is told of each machine that was granted,
    ``ending`` of each worker that is taken away.
    """

    pool: Pool
    images: Mapping[str, str]
    cloud: DayCloud
    offerings: OfferingBook
    booting: Callable[[Machine], None]
    ending: Callable[[WorkerKey], None]
    heals: bool
    workers: dict[WorkerKey, Worker] = field(default_factory=dict)
    health: HealthBook = field(default_factory=HealthBook)
    activity: dict[WorkerKey, Activity] = field(default_factory=dict)
    control: Control = field(init=False)

    def __post_init__(self) -> None:
        """With nothing to remember yet."""
        self.control = Control(self.pool.pool_id)

    def provision(
        self,
        tick: str,
        *,
        demand: QueueCounts,
        busy: frozenset[WorkerKey],
        around: Mapping[str, Breaker],
        now: datetime,
    ) -> None:
        """One tick: observe, decide, launch, say who may go."""
        facts = self._observe(demand, around, now)
        decision = decide(facts, Random(f"{self.pool.pool_id}@{tick}"))
        if self.heals:
            decision = confirm(decision, facts, self.offerings.deps())
        if self.heals:
            self.control = replace(
                self.control,
                breakers=decision.probing.breakers,
                probed=decision.probing.probed,
                probe_wait=decision.probing.wait,
            )
        if decision.choices:
            plan = as_plan(decision, facts, tick=tick, provider_id=PROVIDER, inputs={})
            for order in plan.orders:
                self._launch(order, now)
        self._let_go(facts, decision, busy)

    def scan(self, seen: Mapping[Location, Sequence[Sighting]], now: datetime) -> None:
        """Settle every worker of the listed locations."""
        by_location: dict[Location, list[Worker]] = defaultdict(list)
        for worker in self.workers.values():
            by_location[worker.location].append(worker)
        for location, rows in by_location.items():
            sightings = [s for s in seen[location] if s.key.pool_id == self.pool.pool_id]
            found = match(rows, sightings, listed_at=now, list_lag=TIMING.list_lag)
            for worker, sighting in found.seen:
                self._write(worker, self._judge(worker, sighting.status, now), now)
            for worker in found.missing:
                self._write(worker, self._judge(worker, MachineStatus.GONE, now), now)

    def register(self, machine: Machine, now: datetime) -> bool:
        """The machine is up; whether it is still wanted."""
        worker = self.workers.get(machine.key)
        if worker is None or worker.state is not State.REQUESTED:
            return False
        self.workers[machine.key] = replace(
            worker,
            state=State.RUNNING,
            registered=now,
            modified=now,
            deadline=now + worker.reregistration,
        )
        self.health.add(machine.order.launch_config_id, now, registered=1)
        self.heard_of(machine.key, now)
        return True

    def heard_of(self, key: WorkerKey, now: datetime) -> None:
        """A worker asked the queue for work, or worked."""
        before = self.activity.get(key)
        self.activity[key] = Activity(before.first_claim if before else now, now)

    def should_terminate(self, key: WorkerKey) -> bool:
        """What the API would answer."""
        worker = self.workers.get(key)
        return worker is None or (worker.surplus is not None and worker.surplus.terminate)

    def remove(self, key: WorkerKey, now: datetime) -> None:
        """The worker takes its leave."""
        worker = self.workers.get(key)
        if worker is not None:
            self._stop(worker, "removed", now)

    def _observe(self, demand: QueueCounts, around: Mapping[str, Breaker], now: datetime) -> Facts:
        """The eyes of ``observing``, over what is in memory; without healing all looks well."""
        stores: Any = SimpleNamespace(
            plans=SimpleNamespace(open_plans=lambda _: ()),
            workers=SimpleNamespace(live=lambda _: self.workers.values()),
            health=self.health,
        )
        queue: Any = SimpleNamespace(counts=lambda _: demand)
        facts = observe(
            self.pool,
            self.control,
            Around(offerings=around),
            stores=stores,
            queue=queue,
            timing=TIMING,
            now=now,
        )
        return facts if self.heals else replace(facts, health={}, breakers={}, offerings={})

    def _launch(self, order: Order, now: datetime) -> None:
        name = order.launch_config_id
        granted, kind = self.cloud.launch(
            order, pool_id=self.pool.pool_id, image=self.images[name], now=now
        )
        for machine in granted:
            self.workers[machine.key] = self._row(machine, order, now)
            self.booting(machine)
        self.health.add(
            name,
            now,
            failed=kind,
            failures=order.count - len(granted),
            requested=order.count,
            launched=len(granted),
        )
        if kind in SHARED_KINDS:
            self.offerings.failed(order.offering, kind, now)
        elif kind is None and order.is_probe:
            self.offerings.worked(order.offering, now)

    def _row(self, machine: Machine, order: Order, now: datetime) -> Worker:
        lifecycle = self.pool.lifecycle
        return Worker(
            key=machine.key,
            provider_id=PROVIDER,
            location=machine.location,
            state=State.REQUESTED,
            capacity=order.capacity_per_instance,
            created=now,
            modified=now,
            version=1,
            launch_config_id=order.launch_config_id,
            order_id=order.order_id,
            deadline=now + max(TIMING.launch, lifecycle.registration_limit),
            registration=lifecycle.registration_limit,
            reregistration=lifecycle.reregistration,
            queue_inactivity=lifecycle.queue_inactivity,
        )

    def _let_go(self, facts: Facts, decision: Decision, busy: frozenset[WorkerKey]) -> None:
        if decision.estimate is None:
            return
        active = {head.launch_config_id for head in self.pool.heads}
        standing = surplus.weigh(
            facts.workers, active, target=decision.estimate.target, now=facts.now
        )
        for worker, answer in surplus.decide(standing, busy=busy, now=facts.now):
            self.workers[worker.key] = replace(worker, surplus=answer)

    def _judge(self, worker: Worker, status: MachineStatus, now: datetime) -> Verdict:
        return settle(
            worker,
            status,
            self.activity.get(worker.key),
            activity_known=True,
            now=now,
            timing=TIMING,
        )

    def _write(self, worker: Worker, verdict: Verdict, now: datetime) -> None:
        match verdict:
            case Keep():
                pass
            case Note(first_claim=first_claim):
                self.workers[worker.key] = replace(worker, first_claim=first_claim)
                if worker.first_claim is None and worker.launch_config_id:
                    self.health.add(worker.launch_config_id, now, claimed=1)
            case Launched(deadline=deadline):
                self.workers[worker.key] = replace(worker, launched=now, deadline=deadline)
            case Stop(reason=reason, failure=failure):
                self._blame(worker, failure, now)
                self._stop(worker, reason, now)
            case Gone(failure=failure):
                self._blame(worker, failure, now)
                del self.workers[worker.key]
                self.activity.pop(worker.key, None)
                self.ending(worker.key)
            case StopAgain():
                self.cloud.terminate(worker.key, now)
            case _:
                assert_never(verdict)

    def _blame(self, worker: Worker, failure: str | None, now: datetime) -> None:
        if failure is not None and worker.launch_config_id:
            self.health.add(worker.launch_config_id, now, failed=failure)

    def _stop(self, worker: Worker, reason: str, now: datetime) -> None:
        self.workers[worker.key] = replace(
            worker,
            state=State.STOPPING,
            stopping_since=now,
            stop_reason=reason,
            modified=now,
        )
        self.cloud.terminate(worker.key, now)
        self.ending(worker.key)


def machines_by_location(cloud: DayCloud) -> Mapping[str, int]:
    """How many are not being deleted, as the last list showed."""
    return Counter(str(m.location) for m in cloud.machines.values() if m.told is None)
