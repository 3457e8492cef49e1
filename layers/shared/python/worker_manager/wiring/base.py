"""What every function's wiring has in common: settings, one session, tables and stores.

One botocore session serves PynamoDB and boto3.  A function is given only what its environment
names; using what it was not given fails with the variable's name.
Where to read next: ``loops``, ``api`` (what answers HTTP).
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any

import boto3
import botocore.session

from worker_manager.bus import EventBridgeBus
from worker_manager.core.moments import whole_milliseconds
from worker_manager.metrics import NO_PROVIDER, meter
from worker_manager.outbox import Outbox
from worker_manager.queues import SqsSender
from worker_manager.secrets import read_secret
from worker_manager.settings import MissingSettingError, Settings
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

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from worker_manager.queues import Sender
    from worker_manager.taskcluster.queue import QueueClient

SENDERS = {
    "ticks": "WM_QUEUE_TICKS",
    "provision": "WM_QUEUE_PROVISION",
    "scan": "WM_QUEUE_SCAN",
    "advance": "WM_QUEUE_ADVANCE",
    "act": "WM_QUEUE_ACTIONS",
}


def now() -> datetime:
    """The time, to the millisecond that tables and wire can carry."""
    return whole_milliseconds(datetime.now(UTC))


class _NotGiven:
    """Any use of it names the variable."""

    def __init__(self, variable: str) -> None:
        self._variable = variable

    def __getattr__(self, name: str) -> Any:
        """Fail, whatever was asked."""
        raise MissingSettingError(f"this function was not given {self._variable}")


def not_given(variable: str) -> Any:
    """Stands in for what a function was not given; any use raises ``MissingSettingError``."""
    return _NotGiven(variable)


class _Later:
    """Makes what it stands in for when something of it is first used."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._made: Any = None
        self._lock = Lock()

    def __getattr__(self, name: str) -> Any:
        """What the real one has under this name."""
        with self._lock:
            if self._made is None:
                self._made = self._make()
        return getattr(self._made, name)


def later(make: Callable[[], Any]) -> Any:
    """Stands in for what few calls need and takes long to load; safe to use from threads."""
    return _Later(make)


class Base:
    """Session, tables and stores of one function."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.session = botocore.session.Session()
        self.boto = boto3.Session(botocore_session=self.session, region_name=settings.region)
        self.timing = settings.timing
        meter.configure(
            namespace=settings.metrics_namespace,
            by_pool=settings.metrics_by_pool,
            owner=settings.environment.get("WM_PROVIDER", NO_PROVIDER),
        )

    def client(self, service: str) -> Any:
        """A boto3 client over the shared session."""
        make: Any = self.boto.client
        return make(service)

    @cached_property
    def tables(self) -> Tables:
        """The tables, bound."""
        return Tables.bind(self.settings.tables, self.session, self.settings.region)

    @cached_property
    def stores(self) -> Stores:
        """The stores that every function may use."""
        return Stores(
            pools=PoolStore(self.tables),
            workers=WorkerStore(self.tables, kept=self.timing.worker_kept),
            plans=PlanStore(self.tables, kept=self.timing.plan_kept),
            places=PlaceStore(self.tables),
            health=HealthStore(self.tables),
            statuses=ProviderStatusStore(self.tables),
            offerings=OfferingStore(self.tables),
            pauses=PauseStore(self.tables),
            slots=SlotStore(self.tables),
        )

    @cached_property
    def errors(self) -> PoolErrorStore:
        """Errors of pools."""
        return PoolErrorStore(
            self.tables,
            kept=self.timing.errors_kept,
            mails=self.settings.mail_from is not None,
        )

    @cached_property
    def outbox(self) -> Outbox:
        """The way to the bus."""
        return Outbox(
            bus=EventBridgeBus(self.client("events"), self.settings.bus),
            places=self.stores.places,
            workers=self.stores.workers,
            errors=self.errors,
        )

    def static_providers(self) -> frozenset[str]:
        """Ids of the providers whose machines stay where they are."""
        known = self.settings.providers.values()
        return frozenset(one.provider_id for one in known if one.provider_type == "static")

    def has(self, variable: str) -> bool:
        """Whether the function was given this."""
        return bool(self.settings.environment.get(variable))

    def secret(self, variable: str) -> str:
        """The text of the secret that ``variable`` names."""
        return read_secret(self.client("secretsmanager"), self.settings.required(variable))

    def queue(self) -> QueueClient:
        """The task queue, asked in the issuer's name."""
        if not self.has("WM_QUEUE_ROOT_URL"):
            missing: QueueClient = not_given("WM_QUEUE_ROOT_URL")
            return missing
        from worker_manager.taskcluster.queue import TaskclusterQueue  # noqa: PLC0415

        root_url = self.settings.queue_root_url
        is_ours = root_url == self.settings.root_url
        return TaskclusterQueue(root_url, self.issuer_credentials(), is_ordered=is_ours)

    def issuer_credentials(self) -> Mapping[str, str]:
        """Those of the issuer, as a client of other services."""
        from worker_manager.taskcluster.clients import Clients  # noqa: PLC0415

        issuer = Clients.from_json(self.secret("WM_AUTH_SECRET")).issuer
        return {"clientId": issuer.client_id, "accessToken": issuer.access_token}

    def senders(self) -> Mapping[str, Sender]:
        """The queues that this function may send to; any other names its variable when used."""
        return {name: self._sender(variable) for name, variable in SENDERS.items()}

    def _sender(self, variable: str) -> Sender:
        if self.has(variable):
            return SqsSender(self.client("sqs"), self.settings.required(variable))
        missing: Sender = not_given(variable)
        return missing
