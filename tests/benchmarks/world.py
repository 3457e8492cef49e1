"""Where benchmarks happen: emulator and clouds in processes of their own, our code in this.

Everything speaks HTTP over loopback through the SDKs that the deployed functions use.  Only the
task queue and the message queues are in this process (``tests.fake_queue``, ``delivery``).  Each
provider has a world of its own, as it has functions and queues of its own; worlds of one stage
share its tables.
"""

from __future__ import annotations

import os
import shutil
import time
import uuid
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import boto3
import botocore.session
from botocore.config import Config

from infra.local.children import LOOPBACK, Child, clean_environment, free_port
from tests.benchmarks.clouds import AWS, CLOUDS, ROOT, Cloud, Simulated, start
from tests.benchmarks.delivery import Delivery
from tests.benchmarks.units import Meter
from tests.fake_queue import FakeQueue
from worker_manager.bus import EventBridgeBus
from worker_manager.core.timing import Timing
from worker_manager.outbox import Outbox
from worker_manager.providers.protocol import Setup
from worker_manager.providers.registry import load_cloud
from worker_manager.queues import Message
from worker_manager.reconcile.deps import Deps
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
from worker_manager.store.tables import TABLES, Tables
from worker_manager.store.workers import WorkerStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from worker_manager.bus import Bus
    from worker_manager.providers.protocol import CloudProvider
    from worker_manager.queues import Sender
    from worker_manager.reconcile.deps import Blobs

HOME_REGION = "us-east-1"
DEPLOYMENT = "bench"
THREADS, QUEUES = 8, ("ticks", "provision", "scan", "advance")
APART = {"advance": 2}
"""Queues whose functions do not wait for those of the others."""
BUS = "bench"
EMULATOR_PYTHON = ROOT / ".emulator" / "bin" / "python"


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where the other processes listen; ``clouds`` by name."""

    aws: str
    clouds: Mapping[str, Simulated]

    @property
    def ec2(self) -> Simulated:
        """The simulated EC2."""
        return self.clouds["aws"]


@dataclass(frozen=True, slots=True)
class World:
    """Our code for one provider, wired to tables and a cloud."""

    simulated: Simulated
    deps: Deps
    tables: Tables
    delivery: Delivery
    meter: Meter

    @property
    def cloud(self) -> Cloud:
        """The kind of cloud."""
        return self.simulated.cloud

    @property
    def queue(self) -> FakeQueue:
        """The task queue."""
        queue = self.deps.queue
        if not isinstance(queue, FakeQueue):
            raise TypeError(f"{queue} is no queue of a benchmark")
        return queue

    @property
    def errors(self) -> PoolErrorStore:
        """What went wrong."""
        return PoolErrorStore(self.tables, kept=self.deps.timing.errors_kept)

    def handle(self, **handlers: Callable[[Any], object]) -> None:
        """Have these called with the messages of the queues they are named after."""
        self.delivery.handlers = handlers

    def deliver(self, queue: str, *, seconds: float = 300) -> float:
        """Send one message to ``queue`` and wait until all that follows is done; seconds it took.

        Raises ``TimeoutError`` if something is left after ``seconds``.
        """
        began = time.perf_counter()
        self.delivery.sender(queue).send([Message({})])
        if not self.delivery.drain(seconds=seconds):
            raise TimeoutError(f"what followed a message to {queue} did not end")
        return time.perf_counter() - began


def now() -> datetime:
    """The real time."""
    return datetime.now(UTC)


@contextmanager
def processes(folder: Path, clouds: Sequence[Cloud] = (AWS,)) -> Iterator[Endpoints]:
    """The emulator and simulated clouds, until the end of the block; logs are in ``folder``."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    port = free_port()
    with ExitStack() as stack:
        emulator = Child(
            "emulator",
            [str(EMULATOR_PYTHON), "-I", str(ROOT / "infra/local/emulator.py")],
            environment=clean_environment(
                home=folder / "emulator",
                path=str(EMULATOR_PYTHON.parent),
                BIND_HOST=LOOPBACK,
                GATEWAY_PORT=str(port),
                SFTP_ENABLED="0",
                IOT_MTLS_ENABLED="0",
                LOG_LEVEL="WARNING",
            ),
            log=folder / "emulator.log",
        )
        stack.callback(emulator.stop)
        listening: dict[str, Simulated] = {}
        for cloud in clouds:
            child, listening[cloud.name] = start(cloud, folder)
            stack.callback(child.stop)
        emulator.wait_for_port(port)
        yield Endpoints(f"http://{LOOPBACK}:{port}", listening)


def point_sdks_at(endpoints: Endpoints) -> None:
    """Replace all that this process's environment says to the SDKs by what is simulated."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ.update(
        AWS_ACCESS_KEY_ID="test",
        AWS_SECRET_ACCESS_KEY="test",
        AWS_DEFAULT_REGION=HOME_REGION,
        AWS_EC2_METADATA_DISABLED="true",
        AWS_CONFIG_FILE=os.devnull,
        AWS_SHARED_CREDENTIALS_FILE=os.devnull,
        AWS_ENDPOINT_URL=endpoints.aws,
        AWS_ENDPOINT_URL_EC2=endpoints.clouds["aws"].url if "aws" in endpoints.clouds else "",
        NO_PROXY="*",
    )


@contextmanager
def a_world(endpoints: Endpoints) -> Iterator[World]:
    """Fresh tables, an empty EC2, running queues; no messages have handlers yet."""
    with worlds(endpoints, [AWS]) as found:
        yield found["aws"]


@contextmanager
def worlds(
    endpoints: Endpoints,
    clouds: Sequence[Cloud],
    *,
    pace: Callable[[], datetime] = now,
    speed: float = 1.0,
    read_timeouts: Mapping[str, timedelta] = MappingProxyType({}),
) -> Iterator[dict[str, World]]:
    """A world for each cloud, by name, over the same fresh tables; the clouds are empty.

    Functions are warm: each location was listed before.  The threads of a world are the workers of
    its queues.  ``pace`` is the time for our code, ``speed`` by how much delays are shortened.
    Clouds in ``read_timeouts``, by name, are given up sooner, and were not listed.
    """
    names = make_tables()
    with ExitStack() as stack:
        found = {}
        for cloud in clouds:
            simulated = endpoints.clouds[cloud.name]
            simulated.control(reset="all")
            shared = botocore.session.get_session()
            session = boto3.Session(botocore_session=shared)
            timeout = read_timeouts.get(cloud.name)
            provider = start_provider(simulated, session, read_timeout=timeout)
            for location in cloud.locations if timeout is None else ():
                list(provider.instances(location))
            simulated.control(reset="counts")
            delivery = stack.enter_context(Delivery(THREADS, APART, speed))
            tables = Tables.bind(names, shared, HOME_REGION)
            senders = {name: delivery.sender(name) for name in QUEUES}
            deps = deps_of(provider, tables, senders, bus=_bus(session), clock=pace)
            found[cloud.name] = World(simulated, deps, tables, delivery, _metered(tables))
        yield found


def make_tables() -> dict[str, str]:
    """Fresh tables; what each is called, by its short name."""
    prefix = f"bench-{uuid.uuid4().hex[:8]}"
    names = {short: f"{prefix}-{short}" for short in TABLES}
    tables = Tables.bind(names, botocore.session.get_session(), HOME_REGION)
    for short in TABLES:
        getattr(tables, short).create_table(billing_mode="PAY_PER_REQUEST")
    return names


def start_provider(
    simulated: Simulated, session: boto3.Session, *, read_timeout: timedelta | None = None
) -> CloudProvider:
    """The provider of a cloud, as a function starts it."""
    cloud = simulated.cloud
    return load_cloud(cloud.name)(
        Setup(
            provider_id=cloud.name,
            deployment=DEPLOYMENT,
            options=cloud.options,
            secret=lambda: "{}",
            endpoint=None if cloud is AWS else simulated.url,
            session=session,
            read_timeout=read_timeout,
        )
    )


def _metered(tables: Tables) -> Meter:
    meter = Meter()
    meter.attach(tables.connection.client)
    return meter


def deps_of(
    provider: CloudProvider,
    tables: Tables,
    senders: Mapping[str, Sender],
    *,
    bus: Bus,
    clock: Callable[[], datetime] = now,
    blobs: Blobs | None = None,
) -> Deps:
    """What the functions of a provider work with, and a task queue that knows nothing yet."""
    timing = Timing()
    workers = WorkerStore(tables, kept=timing.worker_kept)
    places = PlaceStore(tables)
    errors = PoolErrorStore(tables, kept=timing.errors_kept)
    return Deps(
        provider_id=provider.provider_id,
        stores=Stores(
            pools=PoolStore(tables),
            workers=workers,
            plans=PlanStore(tables, kept=timing.plan_kept),
            places=places,
            health=HealthStore(tables),
            offerings=OfferingStore(tables),
            pauses=PauseStore(tables),
            slots=SlotStore(tables),
            statuses=ProviderStatusStore(tables),
        ),
        outbox=Outbox(bus=bus, places=places, workers=workers, errors=errors),
        provider=provider,
        queue=FakeQueue(),
        senders=senders,
        clock=clock,
        timing=timing,
        inputs={"rootUrl": "https://tc.example.com", "deployment": DEPLOYMENT},
        planners=frozenset(cloud.name for cloud in CLOUDS),
        blobs=blobs,
        parallel=1,
        call_limit=timedelta(seconds=25),
    )


def _bus(session: boto3.Session) -> EventBridgeBus:
    client = session.client(
        "events",
        region_name=HOME_REGION,
        config=Config(max_pool_connections=THREADS, retries={"total_max_attempts": 2}),
    )
    if BUS not in {bus["Name"] for bus in client.list_event_buses()["EventBuses"]}:
        client.create_event_bus(Name=BUS)
    return EventBridgeBus(client, BUS)
