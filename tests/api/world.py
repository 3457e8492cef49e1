"""The API over tables in memory, with queues and a bus that remember, and signed requests."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import mohawk  # type: ignore[import-untyped]
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256

from tests.event_shapes import check_shapes
from tests.events import a_proxy_event
from tests.factories import NOW
from tests.fake_queue import FakeQueue
from worker_manager.api import routes
from worker_manager.api.app import App
from worker_manager.api.deps import ApiDeps
from worker_manager.api.routing import Call
from worker_manager.core.ids import derived_slugid
from worker_manager.core.roles import Roles
from worker_manager.core.timing import Timing
from worker_manager.identity.azure_certificates import AzureAnchors, bundled_roots
from worker_manager.identity.google_keys import GoogleKeys
from worker_manager.outbox import Outbox
from worker_manager.settings import PAGE_BYTES, ProviderSettings
from worker_manager.store.audit import AuditStore
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
from worker_manager.taskcluster.auth import LocalAuthenticator
from worker_manager.taskcluster.clients import Client
from worker_manager.taskcluster.credentials import ISSUER_SCOPES, Issuer, worker_client_id
from worker_manager.taskcluster.memory import Memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from worker_manager.core.model import Json, Worker
    from worker_manager.queues import Message

ROOT_URL = "https://tc.example.com"
BASE = "/api/worker-manager/v1"
TOKEN = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG"
ISSUER = Issuer("test/issuer", "issuer-access-token-0123456789-abcdefghijkl")
POOL_PATH = f"{BASE}/worker-pool/proj-x%2Fpool-1"


@dataclass
class Clock:
    """A clock that tests move."""

    now: datetime = NOW

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **amount: float) -> None:
        self.now += timedelta(**amount)


@dataclass
class MemorySender:
    """A queue that remembers; with an ``error`` it takes nothing."""

    messages: list[Message] = field(default_factory=list)
    error: Exception | None = None

    def send(self, messages: Iterable[Message]) -> None:
        if self.error is not None:
            raise self.error
        self.messages += messages


@dataclass
class MemoryBus:
    """A bus that remembers, or refuses everything."""

    events: list[Json] = field(default_factory=list)
    refuses: bool = False

    def publish(self, events: Sequence[Json]) -> set[str]:
        check_shapes(events)
        if self.refuses:
            return set()
        self.events += events
        return {event["id"] for event in events}

    def names(self) -> list[str]:
        return [event["name"] for event in self.events]


@dataclass
class Response:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: Any

    @property
    def code(self) -> str:
        return str(self.body["code"])

    @property
    def message(self) -> str:
        return str(self.body["message"])


class Signer:
    """The private key of a simulated cloud."""

    def __init__(self) -> None:
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.public = self._key.public_key()

    def proof(self, worker_id: str = "i-1", **fields: Any) -> dict[str, str]:
        document = json.dumps({"region": "us-east-1", "instanceId": worker_id, **fields})
        signature = self._key.sign(document.encode(), padding.PKCS1v15(), SHA256())
        return {"document": document, "signature": mohawk.util.b64encode(signature).decode()}


SIGNER = Signer()


class Api:
    """An app, what is behind it, and a client with all scopes in front of it."""

    def __init__(self, tables: Tables, clock: Callable[[], datetime], root_url: str) -> None:
        self.tables = tables
        self.root_url = root_url
        self.bus = MemoryBus()
        self.provision = MemorySender()
        self.advance = MemorySender()
        self.other_provision = MemorySender()
        self.queue = FakeQueue()
        self._serial = 0
        timing = Timing()
        self.plans = PlanStore(tables, kept=timing.plan_kept)
        places = PlaceStore(tables)
        workers = WorkerStore(tables, kept=timing.worker_kept)
        errors = PoolErrorStore(tables, kept=timing.errors_kept)
        clients = [
            Client("test/root", TOKEN, ("*",)),
            Client("test/poor", TOKEN, ("something:else",)),
            Client(ISSUER.client_id, ISSUER.access_token, ISSUER_SCOPES),
        ]
        self.deps = ApiDeps(
            stores=Stores(
                pools=PoolStore(tables),
                workers=workers,
                plans=self.plans,
                places=places,
                health=HealthStore(tables),
                offerings=OfferingStore(tables),
                pauses=PauseStore(tables),
                slots=SlotStore(tables),
                statuses=ProviderStatusStore(tables),
            ),
            errors=errors,
            audit=AuditStore(tables, kept=timing.audit_kept),
            outbox=Outbox(bus=self.bus, places=places, workers=workers, errors=errors),
            authenticator=LocalAuthenticator(clients, Roles(()), clock),
            root_url=root_url,
            providers={
                name: ProviderSettings(name, kind)
                for name, kind in (("aws", "aws"), ("aws-2", "aws"), ("static", "static"))
            },
            senders={
                "aws": {"provision": self.provision, "advance": self.advance},
                "aws-2": {"provision": self.other_provision, "advance": MemorySender()},
            },
            has_embedded_queue=True,
            queue_lists=Memory(2),
            queue=self.queue,
            issuer=ISSUER,
            clock=clock,
            new_secret=lambda: self._next("secret") * 2,
            new_slugid=lambda: self._next("slugid"),
            timing=timing,
            trusted_keys=[SIGNER.public],
            google_keys=GoogleKeys(),
            azure_anchors=AzureAnchors(bundled_roots()),
            page_bytes=PAGE_BYTES,
            started=clock(),
        )
        self.routes = {route.name: route for route in (*routes.POOLS, *routes.WORKERS)}
        self.app = App((*routes.POOLS, *routes.WORKERS), self.deps)

    def cut_pages_at(self, page_bytes: int) -> None:
        """Let pages of lists take so much from now on."""
        self.works_with(page_bytes=page_bytes)

    def works_with(self, **deps: Any) -> None:
        """Replace some of what the app works with."""
        self.deps = replace(self.deps, **deps)
        self.app = App((*routes.POOLS, *routes.WORKERS), self.deps)

    def remove_itself(self, worker: Worker) -> None:
        """As a worker does that is done, with its own credentials."""
        key = worker.key
        params = {
            "workerPoolId": key.pool_id,
            "workerGroup": key.group,
            "workerId": key.worker_id,
        }
        itself = worker_client_id(key, provider_id=worker.provider_id)
        self.routes["removeWorker"].handler(Call(params, {}, None, {}, itself), self.deps)

    def _next(self, what: str) -> str:
        self._serial += 1
        return derived_slugid(what, self._serial)

    def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        raw: bytes | None = None,
        **how: Any,
    ) -> Response:
        """Send one request, signed unless ``client`` is ``None``."""
        full = path if path.startswith("/") else f"{BASE}/{path}"
        content = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
        return self.send(self.signed_event(method, full, content, **how))

    def signed_event(
        self,
        method: str,
        path: str,
        content: bytes = b"",
        *,
        query: str = "",
        client: str | None = "test/root",
        content_type: str = "application/json",
        **event: Any,
    ) -> dict[str, Any]:
        headers = {"Content-Type": content_type} if content else {}
        if client is not None:
            url = f"{self.root_url}{path}" + (f"?{query}" if query else "")
            headers["Authorization"] = self._signature(
                method, url, content, content_type if content else "", client
            )
        return a_proxy_event(
            method, path, query=query, headers=headers, body=content or None, **event
        )

    def _signature(
        self, method: str, url: str, content: bytes, content_type: str, client: str
    ) -> str:
        sender = mohawk.Sender(
            {"id": client, "key": TOKEN, "algorithm": "sha256"},
            url,
            method,
            content=content,
            content_type=content_type,
            _timestamp=int(self.deps.clock().timestamp()),
        )
        return str(sender.request_header)

    def send(self, event: dict[str, Any]) -> Response:
        answer = self.app.handle(event)
        body = json.loads(answer["body"]) if answer["body"] else None
        return Response(answer["statusCode"], answer["headers"], body)

    def ok(self, method: str, path: str, body: Any = None, **how: Any) -> Any:
        """The body of a success, which must be what its route declares."""
        response = self(method, path, body, **how)
        assert response.status == 200, response.body
        found = self.app._router.find(method, path if path[0] == "/" else f"{BASE}/{path}")
        assert found is not None
        if found.route.response is not None:
            found.route.response.model_validate(response.body)
        return response.body

    def contents(self) -> list[str]:
        """Everything in every table."""
        items = []
        for name in TABLES:
            table = getattr(self.tables, name).Meta.table_name
            stored = self.tables.connection.scan(table)["Items"]
            items += [f"{name} {json.dumps(item, sort_keys=True)}" for item in stored]
        return sorted(items)


def a_launch_config(region: str = "us-east-1", **overrides: Any) -> dict[str, Any]:
    return {
        "region": region,
        "launchConfig": {"ImageId": "ami-1"},
        "workerManager": {"launchConfigId": "lc-a"},
        **overrides,
    }


def a_definition(**overrides: Any) -> dict[str, Any]:
    """A body that creates an AWS pool; keys of ``config`` can be given as ``config={...}``."""
    config = {
        "minCapacity": 0,
        "maxCapacity": 10,
        "launchConfigs": [a_launch_config()],
        **overrides.pop("config", {}),
    }
    return {
        "providerId": "aws",
        "description": "a pool",
        "owner": "owner@example.com",
        "emailOnError": False,
        "config": config,
        **overrides,
    }


def a_static_definition(**overrides: Any) -> dict[str, Any]:
    body = a_definition(providerId="static")
    return {**body, "config": {"workerConfig": {"speed": 1}}, **overrides}
