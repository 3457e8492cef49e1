"""A whole deployment in memory: clock, cloud, queue, tables and the functions between them.

``tick`` and ``scan`` do what the schedules do and deliver what they send; ``run`` lets time pass.
Where to read next: ``invariants`` (what must hold at every moment), ``steps`` (how it crashes).
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tests.factories import NOW, POOL_ID, a_head, a_pool
from tests.fake_queue import FakeQueue
from tests.reconcile.steps import Clock, Delivery, Fuse, MemoryBlobs, MemoryBus, MemorySender
from worker_manager.core.definition import digest
from worker_manager.core.errors import CloudError
from worker_manager.core.events import WORKER_REMOVED, WORKER_RUNNING, worker_event
from worker_manager.core.messages import ProvisionPool, Terminate, advance_from_json, pool_changed
from worker_manager.core.model import LaunchConfigHead, Pool, State, Worker, WorkerKey
from worker_manager.core.timing import Timing
from worker_manager.outbox import Outbox
from worker_manager.providers.fake import Call, FakeProvider, Method, Moment
from worker_manager.providers.fake_cloud import FakeCloud
from worker_manager.queues import Message
from worker_manager.reconcile.advance import DeleteFailedError, advance
from worker_manager.reconcile.deadline import Deadline
from worker_manager.reconcile.deps import Deps, Stores
from worker_manager.reconcile.expire import Keeper
from worker_manager.reconcile.listing import scan_tick
from worker_manager.reconcile.provision import Report, provision
from worker_manager.reconcile.publish import publish
from worker_manager.reconcile.scan import read, scan
from worker_manager.reconcile.ticks import Tick, provision_tick
from worker_manager.store.health import HealthStore
from worker_manager.store.places import PlaceStore
from worker_manager.store.plans import PlanStore
from worker_manager.store.pool_errors import PoolErrorStore
from worker_manager.store.pools import PoolChange, PoolStore
from worker_manager.store.workers import WorkerStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from random import Random

    from worker_manager.core.model import PoolError
    from worker_manager.store.tables import Tables

QUEUES = ("ticks", "provision", "scan", "advance")
ACTS = frozenset({Method.LAUNCH, Method.TERMINATE})
DEPLOYMENT = "stage-x"
PLENTY = Deadline.after(timedelta(minutes=5))


class World:
    """One deployment with one or several providers that have a cloud."""

    def __init__(self, tables: Tables, *, provider_ids: Sequence[str] = ("aws",)) -> None:
        self.clock = Clock(NOW)
        self.timing = Timing()
        self.fuse = Fuse()
        self.tables = tables
        self.queue = FakeQueue()
        self.bus = MemoryBus(self.fuse)
        self.mail: list[Delivery] = []
        self.reports: list[Report] = []
        self.blobs = MemoryBlobs()
        client: Any = tables.connection._client
        client.meta.events.unregister("before-call.dynamodb", unique_id="fuse")
        client.meta.events.register("before-call.dynamodb", self.fuse.request, unique_id="fuse")
        self.stores = Stores(
            pools=PoolStore(tables),
            workers=WorkerStore(tables, kept=self.timing.worker_kept),
            plans=PlanStore(tables, kept=self.timing.plan_kept),
            places=PlaceStore(tables),
            health=HealthStore(tables),
        )
        self.errors = PoolErrorStore(tables, kept=self.timing.errors_kept)
        self.outbox = Outbox(
            bus=self.bus,
            places=self.stores.places,
            workers=self.stores.workers,
            errors=self.errors,
        )
        self.clouds = {name: FakeCloud(clock=self.clock) for name in provider_ids}
        self.providers = {name: self._provider(name) for name in provider_ids}
        self.all_deps = {name: self._deps(name) for name in provider_ids}
        self.keeper = Keeper(
            stores=self.stores,
            outbox=self.outbox,
            clock=self.clock,
            timing=self.timing,
            providers=tuple(provider_ids),
            static=frozenset(),
        )
        self.deps = self.all_deps[provider_ids[0]]
        self.cloud = self.clouds[provider_ids[0]]
        self.provider = self.providers[provider_ids[0]]

    def _provider(self, name: str) -> FakeProvider:
        provider = FakeProvider(provider_id=name, deployment=DEPLOYMENT, cloud=self.clouds[name])
        provider.on_call = self._on_call
        return provider

    def _on_call(self, moment: Moment, call: Call) -> None:
        """A crash after the cloud acted is one before the write that follows."""
        if call.method in ACTS and moment is Moment.BEFORE:
            self.fuse.step(call.method)

    def _deps(self, name: str) -> Deps:
        return Deps(
            provider_id=name,
            stores=self.stores,
            outbox=self.outbox,
            provider=self.providers[name],
            queue=self.queue,
            senders={
                queue: MemorySender(name, queue, self.mail, self.clock, self.fuse)
                for queue in QUEUES
            },
            clock=self.clock,
            timing=self.timing,
            inputs={"rootUrl": "https://tc.example.com", "deployment": DEPLOYMENT},
            planners=frozenset(self.clouds),
            blobs=self.blobs,
            parallel=1,
        )

    @contextmanager
    def aside(self) -> Iterator[None]:
        """What happens inside is none of the process under test: it counts as no step."""
        before, self.fuse.muted = self.fuse.muted, True
        try:
            yield
        finally:
            self.fuse.muted = before

    # Definitions and demand

    def save_pool(
        self,
        pool_id: str = POOL_ID,
        *,
        heads: Sequence[LaunchConfigHead] | None = None,
        maximum: int = 10,
        minimum: int = 0,
        provider_id: str = "aws",
        previous: Sequence[str] = (),
        **config: Any,
    ) -> Pool:
        """Create the pool, or replace its definition; no message is sent."""
        with self.aside():
            before = self.stores.pools.get(pool_id)
            given = [a_head()] if heads is None else heads
            bodies = {head.launch_config_id: {"image": head.launch_config_id} for head in given}
            after = a_pool(
                pool_id,
                [replace(h, digest=digest(bodies[h.launch_config_id])) for h in given],
                provider_id=provider_id,
                previous_provider_ids=tuple(previous),
                config={"minCapacity": minimum, "maxCapacity": maximum, **config},
                version=before.version + 1 if before else 1,
            )
            self.stores.pools.save(PoolChange(after, before, bodies, events=()))
            return after

    def demand(self, pending: int = 0, claimed: int = 0, *, pool_id: str = POOL_ID) -> None:
        self.queue.set_counts(pool_id, pending=pending, claimed=claimed)

    # Schedules and deliveries

    def tick(self) -> None:
        """One provision tick of every provider, and whatever follows at once."""
        self.send_ticks()
        self.deliver_all()

    def send_ticks(self) -> None:
        for deps in self.all_deps.values():
            provision_tick(Tick(self.clock.now, 0, self.timing.tick), deps)

    def scan(self) -> None:
        """One scan of every provider, and whatever follows at once."""
        self.send_scans()
        self.deliver_all()

    def send_scans(self) -> None:
        for deps in self.all_deps.values():
            scan_tick(Tick(self.clock.now, 0, self.timing.scan), deps)

    def lose(self, queue: str) -> int:
        """Lose the messages of one queue; how many there were."""
        lost = [delivery for delivery in self.mail if delivery.queue == queue]
        self.mail[:] = [delivery for delivery in self.mail if delivery.queue != queue]
        return len(lost)

    def run(self, **amount: float) -> None:
        """Let time pass: a provision tick each 30 seconds, a scan each minute."""
        ticks = int(timedelta(**amount) / self.timing.tick)
        for number in range(1, ticks + 1):
            self.clock.advance(seconds=30)
            self.tick()
            if number % 2 == 0:
                self.scan()

    def run_slowly(self, *, minutes: int) -> None:
        """As ``run`` where ticks and scans are as rare as once a minute."""
        for _ in range(minutes):
            self.clock.advance(minutes=1)
            self.tick()
            self.scan()

    def publish(self) -> None:
        """What no scan reaches is sent again, on a schedule of its own."""
        publish(self.keeper)

    def settle(self, rounds: int = 20) -> None:
        """Let time pass, a tick and a scan a minute, until nothing is open or unsent any more."""
        for _ in range(rounds):
            self.clock.advance(seconds=31)
            self.tick()
            self.clock.advance(seconds=31)
            self.scan()
            self.publish()
            if self.is_quiet():
                return
        raise AssertionError(f"not quiet; open: {self.open_plans()}, mail: {self.mail}")

    def run_until(self, reached: Callable[[], bool], *, minutes: int = 20) -> None:
        """Let time pass, a minute at a time, until something holds; at least one."""
        for _ in range(minutes):
            self.run(minutes=1)
            self.publish()
            if reached():
                return
        raise AssertionError(f"not reached; open: {self.open_plans()}, mail: {self.mail}")

    def deliver_all(self, chance: Random | None = None, *, copies: int = 1) -> None:
        """Deliver what is due, in order or shuffled, each message so many times."""
        while due := [d for d in self.mail if d.due <= self.clock.now]:
            self.mail[:] = [d for d in self.mail if d.due > self.clock.now]
            batch = due * copies
            if chance is not None:
                chance.shuffle(batch)
            for delivery in batch:
                self.deliver(delivery)

    def deliver(self, delivery: Delivery) -> None:
        """Call the function behind the message's queue, as its handler does."""
        deps = self.all_deps[delivery.provider_id]
        match delivery.queue:
            case "provision":
                message = ProvisionPool.from_json(delivery.body)
                self.reports.append(provision(message, deps, PLENTY))
            case "scan":
                listed = read(delivery.body, deps)
                if listed is not None:
                    scan(listed, deps)
            case "advance":
                try:
                    advance(advance_from_json(delivery.body), deps)
                except (CloudError, DeleteFailedError):
                    again = self.clock.now + timedelta(minutes=1)
                    self.mail.append(replace(delivery, due=again))

    def change_pool(self, pool_id: str = POOL_ID, **changes: Any) -> None:
        """A change through the API, with its own provision message."""
        pool = self.save_pool(pool_id, **changes)
        message = pool_changed(pool_id, pool.version).to_json()
        sender = self.all_deps[pool.provider_id].senders["provision"]
        sender.send([Message(message)])

    # What machines and the API do

    def register(self, key: WorkerKey) -> bool:
        """A machine registers: a conditional write, as the API's."""
        with self.aside():
            row = self.stores.workers.get(key)
            if row is None or row.state is not State.REQUESTED:
                return False
            changes: dict[str, Any] = {
                "state": State.RUNNING,
                "registered": self.clock.now,
                "modified": self.clock.now,
                "deadline": self.clock.now + row.reregistration,
            }
            event = worker_event(
                WORKER_RUNNING,
                replace(row, **changes, version=row.version + 1),
                at=self.clock.now,
                reason="registered",
            )
            after = self.stores.workers.change(row, **changes, unsent=(*row.unsent, event))
            if after is None:
                return False
            self.outbox.send_workers([after])
            return True

    def register_all(self) -> None:
        for machine in self.cloud.alive():
            self.register(machine.key)

    def works(self, key: WorkerKey) -> None:
        """The queue hears of a worker now."""
        known = self.queue.activity(key.pool_id).get((key.group, key.worker_id))
        first = known.first_claim if known and known.first_claim else self.clock.now
        self.queue.set_activity(
            key.pool_id, key.group, key.worker_id, first_claim=first, last_active=self.clock.now
        )

    def remove(self, key: WorkerKey) -> None:
        """Somebody removes a worker through the API: the row is marked, the delete sent."""
        with self.aside():
            row = self.stores.workers.get(key)
            if row is None or row.state in (State.STOPPING, State.STOPPED):
                return
            after = replace(row, state=State.STOPPING, version=row.version + 1)
            event = worker_event(WORKER_REMOVED, after, at=self.clock.now, reason="asked to")
            self.stores.workers.change(
                row,
                state=State.STOPPING,
                modified=self.clock.now,
                stopping_since=self.clock.now,
                stop_reason="asked to",
                unsent=(*row.unsent, event),
            )
            sender = self.all_deps[row.provider_id].senders["advance"]
            sender.send([Message(Terminate(key).to_json())])

    # Looking

    def rows(self, pool_id: str = POOL_ID) -> list[Worker]:
        """All rows of a pool, in any state."""
        with self.aside():
            return self.stores.workers.page(pool_id, limit=10_000)

    def row(self, key: WorkerKey) -> Worker:
        with self.aside():
            found = self.stores.workers.get(key)
        assert found is not None
        return found

    def states(self, pool_id: str = POOL_ID) -> dict[str, int]:
        counted: dict[str, int] = {}
        for row in self.rows(pool_id):
            counted[row.state.value] = counted.get(row.state.value, 0) + 1
        return counted

    def open_plans(self, pool_id: str = POOL_ID) -> list[Any]:
        with self.aside():
            _, control = self.stores.pools.get_with_control(pool_id)
            return self.stores.plans.open_plans(control)

    def plans(self, pool_id: str = POOL_ID) -> list[str]:
        """Ticks of all plans that are stored."""
        model = self.tables.pools
        with self.aside():
            items = model.query(pool_id, model.sk.startswith("plan#"), consistent_read=True)
            return [item.sk.removeprefix("plan#") for item in items]

    def told_to_terminate(self, pool_id: str = POOL_ID) -> dict[str, str]:
        """Reasons of the workers that would be told to terminate now, by their id."""
        return {
            row.key.worker_id: row.surplus.reason
            for row in self.rows(pool_id)
            if row.surplus is not None and row.surplus.terminate
        }

    def pool_errors(self, pool_id: str = POOL_ID) -> list[PoolError]:
        with self.aside():
            return list(self.errors.newest_first(pool_id))

    def pool_ids(self) -> list[str]:
        with self.aside():
            return list(self.stores.pools.ids())

    def is_quiet(self) -> bool:
        """Nothing open, nothing unsent, nothing under way."""
        with self.aside():
            return (
                not self.mail
                and not list(self.stores.places.unpublished())
                and not any(self.open_plans(pool_id) for pool_id in self.pool_ids())
                and not any(r.unsent for pool_id in self.pool_ids() for r in self.rows(pool_id))
            )


def heads(*names: str, **overrides: Any) -> list[LaunchConfigHead]:
    """Launch configs of one kind."""
    return [a_head(name, **overrides) for name in names]
