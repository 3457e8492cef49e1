"""The whole service of one stage.

Reads from top to bottom: what is remembered (tables, bucket, secret), where news go (bus), the
loop of each provider, what runs by the hour, and the API in front.  The sizes and names are in
``settings``; what a function may do is said where it is made.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aws_cdk import CfnOutput, CfnParameter, Duration, Environment, RemovalPolicy, Stack, Tags
from aws_cdk import aws_events as events
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_secretsmanager as secretsmanager

from infra.constructs.actions import Acting
from infra.constructs.api import Api
from infra.constructs.dashboard import Dashboard
from infra.constructs.event_targets import EventCopies, HttpsDestination
from infra.constructs.function import Service, ServiceFunction
from infra.constructs.load_balancer import LoadBalancer
from infra.constructs.machines import Examining
from infra.constructs.provider_loop import ProviderLoop, Surroundings
from infra.constructs.pulse import Pulse
from infra.constructs.registry import Observing, WorkerEnds
from infra.constructs.tables import Tables
from infra.constructs.watching import Watching
from infra.settings import TICKS
from worker_manager.api.load_balancer import LARGEST_PLAIN
from worker_manager.store.audit import TRAIL
from worker_manager.store.outbox_items import OUTBOX

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from constructs import Construct

    from infra.settings import StageSettings


@dataclass(frozen=True, kw_only=True)
class Code:
    """Where the code is: a folder a function, and a folder a layer.

    ``cloud_layers`` are the SDKs of clouds by provider type; AWS's is in the runtime layer.
    ``hash_of`` names a folder's content; where it answers ``None``, CDK reads the content.
    """

    functions: Path
    shared_layer: Path
    runtime_layer: Path
    pulse_layer: Path
    cloud_layers: Mapping[str, Path]
    hash_of: Callable[[Path], str | None]


class WorkerManagerStack(Stack):
    """One stage: API, loops, tables, queues, bus.

    Its parameters are what may be said at each deployment without a new synthesis.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, settings: StageSettings, code: Code
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            stack_name=settings.resource_name("stack"),
            env=Environment(account=settings.account, region=settings.region),
            description="Worker manager: pools of build and test machines, right-sized",
            termination_protection=settings.keeps_tables,
        )
        self._settings = settings
        Tags.of(self).add("worker-manager:stage", settings.name)
        self._parameters()
        self.key = self._own_key() if settings.has_own_key else None
        self.tables = Tables(self, "Tables", settings=settings, key=self.key)
        self.bucket = self._sightings_bucket()
        self.auth_secret = secretsmanager.Secret(
            self,
            "Auth",
            secret_name=settings.resource_name("auth"),
            encryption_key=self.key,
            description="Clients, roles and issuer, as JSON; to be filled in before first use",
        )
        self.bus = events.EventBus(self, "Bus", event_bus_name=settings.resource_name("events"))
        if settings.has_event_queue:
            EventCopies(self, "EventCopies", settings=settings, bus=self.bus)
        for destination in settings.event_destinations:
            HttpsDestination(
                self,
                f"Events-{destination.name}",
                settings=settings,
                destination=destination,
                bus=self.bus,
            )
        self.service = Service(
            settings=settings,
            functions=code.functions,
            hash_of=code.hash_of,
            layers=self._layers(code),
            environment={
                "WM_DEPLOYMENT": settings.deployment,
                "WM_ROOT_URL": self.root_url,
                "WM_LIST_LAG_SECONDS": str(settings.list_lag_seconds),
                **({"WM_MAIL_FROM": settings.mail_from} if settings.mail_from else {}),
                "WM_PROVIDERS": self._providers(),
                "WM_TICK_SECONDS": self.tick_seconds,
                "WM_TIMING": self.timings,
            },
            schedule_state=self.schedule_state,
            key=self.key,
        )
        self._unattended: dict[str, lambda_.IFunction] = {}
        if settings.pulse:
            pulse = Pulse(
                self,
                "Pulse",
                service=self.service,
                settings=settings.pulse,
                bus=self.bus,
                layer=self._layer("PulseLayer", code.pulse_layer, code),
            )
            self._unattended["pulse"] = pulse.function
        self.loops = self._provider_loops(code)
        self._unattended |= {
            f"sweep-{loop.provider.provider_id}": loop.sweep for loop in self.loops
        }
        WorkerEnds(self, "WorkerEnds", service=self.service, tables=self.tables, bus=self.bus)
        self.acting = Acting(
            self,
            "Acting",
            service=self.service,
            tables=self.tables,
            bus=self.bus,
            auth_secret=self.auth_secret,
            queue_root_url=self.queue_root_url,
            inboxes={
                loop.provider.provider_id: {"advance": loop.inboxes["advance"]}
                for loop in self.loops
            },
        )
        self._unattended["act"] = self.acting.function
        self._by_the_clock()
        self._front_door()
        if settings.is_watched:
            self._watch()

    def _parameters(self) -> None:
        settings = self._settings

        def parameter(
            name: str, default: str, description: str, allowed: list[str] | None = None
        ) -> str:
            made = CfnParameter(
                self, name, default=default, description=description, allowed_values=allowed
            )
            return made.value_as_string

        self.root_url = parameter("RootUrl", settings.root_url, "The root URL that clients sign")
        self.queue_root_url = settings.queue_root_url or self.root_url
        self.tick_seconds = parameter(
            "TickSeconds",
            str(settings.tick_seconds),
            "From one tick to the next, in seconds",
            [str(seconds) for seconds in TICKS],
        )
        self.timings = parameter(
            "Timings", json.dumps(dict(settings.timings)), "Intervals, in seconds by name, as JSON"
        )
        self.schedule_state = parameter(
            "Schedules",
            "ENABLED",
            "DISABLED stops the clock, for an incident or a test",
            ["ENABLED", "DISABLED"],
        )
        self.trusted_keys = parameter(
            "TrustedEc2Keys", "", "Public keys for identity documents besides AWS's own, as PEM"
        )
        self.google_certificates = parameter(
            "GoogleCertificatesUrl", "", "Where certificates for identity tokens are, if elsewhere"
        )
        self.trusted_azure_roots = parameter(
            "TrustedAzureRoots", "", "Roots for attested documents besides Azure's own, as PEM"
        )
        self.azure_issuer_hosts = parameter(
            "AzureIssuerHosts",
            "",
            "Hosts of certificates besides Azure's own, by commas",
        )
        self.cloud_endpoints = {
            cloud: parameter(
                f"{cloud.title()}Endpoint", "", "Where the cloud is, for one simulated on loopback"
            )
            for cloud in ("azure", "google")
        }

    def _layers(self, code: Code) -> list[lambda_.ILayerVersion]:
        return [
            self._layer("SharedLayer", code.shared_layer, code, exclude=["**/__pycache__"]),
            # Its compiled files were written for Lambda, see ``build_layers``.
            self._layer("RuntimeLayer", code.runtime_layer, code),
        ]

    def _layer(
        self, name: str, folder: Path, code: Code, *, exclude: list[str] | None = None
    ) -> lambda_.ILayerVersion:
        return lambda_.LayerVersion(
            self,
            name,
            code=lambda_.Code.from_asset(
                str(folder), exclude=exclude, asset_hash=code.hash_of(folder)
            ),
            compatible_architectures=[lambda_.Architecture.ARM_64],
            description=f"{folder.name}: {self._settings.name}",
        )

    def _providers(self) -> str:
        return json.dumps(
            {
                provider.provider_id: {
                    "providerType": provider.provider_type,
                    **provider.options,
                }
                for provider in self._settings.providers
            }
        )

    def _own_key(self) -> kms.IKey:
        """For tables, secrets and bucket of a stage that does not leave that to AWS's own."""
        settings = self._settings
        return kms.Key(
            self,
            "Key",
            alias=f"alias/{settings.resource_name('data')}",
            enable_key_rotation=True,
            removal_policy=RemovalPolicy.RETAIN if settings.keeps_tables else RemovalPolicy.DESTROY,
        )

    def _sightings_bucket(self) -> s3.Bucket:
        """For lists too large for a message; nobody needs one after its tick."""
        return s3.Bucket(
            self,
            "Sightings",
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            encryption=s3.BucketEncryption.KMS if self.key else s3.BucketEncryption.S3_MANAGED,
            encryption_key=self.key,
            bucket_key_enabled=True if self.key else None,
            enforce_ssl=True,
            lifecycle_rules=[s3.LifecycleRule(expiration=Duration.days(1))],
            removal_policy=RemovalPolicy.DESTROY,
        )

    def _provider_loops(self, code: Code) -> list[ProviderLoop]:
        types = {provider.provider_type for provider in self._settings.providers}
        around = Surroundings(
            service=self.service,
            tables=self.tables,
            bus=self.bus,
            bucket=self.bucket,
            auth_secret=self.auth_secret,
            queue_root_url=self.queue_root_url,
            cloud_layers={
                cloud: self._layer(f"{cloud.title()}Layer", folder, code)
                for cloud, folder in code.cloud_layers.items()
                if cloud in types
            },
            cloud_endpoints=self.cloud_endpoints,
        )
        return [
            ProviderLoop(self, f"Loop-{provider.provider_id}", provider=provider, around=around)
            for provider in self._settings.providers
            if provider.has_loop
        ]

    def _by_the_clock(self) -> None:
        """Work that belongs to no provider: ends of life, late events, sightings, and mail."""
        tables = self.tables
        expire = (
            self._function("expire", timeout_seconds=300)
            .writes(tables.pools, tables.providers, tables.workers, tables.registry)
            .publishes_to(self.bus)
            .runs_every(Duration.hours(1))
        )
        publish = (
            self._function("publish", timeout_seconds=60)
            .reads(tables.pools)
            .writes(tables.providers, tables.workers, tables.registry)
            .publishes_to(self.bus)
            .runs_every(Duration.minutes(1))
        )
        if self._settings.mail_from:
            # Refused mail is itself an error of its pool.
            publish.writes(tables.errors).mails_from(self._settings.mail_from)
        self._unattended |= {"expire": expire.function, "publish": publish.function}
        examining = Examining(
            self,
            "Examining",
            service=self.service,
            tables=tables,
            bus=self.bus,
            auth_secret=self.auth_secret,
            queue_root_url=self.queue_root_url,
        )
        self._unattended["examine"] = examining.function
        if self._settings.queue_kind == "remote":
            observing = Observing(
                self,
                "Observing",
                service=self.service,
                tables=tables,
                bus=self.bus,
                auth_secret=self.auth_secret,
                queue_root_url=self.queue_root_url,
            )
            self._unattended["observe"] = observing.function

    def _front_door(self) -> None:
        tables = self.tables
        inboxes = {loop.provider.provider_id: loop.inboxes for loop in self.loops}
        functions = {
            "pools_api": self._function("pools_api")
            .reads(tables.workers, tables.health)
            .writes(tables.pools, tables.providers)
            .knows(WM_QUEUE_ROOT_URL=self.queue_root_url),
            "workers_api": self._function("workers_api")
            .adds_to(tables.pools, partitions=f"*{TRAIL}")
            .writes(tables.providers, tables.workers, tables.errors, tables.health)
            .knows(
                WM_TRUSTED_EC2_KEYS=self.trusted_keys,
                WM_GOOGLE_CERTS_URL=self.google_certificates,
                WM_TRUSTED_AZURE_ROOTS=self.trusted_azure_roots,
                WM_AZURE_ISSUER_HOSTS=self.azure_issuer_hosts,
            ),
        }
        for function in functions.values():
            function.publishes_to(self.bus).sends_to_any("WM_QUEUES", inboxes)
        functions["registry_api"] = (
            self._function("registry_api")
            .reads(tables.pools, tables.workers, tables.health)
            .writes(tables.actions)
            .sends_to("WM_QUEUE_ACTIONS", self.acting.queue)
            .knows(
                WM_QUEUE_ROOT_URL=self.queue_root_url,
                WM_QUEUE_BACKEND=self._settings.queue_kind,
            )
        )
        if tables.queue:
            functions["queue_api"] = (
                self._function("queue_api")
                .writes(tables.queue)
                .knows(WM_CLAIM_HOLD_SECONDS=str(self._settings.claim_hold_seconds))
            )
        for name in ("registry_api", *(["queue_api"] if tables.queue else [])):
            functions[name].knows(WM_ACTION_HOSTS=",".join(self._settings.action_hosts))
            # A quarantine is told to everybody, from wherever it comes.
            functions[name].writes(tables.registry).publishes_to(self.bus).adds_to(
                tables.providers, partitions=OUTBOX, removes=True
            )
        for function in functions.values():
            function.opens("WM_AUTH_SECRET", self.auth_secret)
            if self._settings.auth_root_url:
                function.knows(WM_AUTH="remote", WM_AUTH_ROOT_URL=self._settings.auth_root_url)
        self.front_door: Api | LoadBalancer
        if self._settings.front_door == "load-balancer":
            for name in ("pools_api", "workers_api", "registry_api"):
                functions[name].knows(WM_PAGE_BYTES=str(LARGEST_PLAIN))
            self.front_door = LoadBalancer(
                self, "LoadBalancer", settings=self._settings, functions=functions
            )
        else:
            self.front_door = Api(self, "Api", settings=self._settings, functions=functions)
        CfnOutput(self, "ApiUrl", value=self.front_door.url)

    def _watch(self) -> None:
        door = self.front_door
        Watching(
            self,
            "Watching",
            settings=self._settings,
            faults=door.faults,
            functions=self._unattended,
        )
        Dashboard(
            self, "Dashboard", settings=self._settings, faults=door.faults, requests=door.requests
        )

    def _function(self, folder: str, *, timeout_seconds: int = 29) -> ServiceFunction:
        return ServiceFunction(
            self,
            folder.title().replace("_", ""),
            service=self.service,
            folder=folder,
            timeout_seconds=timeout_seconds,
        )
