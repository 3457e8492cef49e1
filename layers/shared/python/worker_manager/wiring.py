"""Building what functions work with, once per container, from their settings.

One botocore session serves PynamoDB and boto3.  A function is given only what its environment
names; using what it was not given fails with the variable's name.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import boto3
import botocore.session

from worker_manager import settings as settings_module
from worker_manager.blobs import S3Blobs
from worker_manager.bus import EventBridgeBus
from worker_manager.core.moments import whole_milliseconds
from worker_manager.outbox import Outbox
from worker_manager.providers.registry import CLOUDS, load_cloud
from worker_manager.queues import SqsSender
from worker_manager.reconcile.deps import Deps, Stores
from worker_manager.reconcile.expire import Keeper
from worker_manager.secrets import access_key, read_secret
from worker_manager.settings import MissingSettingError, Settings
from worker_manager.store.health import HealthStore
from worker_manager.store.places import PlaceStore
from worker_manager.store.plans import PlanStore
from worker_manager.store.pool_errors import PoolErrorStore
from worker_manager.store.pools import PoolStore
from worker_manager.store.tables import Tables
from worker_manager.store.workers import WorkerStore

if TYPE_CHECKING:
    from collections.abc import Mapping

    from worker_manager.providers.protocol import CloudProvider
    from worker_manager.queues import Sender
    from worker_manager.taskcluster.queue import QueueClient

SENDERS = {
    "ticks": "WM_QUEUE_TICKS",
    "provision": "WM_QUEUE_PROVISION",
    "scan": "WM_QUEUE_SCAN",
    "advance": "WM_QUEUE_ADVANCE",
}


def now() -> datetime:
    """The time, to the millisecond that tables and wire can carry."""
    return whole_milliseconds(datetime.now(UTC))


class NotGiven:
    """Stands in for what a function was not given; any use of it names the variable."""

    def __init__(self, variable: str) -> None:
        self._variable = variable

    def __getattr__(self, name: str) -> Any:
        """Fail, whatever was asked."""
        raise MissingSettingError(f"this function was not given {self._variable}")


class Base:
    """Session, tables and stores of one function."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.session = botocore.session.Session()
        self.boto = boto3.Session(botocore_session=self.session, region_name=settings.region)
        self.timing = settings.timing

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
        """The stores that reconciling uses."""
        return Stores(
            pools=PoolStore(self.tables),
            workers=WorkerStore(self.tables, kept=self.timing.worker_kept),
            plans=PlanStore(self.tables, kept=self.timing.plan_kept),
            places=PlaceStore(self.tables),
            health=HealthStore(self.tables),
        )

    @cached_property
    def errors(self) -> PoolErrorStore:
        """Errors of pools."""
        return PoolErrorStore(self.tables, kept=self.timing.errors_kept)

    @cached_property
    def outbox(self) -> Outbox:
        """The way to the bus."""
        return Outbox(
            bus=EventBridgeBus(self.client("events"), self.settings.bus),
            places=self.stores.places,
            workers=self.stores.workers,
            errors=self.errors,
        )

    def has(self, variable: str) -> bool:
        """Whether the function was given this."""
        return bool(self.settings.environment.get(variable))

    def secret(self, variable: str) -> str:
        """The text of the secret that ``variable`` names."""
        return read_secret(self.client("secretsmanager"), self.settings.required(variable))

    def senders(self) -> Mapping[str, Sender]:
        """The queues that this function may send to."""
        return {
            name: SqsSender(self.client("sqs"), self.settings.required(variable))
            for name, variable in SENDERS.items()
            if self.has(variable)
        }


class Loop(Base):
    """What a function of one provider's loop works with."""

    def deps(self) -> Deps:
        """Everything that this function was given."""
        provider = self.settings.provider
        return Deps(
            provider_id=provider.provider_id,
            stores=self.stores,
            outbox=self.outbox if self.has("WM_BUS") else _not_given("WM_BUS"),
            provider=self._cloud(),
            queue=self._queue(),
            senders=self.senders(),
            clock=now,
            timing=self.timing,
            inputs={
                "rootUrl": self.settings.root_url,
                "deployment": self.settings.deployment,
            },
            planners=frozenset(
                name
                for name, given in self.settings.providers.items()
                if given.provider_type in CLOUDS
            ),
            blobs=(
                S3Blobs(self.client("s3"), self.settings.required("WM_BUCKET"))
                if self.has("WM_BUCKET")
                else None
            ),
        )

    def _cloud(self) -> CloudProvider:
        if not self.has("WM_CLOUD_SECRET"):
            missing: CloudProvider = _not_given("WM_CLOUD_SECRET")
            return missing
        provider = self.settings.provider
        key = access_key(self.secret("WM_CLOUD_SECRET"))
        session = self.boto
        if key is not None:
            session = boto3.Session(
                aws_access_key_id=key.key_id,
                aws_secret_access_key=key.secret,
                region_name=self.settings.region,
            )
        cloud: CloudProvider = load_cloud(provider.provider_type)(
            provider_id=provider.provider_id,
            deployment=self.settings.deployment,
            session=session,
        )
        return cloud

    def _queue(self) -> QueueClient:
        if not self.has("WM_QUEUE_ROOT_URL"):
            missing: QueueClient = _not_given("WM_QUEUE_ROOT_URL")
            return missing
        from worker_manager.taskcluster.clients import Clients  # noqa: PLC0415
        from worker_manager.taskcluster.queue import TaskclusterQueue  # noqa: PLC0415

        issuer = Clients.from_json(self.secret("WM_AUTH_SECRET")).issuer
        credentials = {"clientId": issuer.client_id, "accessToken": issuer.access_token}
        return TaskclusterQueue(self.settings.queue_root_url, credentials)


def _not_given(variable: str) -> Any:
    return NotGiven(variable)


@cache
def loop() -> Deps:
    """For every function of a provider's loop."""
    return Loop(settings_module.load()).deps()


@cache
def keeper() -> Keeper:
    """For the scheduled functions that belong to no provider."""
    base = Base(settings_module.load())
    providers = base.settings.providers
    return Keeper(
        stores=base.stores,
        outbox=base.outbox,
        clock=now,
        timing=base.timing,
        providers=sorted(providers),
        static=frozenset(
            name for name, given in providers.items() if given.provider_type not in CLOUDS
        ),
    )
