"""What differs between stages: names, providers, speeds.  ``stack`` turns it into resources.

Everything here is public: secrets are in Secrets Manager, under the names the stack gives them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote, urlsplit

from infra.accounts import ADDRESS, MOST_LOOPS, check_form, check_provider_id
from worker_manager.actions.hosts import Hosts
from worker_manager.settings import LONGEST_HOLD

if TYPE_CHECKING:
    from collections.abc import Mapping

PYTHON = "3.13"
"""The Lambda runtime of every function; layers are resolved and byte-compiled for it."""

ARCHITECTURE = "aarch64"
"""The processors of every function, as wheels spell it."""

TICKS = (5, 6, 10, 12, 15, 20, 30, 60)
"""The seconds that may lie between two ticks: whole parts of the schedule's minute."""

ProviderType = Literal["aws", "azure", "google", "static"]

_OPTIONS: Mapping[ProviderType, tuple[str, ...]] = {
    "azure": ("subscription", "resource_group"),
    "google": ("project", "service_account_id", "service_account_email"),
}
"""What a provider of a type must be told, and no other may be."""

QueueBackend = Literal["builtin", "remote", "events"]
"""The embedded queue; a Taskcluster queue that is asked who works on what; one of which somebody
tells us that."""

FrontDoor = Literal["rest", "load-balancer"]
"""An API Gateway REST API, paid by the request, or an Application Load Balancer, by the hour."""

_OF_THE_OTHER_DOOR: Mapping[FrontDoor, tuple[str, ...]] = {
    "rest": ("api_concurrency", "vpc_id", "subnet_ids"),
    "load-balancer": ("requests_per_second", "burst_requests"),
}
"""Settings that mean nothing to a front door."""

LOOPBACK = ("127.0.0.1", "::1", "localhost")
"""Where nobody listens in."""

LOG_DAYS = (1, 3, 7, 14, 30, 60, 90, 180, 365)
"""How long logs can be kept, in days."""


@dataclass(frozen=True, kw_only=True)
class ProviderSettings:
    """A provider as pools name it.

    ``concurrency`` bounds the pools (and pool-locations) worked on at once, 2 or more.
    AWS: ``instance_roles`` are the ARNs of the roles that its instance profiles carry.
    Google: ``project`` is where machines are, ``service_account_id`` (its numeric id) and
    ``service_account_email`` the account that machines run as.
    Azure: ``subscription`` is where machines are, ``resource_group`` where those are whose launch
    config names no other.
    """

    provider_id: str
    provider_type: ProviderType
    concurrency: int = 5
    instance_roles: tuple[str, ...] = ()
    project: str = ""
    service_account_id: str = ""
    service_account_email: str = ""
    subscription: str = ""
    resource_group: str = ""

    def __post_init__(self) -> None:
        """Refuse what would fail only after minutes of deployment, or mean nothing."""
        check_provider_id(self.provider_id)
        if self.concurrency < 2:
            raise ValueError(f"{self.provider_id}: concurrency must be at least 2")
        own = _OPTIONS.get(self.provider_type, ())
        for name in (name for names in _OPTIONS.values() for name in names):
            if bool(getattr(self, name)) != (name in own):
                wants = "needs" if name in own else "has no"
                raise ValueError(f"{self.provider_id}: type {self.provider_type} {wants} {name}")
        for name in own:
            check_form(self.provider_id, name, getattr(self, name))
        if self.instance_roles and self.provider_type != "aws":
            raise ValueError(f"{self.provider_id}: instance_roles are AWS's")

    @property
    def options(self) -> dict[str, str]:
        """What its functions are told of its cloud, under the library's names."""
        return {
            _in_wire_case(name): getattr(self, name)
            for name in _OPTIONS.get(self.provider_type, ())
        }

    @property
    def is_reached_by_role(self) -> bool:
        """Whether functions' roles say what they may do in the cloud, and not a secret alone."""
        return self.provider_type == "aws"

    @property
    def gives_notice(self) -> bool:
        """Whether the cloud tells of machines of its own accord, on EventBridge."""
        return self.provider_type == "aws"

    @property
    def has_loop(self) -> bool:
        """Whether machines are launched and listed, as opposed to standing in somebody's rack."""
        return self.provider_type != "static"


def _in_wire_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.title() for word in others)


@dataclass(frozen=True, kw_only=True)
class PulseSettings:
    """An AMQP broker that Taskcluster's other services listen to, such as Mozilla's Pulse.

    ``url`` is ``amqps://host[:port]``, without credentials: those are in the secret
    ``wm-<stage>-pulse``.  On this machine alone it may be ``amqp://``.
    Exchanges are named ``exchange/<namespace>/v1/…``; a Taskcluster queue listens to the default.
    """

    url: str
    virtual_host: str = "/"
    namespace: str = "taskcluster-worker-manager"

    def __post_init__(self) -> None:
        """Refuse what no connection could be made of, and what everybody could read."""
        given = urlsplit(self.url)
        schemes = ("amqp", "amqps") if given.hostname in LOOPBACK else ("amqps",)
        if given.scheme not in schemes or not given.hostname or given.path:
            raise ValueError(f"{self.url}: a broker's URL is amqps://host[:port]")
        if given.username or given.password:
            raise ValueError("a broker's user and password belong into its secret")

    @property
    def full_url(self) -> str:
        """With the virtual host, percent-encoded."""
        return f"{self.url}/{quote(self.virtual_host, safe='')}"


@dataclass(frozen=True, kw_only=True)
class EventDestination:
    """An HTTPS endpoint that is sent our events, one a request.

    The text of the secret ``secret_name``, which must exist, is sent as header ``header``.
    ``event_names`` are those of the README; empty for all.
    """

    name: str
    url: str
    secret_name: str
    header: str = "Authorization"
    event_names: tuple[str, ...] = ()
    per_second: int = 50

    def __post_init__(self) -> None:
        """Refuse what would send events readable to everybody."""
        if not self.url.startswith("https://"):
            raise ValueError(f"{self.name}: events are sent to https:// only")


@dataclass(frozen=True, kw_only=True)
class StageSettings:
    """One deployment of the service.

    ``deployment`` is the tag by which our machines are told from those of others.
    ``root_url`` is the Taskcluster root URL that clients sign for, without a slash at the end.
    ``queue_root_url`` is the root URL of a Taskcluster queue; ``None`` deploys the embedded one.
    ``queue_backend`` follows from that; with ``events`` a Taskcluster queue is not asked who works
    on what, but whoever hears its messages sends them to the registry.
    ``claim_hold_seconds`` is how long the embedded queue keeps a worker waiting that it has no task
    for, 0 to 2: fewer questions, but each of them is paid for as long as it is held.
    ``action_hosts`` are the hosts (``host`` or ``host:port``) that declared ``http`` actions may
    call, by https only; what stands there is called in our name, with the scopes of whoever asked.
    ``auth_root_url`` is the root URL of a Taskcluster auth service that checks signatures; with
    ``None`` the clients and roles are those of our own secret.
    ``list_lag_seconds`` is how long a cloud's list may lag behind a launch.
    ``timings`` overrides intervals of ``worker_manager.core.timing`` by name, in seconds.
    ``notice_regions`` are regions besides our own where machines run: a small stack in each
    forwards what EC2 tells of them.
    ``pulse`` is a broker to publish all events to as well, for a Taskcluster queue to hear.
    ``mail_from`` is who e-mails owners of pools of errors, an identity of SES that is verified in
    this account and region; ``None`` sends no mail.
    ``has_event_queue`` keeps a copy of each event in a queue, for whoever wants to read along.
    ``event_destinations`` are sent events by HTTPS.
    ``front_door`` is what clients reach.  The REST API takes ``requests_per_second`` on average
    and ``burst_requests`` at once (500 and 1000), and answers 503 to what is beyond.  A load
    balancer takes everything, so that ``api_concurrency`` (100) is reserved for each function
    behind it: that much is answered at once, and no more.  It needs a certificate, and stands in
    the subnets ``subnet_ids`` of ``vpc_id``, public ones in two zones, or in a VPC made for it.
    ``hosted_zone_id`` is the Route 53 zone that gets the root URL's name.
    ``keeps_tables`` guards data and stack against deletion.  ``has_own_key`` encrypts tables,
    secrets and bucket with a KMS key of the stage's own, instead of AWS's.
    ``is_watched`` makes alarms, mailed to ``alarm_email``, and a dashboard of the metrics;
    ``metrics_by_pool`` adds pools as a dimension, at 1.20 $ a pool and month.
    ``breaker_storm`` launch configs whose breakers open within ten minutes are an alarm.
    """

    name: str
    root_url: str
    providers: tuple[ProviderSettings, ...]
    deployment: str = ""
    queue_root_url: str | None = None
    queue_backend: QueueBackend | None = None
    claim_hold_seconds: float = 0
    action_hosts: tuple[str, ...] = ()
    auth_root_url: str | None = None
    tick_seconds: int = 30
    list_lag_seconds: int = 60
    timings: Mapping[str, float] = field(default_factory=dict)
    has_event_queue: bool = False
    keeps_tables: bool = True
    front_door: FrontDoor = "rest"
    certificate_arn: str | None = None
    hosted_zone_id: str | None = None
    vpc_id: str | None = None
    subnet_ids: tuple[str, ...] = ()
    requests_per_second: int | None = None
    burst_requests: int | None = None
    api_concurrency: int | None = None
    log_level: str = "INFO"
    log_days: int = 30
    has_own_key: bool = False
    is_watched: bool = True
    alarm_email: str | None = None
    metrics_by_pool: bool = False
    breaker_storm: int = 20
    event_destinations: tuple[EventDestination, ...] = ()
    mail_from: str | None = None
    pulse: PulseSettings | None = None
    notice_regions: tuple[str, ...] = ()
    account: str | None = None
    region: str | None = None

    def __post_init__(self) -> None:
        """Refuse settings that contradict themselves, before anything is deployed."""
        if self.tick_seconds not in TICKS:
            raise ValueError(f"{self.name}: tick_seconds must be one of {TICKS}")
        if self.root_url.endswith("/"):
            raise ValueError(f"{self.name}: root_url must not end in a slash")
        self._check_queue()
        Hosts.of(self.action_hosts)
        self._check_front_door()
        self._check_regions()
        if not self.is_watched and (self.alarm_email or self.metrics_by_pool):
            raise ValueError(f"{self.name}: alarm_email and metrics_by_pool need is_watched")
        if self.log_days not in LOG_DAYS:
            raise ValueError(f"{self.name}: log_days must be one of {LOG_DAYS}")
        if self.mail_from and not re.fullmatch(ADDRESS, self.mail_from, re.ASCII):
            raise ValueError(f"{self.name}: mail_from must be a plain e-mail address")
        self._check_providers()
        if not self.deployment:
            object.__setattr__(self, "deployment", f"worker-manager-{self.name}")

    def _check_queue(self) -> None:
        if (self.queue_kind == "builtin") != self.has_builtin_queue:
            wants = "has no" if self.queue_backend == "builtin" else "needs a"
            raise ValueError(
                f"{self.name}: queue_backend {self.queue_backend} {wants} queue_root_url"
            )
        if not 0 <= self.claim_hold_seconds <= LONGEST_HOLD:
            raise ValueError(f"{self.name}: claim_hold_seconds must be 0 to {LONGEST_HOLD}")
        if self.claim_hold_seconds and not self.has_builtin_queue:
            raise ValueError(f"{self.name}: claim_hold_seconds are the embedded queue's")

    def _check_providers(self) -> None:
        ids = [provider.provider_id for provider in self.providers]
        if len(set(ids)) != len(ids):
            raise ValueError(f"{self.name}: a provider id is used twice")
        if sum(provider.has_loop for provider in self.providers) > MOST_LOOPS:
            raise ValueError(
                f"{self.name}: at most {MOST_LOOPS} providers that launch machines fit into a "
                "stage, as CloudFormation takes 500 resources a stack; further ones belong into "
                "another stage"
            )

    def _check_regions(self) -> None:
        if self.notice_regions and not (self.account and self.region):
            raise ValueError(f"{self.name}: notice_regions need account and region")
        if self.region in self.notice_regions:
            raise ValueError(f"{self.name}: notice_regions are regions besides our own")

    def _check_front_door(self) -> None:
        if self.front_door == "load-balancer" and not self.certificate_arn:
            raise ValueError(f"{self.name}: a load balancer needs a certificate_arn")
        if self.hosted_zone_id and not self.certificate_arn:
            raise ValueError(f"{self.name}: a name in a hosted_zone_id needs a certificate_arn")
        for name in _OF_THE_OTHER_DOOR[self.front_door]:
            if getattr(self, name):
                raise ValueError(f"{self.name}: {name} is not for a front_door {self.front_door}")
        if bool(self.vpc_id) != bool(self.subnet_ids) or len(self.subnet_ids) == 1:
            raise ValueError(f"{self.name}: vpc_id and two subnet_ids at least come together")

    @property
    def host(self) -> str:
        """The host that clients sign, without a port."""
        return urlsplit(self.root_url).hostname or ""

    @property
    def path_prefix(self) -> str:
        """What the root URL has before ``/api``; mostly empty."""
        return urlsplit(self.root_url).path

    @property
    def has_builtin_queue(self) -> bool:
        """Whether the embedded task queue is deployed."""
        return self.queue_root_url is None

    @property
    def queue_kind(self) -> QueueBackend:
        """Where tasks are, and how the registry hears of who works on them."""
        return self.queue_backend or ("builtin" if self.has_builtin_queue else "remote")

    def resource_name(self, thing: str) -> str:
        """The exact name of a resource, the same in the README, the console and the logs."""
        return f"wm-{self.name}-{thing}"


_AWS = ProviderSettings(provider_id="aws", provider_type="aws")
_STATIC = ProviderSettings(provider_id="static", provider_type="static")
_SIMULATED = (
    ProviderSettings(
        provider_id="google",
        provider_type="google",
        project="simulated-project",
        service_account_id="100000000000000000001",
        service_account_email="worker@simulated-project.iam.gserviceaccount.com",
    ),
    ProviderSettings(
        provider_id="azure",
        provider_type="azure",
        subscription="00000000-0000-4000-8000-000000000001",
        resource_group="simulated-workers",
    ),
)
"""Google Cloud and Azure as they are on one machine; a stage names its own project and so on."""

STAGES: Mapping[str, StageSettings] = {
    stage.name: stage
    for stage in (
        StageSettings(
            name="prod",
            root_url="https://tc.example.com",
            queue_root_url="https://tc.example.com",
            providers=(_AWS, _STATIC),
            mail_from="worker-manager@tc.example.com",
        ),
        StageSettings(
            name="dev",
            root_url="https://tc-dev.example.com",
            providers=(_AWS, _STATIC),
            mail_from="worker-manager@tc-dev.example.com",
            has_event_queue=True,
            keeps_tables=False,
        ),
        StageSettings(
            name="local",
            root_url="http://127.0.0.1:5080",
            providers=(_AWS, *_SIMULATED, _STATIC),
            mail_from="worker-manager@example.com",
            tick_seconds=5,
            list_lag_seconds=2,
            timings={"shortest_inactivity": 5, "sighting": 5, "examine": 60, "reboot": 3},
            has_event_queue=True,
            keeps_tables=False,
            is_watched=False,
            account="000000000000",
            region="us-east-1",
        ),
    )
}
"""The stages that exist; ``-c stage=NAME`` picks one."""
