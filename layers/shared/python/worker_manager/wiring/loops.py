"""Building what the loops and the scheduled functions work with, once per container.

Where to read next: ``base`` (what every function shares), ``reconcile.deps``.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import boto3

from worker_manager import settings as settings_module
from worker_manager.blobs import S3Blobs
from worker_manager.providers.registry import CLOUDS, load_cloud
from worker_manager.reconcile.deps import Deps
from worker_manager.reconcile.expire import Keeper
from worker_manager.secrets import access_key
from worker_manager.wiring.base import Base, not_given, now

if TYPE_CHECKING:
    from worker_manager.providers.protocol import CloudProvider


class Loop(Base):
    """What a function of one provider's loop works with."""

    def deps(self) -> Deps:
        """Everything that this function was given."""
        provider = self.settings.provider
        return Deps(
            provider_id=provider.provider_id,
            stores=self.stores,
            outbox=self.outbox if self.has("WM_BUS") else not_given("WM_BUS"),
            provider=self._cloud(),
            queue=self.queue(),
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
            missing: CloudProvider = not_given("WM_CLOUD_SECRET")
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
