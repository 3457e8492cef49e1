"""The deployed functions in memory: tables, queues and cloud, on one clock and through one fuse.

``deliver`` calls a function as its handler does.  Where to read next: ``world``, which adds time,
people and machines; ``steps`` (how it crashes).
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

from tests.factories import NOW
from tests.fake_queue import FakeQueue
from tests.reconcile.steps import Clock, Delivery, Fuse, MemoryBlobs, MemoryBus, MemorySender
from worker_manager.core.messages import ProvisionPool, advance_from_json
from worker_manager.core.timing import Timing
from worker_manager.outbox import Outbox
from worker_manager.providers.fake import Call, FakeProvider, Method, Moment
from worker_manager.providers.fake_cloud import FakeCloud
from worker_manager.reconcile.advance import advance
from worker_manager.reconcile.deadline import Deadline
from worker_manager.reconcile.deps import Deps
from worker_manager.reconcile.expire import Keeper
from worker_manager.reconcile.listing import scan_tick
from worker_manager.reconcile.provision import Report, provision
from worker_manager.reconcile.publish import publish
from worker_manager.reconcile.scan import read, scan
from worker_manager.reconcile.sweep import sweep
from worker_manager.reconcile.ticks import Tick, from_message, provision_tick
from worker_manager.store.health import HealthStore
from worker_manager.store.offerings import OfferingStore
from worker_manager.store.pauses import PauseStore
from worker_manager.store.places import PlaceStore
from worker_manager.store.plans import PlanStore
from worker_manager.store.pool_errors import PoolErrorStore
from worker_manager.store.pools import PoolStore
from worker_manager.store.provider_status import ProviderStatusStore
from worker_manager.store.slots import SlotStore
from worker_manager.store.stores import Stores
from worker_manager.store.tables import Tables
from worker_manager.store.workers import WorkerStore

QUEUES = ("ticks", "provision", "scan", "advance")
ACTS = frozenset({Method.LAUNCH, Method.TERMINATE, Method.FOLLOW, Method.REMOVE})
DEPLOYMENT = "stage-x"
PLENTY = Deadline.after(timedelta(minutes=5))


class Deployment:
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
            offerings=OfferingStore(tables),
            pauses=PauseStore(tables),
            slots=SlotStore(tables),
            statuses=ProviderStatusStore(tables),
        )
        self.errors = PoolErrorStore(tables, kept=self.timing.errors_kept)
        self.outbox = Outbox(
            bus=self.bus,
            places=self.stores.places,
            workers=self.stores.workers,
            errors=self.errors,
        )
        self.clouds = {name: self._cloud() for name in provider_ids}
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

    def _cloud(self) -> FakeCloud:
        return FakeCloud(clock=self.clock)

    def _provider(self, name: str) -> FakeProvider:
        provider = self._fake(name)
        provider.on_call = self._on_call
        return provider

    def _fake(self, name: str) -> FakeProvider:
        return FakeProvider(provider_id=name, deployment=DEPLOYMENT, cloud=self.clouds[name])

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

    def sweep(self) -> list[dict[str, Any]]:
        """What outlived its machine is looked for at every provider."""
        return [sweep(deps) for deps in self.all_deps.values()]

    def lose(self, queue: str) -> int:
        """Lose the messages of one queue; how many there were."""
        lost = [delivery for delivery in self.mail if delivery.queue == queue]
        self.mail[:] = [delivery for delivery in self.mail if delivery.queue != queue]
        return len(lost)

    def publish(self) -> None:
        """What no scan reaches is sent again, on a schedule of its own."""
        publish(self.keeper)

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
            case "ticks" if "location" in delivery.body:
                scan_tick(from_message(delivery.body, self.timing.scan), deps)
            case "scan":
                listed = read(delivery.body, deps)
                if listed is not None:
                    scan(listed, deps)
            case "advance":
                if advance([advance_from_json(delivery.body)], deps):
                    again = self.clock.now + timedelta(minutes=1)
                    self.mail.append(replace(delivery, due=again))
