"""Where benchmarks happen: emulator and simulated EC2 in processes of their own, our code in this.

Everything speaks HTTP over loopback through the SDKs that the deployed functions use.  Only the
task queue and the message queues are in this process (``tests.fake_queue``, ``delivery``).
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
import urllib.request
import uuid
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import botocore.session
from botocore.config import Config

from infra.local.children import LOOPBACK, Child, clean_environment, free_port
from tests.benchmarks.delivery import Delivery
from tests.benchmarks.units import Meter
from tests.fake_queue import FakeQueue
from worker_manager.bus import EventBridgeBus
from worker_manager.core.model import Location
from worker_manager.core.timing import Timing
from worker_manager.outbox import Outbox
from worker_manager.providers.aws.provider import AwsProvider
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
    from collections.abc import Callable, Iterator, Mapping

ROOT = Path(__file__).resolve().parents[2]
HOME_REGION = "us-east-1"
REGIONS = tuple(Location(name) for name in ("us-east-1", "us-east-2", "us-west-1", "us-west-2"))
PROVIDER = "aws"
DEPLOYMENT = "bench"
THREADS = 8
BUS = "bench"
EMULATOR_PYTHON = ROOT / ".emulator" / "bin" / "python"


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where the other processes listen."""

    aws: str
    ec2: str

    def control(self, document: Mapping[str, Any]) -> Any:
        """Change the simulated EC2; what its keys answer."""
        request = urllib.request.Request(
            f"{self.ec2}/_control", json.dumps(document).encode(), method="POST"
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def ec2_state(self) -> Any:
        """Instances, calls and refusals of the simulated EC2, counted."""
        with urllib.request.urlopen(f"{self.ec2}/_control/state", timeout=60) as answer:
            return json.load(answer)

    def ec2_calls(self, action: str) -> int:
        """Calls of one action in all regions since the counts were reset."""
        return sum(self.ec2_state()["calls"].get(action, {}).values())

    def all_ec2_calls(self) -> int:
        """Calls of any action."""
        return sum(sum(regions.values()) for regions in self.ec2_state()["calls"].values())


@dataclass(frozen=True, slots=True)
class World:
    """Our code, wired to fresh tables and an empty cloud."""

    endpoints: Endpoints
    deps: Deps
    tables: Tables
    queue: FakeQueue
    delivery: Delivery
    meter: Meter
    errors: PoolErrorStore = field(repr=False)

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
def processes(folder: Path) -> Iterator[Endpoints]:
    """The emulator and the simulated EC2, until the end of the block; logs are in ``folder``."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    aws_port, ec2_port = free_port(), free_port()
    endpoints = Endpoints(f"http://{LOOPBACK}:{aws_port}", f"http://{LOOPBACK}:{ec2_port}")
    with ExitStack() as stack:
        emulator = Child(
            "emulator",
            [str(EMULATOR_PYTHON), "-I", str(ROOT / "infra/local/emulator.py")],
            environment=clean_environment(
                home=folder / "emulator",
                path=str(EMULATOR_PYTHON.parent),
                BIND_HOST=LOOPBACK,
                GATEWAY_PORT=str(aws_port),
                SFTP_ENABLED="0",
                IOT_MTLS_ENABLED="0",
                LOG_LEVEL="WARNING",
            ),
            log=folder / "emulator.log",
        )
        stack.callback(emulator.stop)
        ec2 = Child(
            "ec2",
            [sys.executable, "-m", "infra.local.clouds.ec2", "--port", str(ec2_port)],
            environment=clean_environment(
                home=folder / "ec2",
                path=str(Path(sys.executable).parent),
                PYTHONPATH=str(ROOT),
            ),
            log=folder / "ec2.log",
        )
        stack.callback(ec2.stop)
        emulator.wait_for_port(aws_port)
        ec2.wait_for_port(ec2_port)
        yield endpoints


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
        AWS_ENDPOINT_URL_EC2=endpoints.ec2,
        NO_PROXY="*",
    )


@contextmanager
def a_world(endpoints: Endpoints) -> Iterator[World]:
    """Fresh tables, an empty cloud, running queues; no messages have handlers yet.

    The function is warm: it called each region before.  Its threads are the queues' workers.
    """
    endpoints.control({"reset": "all"})
    shared = botocore.session.get_session()
    session = boto3.Session(botocore_session=shared)
    prefix = f"bench-{uuid.uuid4().hex[:8]}"
    tables = Tables.bind({short: f"{prefix}-{short}" for short in TABLES}, shared, HOME_REGION)
    meter = Meter()
    meter.attach(tables.connection.client)
    for short in TABLES:
        getattr(tables, short).create_table(billing_mode="PAY_PER_REQUEST")
    timing = Timing()
    queue = FakeQueue()
    provider = AwsProvider(provider_id=PROVIDER, deployment=DEPLOYMENT, session=session)
    for region in REGIONS:
        list(provider.instances(region))
    endpoints.control({"reset": "counts"})
    with Delivery(THREADS) as delivery:
        workers = WorkerStore(tables, kept=timing.worker_kept)
        places = PlaceStore(tables)
        errors = PoolErrorStore(tables, kept=timing.errors_kept)
        deps = Deps(
            provider_id=PROVIDER,
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
            outbox=Outbox(bus=_bus(session), places=places, workers=workers, errors=errors),
            provider=provider,
            queue=queue,
            senders={name: delivery.sender(name) for name in ("provision", "scan", "advance")},
            clock=now,
            timing=timing,
            inputs={"rootUrl": "https://tc.example.com", "deployment": DEPLOYMENT},
            planners=frozenset({PROVIDER}),
            parallel=1,
            call_limit=timedelta(seconds=25),
        )
        yield World(endpoints, deps, tables, queue, delivery, meter, errors)


def _bus(session: boto3.Session) -> EventBridgeBus:
    client = session.client(
        "events",
        region_name=HOME_REGION,
        config=Config(max_pool_connections=THREADS, retries={"total_max_attempts": 2}),
    )
    if BUS not in {bus["Name"] for bus in client.list_event_buses()["EventBuses"]}:
        client.create_event_bus(Name=BUS)
    return EventBridgeBus(client, BUS)
