"""The nouns of the service: pools, launch configs, workers, orders and plans.

All are immutable values without behaviour that touches the world.  Times are aware UTC
``datetime``s.  Where to read next: ``tally`` (how workers are counted), ``lifecycle`` (how one
worker's state moves on).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NewType

if TYPE_CHECKING:
    from worker_manager.core.errors import CloudError

Json = Mapping[str, Any]
Location = NewType("Location", str)
"""What one list call of a cloud covers: a region, a project, a subscription."""

NULL_PROVIDER = "null-provider"
"""The provider of a pool that is being deleted; it launches nothing."""

DEFAULT_REGISTRATION = timedelta(hours=1)
DEFAULT_REREGISTRATION = timedelta(seconds=345_600)
DEFAULT_QUEUE_INACTIVITY = timedelta(seconds=7_200)


class State(StrEnum):
    """Where a worker is in its life, as the API shows it.

    Only those that somebody set up are ever ``CREATED``: entered, and never registered since.
    """

    CREATED = "created"
    REQUESTED = "requested"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, order=True)
class WorkerKey:
    """The full name of a worker; ids alone may repeat in other pools."""

    pool_id: str
    group: str
    worker_id: str


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """How long a worker may take for what.

    ``registration`` counts from when the cloud says that the machine runs, not from its launch:
    a slow cloud is no broken image (report B24).  How long a launch may take is ``Timing``'s.
    """

    registration: timedelta = DEFAULT_REGISTRATION
    reregistration: timedelta = DEFAULT_REREGISTRATION
    queue_inactivity: timedelta = DEFAULT_QUEUE_INACTIVITY

    @property
    def registration_limit(self) -> timedelta:
        """From running to registered: the shorter of the two timeouts that apply."""
        return min(self.registration, self.reregistration)


@dataclass(frozen=True, slots=True)
class LaunchConfigHead:
    """What planning needs of a launch config, kept in the pool's own item (about 150 bytes).

    ``manager`` is the caller's ``workerManager`` object without ``launchConfigId``: it may change
    under an unchanged id.  ``capacity_per_instance`` is already resolved from it or from the
    deprecated top-level field.  ``digest`` tells whether a body is the one already stored.
    ``offering`` names what is asked of the cloud (location, zone, machine type, spot or not):
    launch configs of any pool with the same one meet the same refusals.  Empty if unknown.
    """

    launch_config_id: str
    location: Location
    manager: Json
    capacity_per_instance: int
    modified: datetime
    digest: str = ""
    offering: str = ""

    @property
    def initial_weight(self) -> float:
        """The caller's weight, 0.0 to 1.0; 0 switches the launch config off, always."""
        return float(self.manager.get("initialWeight", 1))

    @property
    def max_capacity(self) -> int | None:
        """This launch config's own hard limit, in capacity; ``None`` means the pool's."""
        limit = self.manager.get("maxCapacity")
        return None if limit is None else int(limit)


@dataclass(frozen=True, slots=True)
class LaunchConfig:
    """A launch config with its body: the JSON the caller gave, without ``workerManager``.

    ``manager`` and ``modified`` are what its head had when it was archived; an active one's head
    has them.
    """

    pool_id: str
    launch_config_id: str
    body: Json
    created: datetime
    manager: Json = field(default_factory=dict)
    modified: datetime | None = None


@dataclass(frozen=True, slots=True)
class Pool:
    """A worker pool's definition.  ``config`` lacks ``launchConfigs``: those are the heads."""

    pool_id: str
    provider_id: str
    description: str
    owner: str
    email_on_error: bool
    config: Json
    heads: tuple[LaunchConfigHead, ...]
    created: datetime
    modified: datetime
    version: int = 0
    previous_provider_ids: tuple[str, ...] = ()

    @property
    def min_capacity(self) -> int:
        """Capacity kept even without demand."""
        return int(self.config.get("minCapacity", 0))

    @property
    def max_capacity(self) -> int:
        """Capacity never exceeded by what still costs money."""
        return int(self.config.get("maxCapacity", 0))

    @property
    def scaling_ratio(self) -> float:
        """Workers wanted per pending task, 0.0 to 1.0."""
        return float(self.config.get("scalingRatio", 1.0))

    @property
    def lifecycle(self) -> Lifecycle:
        """The pool's timeouts, with the reference's defaults."""
        given = self.config.get("lifecycle") or {}

        def seconds(name: str) -> timedelta | None:
            value = given.get(name)
            return timedelta(seconds=value) if value else None

        return Lifecycle(
            registration=seconds("registrationTimeout") or DEFAULT_REGISTRATION,
            reregistration=seconds("reregistrationTimeout") or DEFAULT_REREGISTRATION,
            queue_inactivity=seconds("queueInactivityTimeout") or DEFAULT_QUEUE_INACTIVITY,
        )


@dataclass(frozen=True, slots=True)
class Surplus:
    """The standing answer to "should this worker terminate?", with its reason."""

    terminate: bool
    reason: str
    decided: datetime


@dataclass(frozen=True, slots=True)
class Worker:
    """One machine, as our own table knows it.  At most 4 KB with everything.

    ``deadline`` is when it must run in its cloud (requested and not yet ``launched``), must have
    registered (within ``registration`` of ``launched``, which is when the cloud was first seen to
    run it), or must have renewed its credentials (running).
    ``registrations`` are the latest ones (``lifecycle.registrations_with``), the oldest first; read
    from the index ``live`` only the last of them is known.
    ``rebooted`` is when its cloud was last about to be told to reboot it, until it registers again.
    ``identity`` holds what the cloud said of the machine and its proof must repeat.
    ``unsent`` are events written together with the last transition and not yet published.
    ``decision`` names the plan that ordered it, ``stopped_by`` who ended it (a client id, or the
    part of the service, or the cloud) beside ``stop_reason``.
    ``expires`` is set for static workers; a live cloud worker's follows from its location's last
    complete list, a stopped one's from ``modified``.
    """

    key: WorkerKey
    provider_id: str
    location: Location
    state: State
    capacity: int
    created: datetime
    modified: datetime
    expires: datetime | None = None
    version: int = 0
    launch_config_id: str | None = None
    order_id: str | None = None
    deadline: datetime | None = None
    launched: datetime | None = None
    registration: timedelta = DEFAULT_REGISTRATION
    reregistration: timedelta = DEFAULT_REREGISTRATION
    queue_inactivity: timedelta = DEFAULT_QUEUE_INACTIVITY
    registered: datetime | None = None
    registrations: tuple[datetime, ...] = ()
    boot_time: datetime | None = None
    rebooted: datetime | None = None
    first_claim: datetime | None = None
    quarantine_until: datetime | None = None
    stopping_since: datetime | None = None
    stop_reason: str | None = None
    stopped_by: str | None = None
    decision: str | None = None
    surplus: Surplus | None = None
    identity: Json = field(default_factory=dict)
    secret_hash: str | None = None
    previous_secret_hash: str | None = None
    secret_rotated: datetime | None = None
    unsent: tuple[Json, ...] = ()

    def is_quarantined(self, now: datetime) -> bool:
        """Whether the queue gives this worker no new tasks at ``now``."""
        return self.quarantine_until is not None and self.quarantine_until > now


class MachineStatus(StrEnum):
    """A cloud's state of a machine, in our words."""

    PENDING = "pending"
    RUNNING = "running"
    STOPPING = "stopping"
    """being deleted; still there, may still cost"""
    STOPPED = "stopped"
    """powered off but not deleted: it still costs, and is to be terminated"""
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Sighting:
    """One machine of ours in a cloud's list, with the tags that say where it came from.

    ``failure`` is why its cloud did not make it, or will not go on with it.
    """

    key: WorkerKey
    location: Location
    status: MachineStatus
    launch_config_id: str | None = None
    order_id: str | None = None
    launched: datetime | None = None
    identity: Json = field(default_factory=dict)
    failure: CloudError | None = None


@dataclass(frozen=True, slots=True)
class LaunchOrder:
    """Everything a provider needs to launch ``count`` machines; the same order, the same machines.

    ``inputs`` are the parts of the request that could not be derived again later (owner,
    description, time, …), stored with the plan so that a re-send is equal to the byte.
    ``manager`` is the launch config's ``workerManager`` as it is now.  ``only`` are the names of
    those machines that are still wanted, where names are ours; ``None`` for all.
    """

    order_id: str
    pool_id: str
    provider_id: str
    launch_config_id: str
    location: Location
    count: int
    body: Json
    inputs: Json
    manager: Json = field(default_factory=dict)
    only: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class PoolError:
    """Something that went wrong for a pool, as its owner sees it."""

    error_id: str
    pool_id: str
    reported: datetime
    kind: str
    title: str
    description: str
    extra: Json = field(default_factory=dict)
    launch_config_id: str | None = None


def canonical_json(value: object) -> str:
    """Text of a JSON value that is the same whenever the value is."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
