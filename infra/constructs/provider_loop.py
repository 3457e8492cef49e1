"""The loop of one provider: three schedules, its functions and the queues between them.

Each provider has its own, so that one slow or broken cloud never delays another.  What flows
through is described in ``worker_manager.reconcile``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aws_cdk import Duration
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from infra.constructs.cloud_access import (
    may_launch,
    may_list,
    may_reboot,
    may_sweep,
    may_terminate,
)
from infra.constructs.function import Service, ServiceFunction
from infra.constructs.notices import hand_over_notices
from infra.constructs.queues import LoopQueues

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aws_cdk import aws_events as events
    from aws_cdk import aws_lambda as lambda_
    from aws_cdk import aws_s3 as s3
    from aws_cdk import aws_sqs as sqs

    from infra.constructs.tables import Tables
    from infra.settings import ProviderSettings, ProviderType

_TIMEOUTS = {
    "provision_tick": 60,
    "provision_pool": 60,
    "scan_tick": 120,
    "scan_pool": 60,
    "advance": 60,
    "sweep": 240,
    "notices": 30,
}
"""Seconds.  ``scan_tick`` and ``sweep`` read whole lists of a cloud; others do a pool's work."""

_SWEEP_MINUTES = 5
"""Longer than ``sweep`` may run, so that it meets no other of its provider."""

DELETES_AT_ONCE = 10
"""Messages of ``advance`` in one call: their machines are deleted together."""

NOTICES_AT_ONCE = 100
"""Messages of ``notices`` in one call: EC2 is asked once of all, and a pool planned once.

A machine's end is told in two or three, and a zone that takes back its spot instances tells
hundreds within a minute.
"""

_MINUTE = Duration.minutes(1)

_SECRETS: Mapping[ProviderType, str] = {
    "aws": "An AWS access key for machines in another account; not needed in our own",
    "azure": "tenantId, clientId and clientSecret of a service principal, as JSON",
    "google": "The key of a service account, as JSON",
}
"""What operators fill in, by provider type."""


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What a loop shares with the rest of the stage.

    ``cloud_layers`` and ``cloud_endpoints`` are by provider type, where it has one.
    """

    service: Service
    tables: Tables
    bus: events.IEventBus
    bucket: s3.IBucket
    auth_secret: secretsmanager.ISecret
    queue_root_url: str
    cloud_layers: Mapping[str, lambda_.ILayerVersion]
    cloud_endpoints: Mapping[str, str]


class ProviderLoop(Construct):
    """Provisioning and scanning of one provider."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        provider: ProviderSettings,
        around: Surroundings,
    ) -> None:
        super().__init__(scope, construct_id)
        self.provider = provider
        self._around = around
        self._settings = around.service.settings
        self._secret = secretsmanager.Secret(
            self,
            "Secret",
            secret_name=self._settings.resource_name(f"cloud-{provider.provider_id}"),
            encryption_key=around.service.key,
            description=_SECRETS[provider.provider_type],
        )
        self._queues = LoopQueues(
            self, "Queues", settings=self._settings, provider=provider, timeouts=_TIMEOUTS
        )
        self._provision()
        self._scan()
        self._advance()
        self.sweep = self._sweeping().function
        if provider.gives_notice:
            self._notices()

    @property
    def inboxes(self) -> Mapping[str, sqs.IQueue]:
        """The queues by which the API asks this loop for something at once."""
        return {"provision": self._queues.provision, "advance": self._queues.advance}

    def _function(
        self, folder: str, *, memory_mb: int = 512, layer: lambda_.ILayerVersion | None = None
    ) -> ServiceFunction:
        function = ServiceFunction(
            self,
            folder.title().replace("_", ""),
            service=self._around.service,
            folder=folder,
            provider_id=self.provider.provider_id,
            timeout_seconds=_TIMEOUTS[folder],
            memory_mb=memory_mb,
            more_layers=[layer] if layer else [],
        )
        return function.knows(WM_PROVIDER=self.provider.provider_id)

    def _function_in_cloud(self, folder: str, *, memory_mb: int = 512) -> ServiceFunction:
        """One that calls the cloud: with its SDK, and the secret by which it is known there."""
        cloud = self.provider.provider_type
        function = self._function(
            folder, memory_mb=memory_mb, layer=self._around.cloud_layers.get(cloud)
        )
        if cloud in self._around.cloud_endpoints:
            function.knows(WM_CLOUD_ENDPOINT=self._around.cloud_endpoints[cloud])
        return function.opens("WM_CLOUD_SECRET", self._secret)

    def _asks_the_queue(self, function: ServiceFunction) -> ServiceFunction:
        """Let a function ask the task queue, which is HTTP and needs our own credentials."""
        return function.knows(WM_QUEUE_ROOT_URL=self._around.queue_root_url).opens(
            "WM_AUTH_SECRET", self._around.auth_secret
        )

    def _provision(self) -> None:
        """Once a minute, split; a message a pool; launch what is wanted."""
        tables = self._around.tables
        (
            self._function("provision_tick")
            .reads(tables.providers)
            .sends_to("WM_QUEUE_TICKS", self._queues.provision_ticks)
            .sends_to("WM_QUEUE_PROVISION", self._queues.provision)
            .consumes(self._queues.provision_ticks, concurrency=2)
            .runs_every(_MINUTE)
        )
        pool = (
            self._function_in_cloud("provision_pool")
            .writes(tables.pools, tables.providers, tables.workers, tables.errors, tables.health)
            .publishes_to(self._around.bus)
            .sends_to("WM_QUEUE_ADVANCE", self._queues.advance)
            .consumes(self._queues.provision, concurrency=self.provider.concurrency)
        )
        self._asks_the_queue(pool)
        if self.provider.is_reached_by_role:
            may_launch(pool, deployment=self._settings.deployment, provider=self.provider)

    def _scan(self) -> None:
        """Once a minute, list each location; a message a pool and location; settle workers."""
        tables = self._around.tables
        tick = (
            # A list of thousands is parsed here: one whole processor.
            self._function_in_cloud("scan_tick", memory_mb=1769)
            # Pools that moved away are left here, once nothing of them is seen any more.
            .writes(tables.pools, tables.providers)
            .reads(tables.workers)
            .puts_into(self._around.bucket)
            .sends_to("WM_QUEUE_TICKS", self._queues.scan_ticks)
            .sends_to("WM_QUEUE_SCAN", self._queues.scan)
            # A large provider's tick is shared out by location.
            .consumes(self._queues.scan_ticks, concurrency=self.provider.concurrency)
            .runs_every(_MINUTE)
        )
        if self.provider.is_reached_by_role:
            may_list(tick)
        pool = (
            self._function_in_cloud("scan_pool")
            .writes(tables.pools, tables.providers, tables.workers, tables.errors, tables.health)
            .gets_from(self._around.bucket)
            .publishes_to(self._around.bus)
            .consumes(self._queues.scan, concurrency=self.provider.concurrency)
        )
        self._asks_the_queue(pool)
        if self.provider.is_reached_by_role:
            may_list(pool)
            may_terminate(pool, deployment=self._settings.deployment)

    def _advance(self) -> None:
        """Deletes asked for by the API, reboots, and whatever takes several steps or must wait.

        A machine that the cloud accepted and then did not make ends here, as in a scan.
        """
        tables = self._around.tables
        advance = (
            self._function_in_cloud("advance")
            .reads(tables.pools, tables.registry)
            .writes(tables.providers, tables.workers, tables.errors, tables.health, tables.actions)
            .publishes_to(self._around.bus)
            .sends_to("WM_QUEUE_ADVANCE", self._queues.advance)
            .sends_to("WM_QUEUE_PROVISION", self._queues.provision)
            .consumes(
                self._queues.advance,
                batch_size=DELETES_AT_ONCE,
                concurrency=self.provider.concurrency,
            )
        )
        if self.provider.is_reached_by_role:
            may_terminate(advance, deployment=self._settings.deployment)
            may_reboot(advance, deployment=self._settings.deployment)

    def _sweeping(self) -> ServiceFunction:
        """Every few minutes, what no machine uses: disks, network interfaces, addresses."""
        tables = self._around.tables
        sweep = (
            self._function_in_cloud("sweep")
            .reads(tables.workers)
            .writes(tables.providers)
            .runs_every(Duration.minutes(_SWEEP_MINUTES))
        )
        if self.provider.is_reached_by_role:
            may_sweep(sweep, deployment=self._settings.deployment)
        return sweep

    def _notices(self) -> None:
        """What the cloud tells of machines of its own accord, in seconds."""
        tables = self._around.tables
        queue = self._queues.notices()
        dead = queue.dead_letter_queue
        hand_over_notices(
            self,
            name=self._settings.resource_name(f"notices-{self.provider.provider_id}"),
            target=targets.SqsQueue(queue, dead_letter_queue=dead.queue if dead else None),
            buses=[None, *([self._around.bus] if self._settings.notice_regions else [])],
        )
        notices = (
            self._function_in_cloud("notices")
            .writes(tables.providers, tables.workers, tables.errors, tables.health)
            .publishes_to(self._around.bus)
            .sends_to("WM_QUEUE_PROVISION", self._queues.provision)
            .consumes(queue, batch_size=NOTICES_AT_ONCE, concurrency=2, batching_seconds=1)
        )
        may_list(notices)
        may_terminate(notices, deployment=self._settings.deployment)
