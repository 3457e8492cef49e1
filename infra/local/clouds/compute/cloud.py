"""The simulated Compute Engine itself: what may be done to instances, what stands in the way.

What it has in common with other clouds (clock, chance, faults, counts) is in
``infra.local.clouds.cloud``.  Read next: ``estate`` (the instances), ``inserts`` (an insert),
``actions`` (the API on top), ``seeding`` (what a demonstration puts into it).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from infra.local.clouds.cloud import SimulatedCloud
from infra.local.clouds.compute.errors import ComputeError, invalid, not_found
from infra.local.clouds.compute.estate import Estate
from infra.local.clouds.compute.faults import Fault
from infra.local.clouds.compute.identity import CertifiedKey
from infra.local.clouds.compute.instances import Status
from infra.local.clouds.compute.limits import Limits
from infra.local.clouds.compute.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from infra.local.clouds.compute.errors import Failure
    from infra.local.clouds.compute.inserts import InsertRequest
    from infra.local.clouds.compute.instances import Instance
    from infra.local.clouds.compute.operations import Operation
    from infra.local.clouds.keys import SigningKey

_SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class _Remembered:
    operation: Operation
    until: float


class ComputeCloud(SimulatedCloud[Settings, Fault]):
    """All zones of one project.  Every method may be called from any thread."""

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        clock: Callable[[], float] = time.time,
        rng: Random | None = None,
        key: SigningKey | None = None,
    ) -> None:
        super().__init__(settings or Settings(), clock=clock, rng=rng or Random(), fault=Fault)
        self.estate = Estate(self.settings, clock, self.rng)
        self.limits = Limits(self.capacity)
        self.bad_images: set[str] = set()
        """Images, by the last part of their link, that do not exist."""
        self.bad_machine_types: set[str] = set()
        self.unreachable: set[str] = set()
        """Zones that lists cannot look into."""
        self._keys = [] if key is None else [CertifiedKey(key)]
        self._requests: dict[tuple[str, str], _Remembered] = {}

    # What the API does.

    def check_zone(self, zone: str) -> None:
        """Raises ``ComputeError`` for a zone that does not exist."""
        if zone not in self.settings.zones:
            raise not_found(f"projects/{self.settings.project}/zones/{zone}")

    def insert(
        self, zone: str, request: InsertRequest, *, request_id: str, failure: Failure | None = None
    ) -> Operation:
        """Begin to make an instance; a known request id gives its operation again.

        With a ``failure`` the operation ends with it.  Raises ``ComputeError`` for a refusal.
        """
        with self.lock:
            if (known := self._remembered(zone, request_id)) is not None:
                return known
            self._check_existence(zone, request)
            instance = self.estate.plan(zone, request)
            failure = failure or self.limits.refuse(
                lambda: self.estate.holding_capacity(instance.region),
                project=self.settings.project,
                asked=instance,
            )
            if failure is not None and not self.settings.refuses_late:
                raise failure.at_once()
            self.estate.keep(instance)
            operation = self._begin("insert", instance, self._insert_seconds(failure), failure)
            instance.making = operation
            if failure is None:
                self.estate.start(instance)
            else:
                self.estate.doom(instance, seconds=self.settings.failing_seconds)
            return self._remember(zone, request_id, operation)

    def delete(self, zone: str, name_or_id: str, *, request_id: str = "") -> Operation:
        """Begin to delete an instance; one that is going already gives its operation again."""
        with self.lock:
            if (known := self._remembered(zone, request_id)) is not None:
                return known
            instance = self.estate.instance(zone, name_or_id)
            if instance.deletion is None:
                seconds = self.settings.delete_seconds
                instance.deletion = self._begin("delete", instance, seconds)
                self.estate.end(instance, seconds)
            return self._remember(zone, request_id, instance.deletion)

    def reset_instance(self, zone: str, name_or_id: str, *, request_id: str = "") -> Operation:
        """Begin the hard reset of a running instance; it stays RUNNING."""
        with self.lock:
            if (known := self._remembered(zone, request_id)) is not None:
                return known
            instance = self.estate.instance(zone, name_or_id)
            if instance.status is not Status.RUNNING:
                raise ComputeError(
                    "resourceNotReady", f"The resource '{instance.path}' is not ready"
                )
            instance.reboots += 1
            operation = self._begin("reset", instance, 0.0)
            return self._remember(zone, request_id, operation)

    def delete_disk(self, zone: str, name: str, *, request_id: str = "") -> Operation:
        """Delete a disk that is attached to nothing."""
        with self.lock:
            if (known := self._remembered(zone, request_id)) is not None:
                return known
            disk = self.estate.disk(zone, name)
            if disk.user:
                user = f"projects/{self.settings.project}/zones/{zone}/instances/{disk.user}"
                raise ComputeError(
                    "resourceInUseByAnotherResource",
                    f"The disk resource '{disk.path}' is already being used by '{user}'",
                )
            self.estate.drop_disk(disk)
            operation = self.estate.begin(
                "delete", zone=zone, target=f"disks/{name}", target_id=disk.disk_id, seconds=0.0
            )
            return self._remember(zone, request_id, operation)

    # What a test or a demonstration does to the cloud.

    def change_settings(self, **changes: Any) -> None:
        """Replace some settings.  Raises ``TypeError`` for an unknown one."""
        with self.lock:
            super().change_settings(**changes)
            self.estate.settings = self.settings

    def preempt(self, instance_ids: Iterable[str]) -> None:
        """Take spot instances back, as Compute Engine does when it needs them.

        They are stopped, or deleted where their ``instanceTerminationAction`` says so.
        """
        with self.lock:
            for instance_id in instance_ids:
                instance = self.estate.instance_anywhere(instance_id)
                instance.is_preempted = True
                self._begin("compute.instances.preempted", instance, 0.0).user = _SYSTEM
                scheduling = instance.body.get("scheduling") or {}
                if scheduling.get("instanceTerminationAction") == "DELETE":
                    self.estate.end(instance, self.settings.delete_seconds)
                else:
                    self.estate.halt(instance)

    def stop(self, instance_ids: Iterable[str]) -> None:
        """Stop instances by hand: TERMINATED, but still there."""
        with self.lock:
            for instance_id in instance_ids:
                self.estate.halt(self.estate.instance_anywhere(instance_id))

    def forget(self, instance_ids: Iterable[str], *, leave_disks: bool = False) -> None:
        """Make instances vanish without a trace, but for their disks if those are to be left."""
        with self.lock:
            for instance_id in instance_ids:
                instance = self.estate.instance_anywhere(instance_id)
                self.estate.forget(instance, leave_disks=leave_disks)

    def shut_down_from_inside(self, instance_id: str) -> None:
        """What the machine's own operating system does to its instance when it shuts down."""
        with self.lock:
            instance = self.estate.instance_anywhere(instance_id)
            self._begin("compute.instances.guestTerminate", instance, 0.0).user = _SYSTEM
            self.estate.halt(instance)

    def reset(self) -> None:
        """Drop everything that was made, set up or counted; settings and keys stay."""
        with self.lock:
            self.estate.clear()
            self._requests.clear()
            for names in (self.bad_images, self.bad_machine_types, self.unreachable):
                names.clear()
            self.limits = Limits(self.capacity)
            super().reset()

    # What is known of it.

    def instance(self, instance_id: str) -> Instance:
        """One instance of any zone, settled, shown in lists or not yet.

        Raises ``ComputeError`` notFound when it is gone or never was.
        """
        with self.lock:
            return self.estate.instance_anywhere(instance_id)

    def instances(self) -> list[Instance]:
        """Every instance of every zone, settled, in order of making."""
        with self.lock:
            return self.estate.every_instance()

    def certified_keys(self) -> list[CertifiedKey]:
        """The keys that sign identity tokens, the present one first; made when first asked for."""
        with self.lock:
            if not self._keys:
                self._keys.append(CertifiedKey.generate())
            return list(self._keys)

    def rotate_keys(self) -> None:
        """Sign with a new key from now on; the one before stays published."""
        with self.lock:
            self._keys = [CertifiedKey.generate(), *self.certified_keys()[:1]]

    def _check_existence(self, zone: str, request: InsertRequest) -> None:
        if request.machine_type in self.bad_machine_types:
            raise invalid(
                "resource.machineType",
                request.body["machineType"],
                f"Machine type with name '{request.machine_type}' does not exist in zone '{zone}'.",
            )
        for disk in request.disks:
            if disk.image in self.bad_images:
                raise invalid(
                    "resource.disks[0].initializeParams.sourceImage",
                    disk.image,
                    "The referenced image resource cannot be found.",
                )

    def _insert_seconds(self, failure: Failure | None) -> float:
        settings = self.settings
        return settings.insert_seconds if failure is None else settings.failing_seconds

    def _begin(
        self, kind: str, instance: Instance, seconds: float, failure: Failure | None = None
    ) -> Operation:
        return self.estate.begin(
            kind,
            zone=instance.zone,
            target=f"instances/{instance.name}",
            target_id=instance.instance_id,
            seconds=seconds,
            failure=failure,
        )

    def _remembered(self, zone: str, request_id: str) -> Operation | None:
        now = self.clock()
        known = self._requests.get((zone, request_id))
        if known is None or known.until <= now:
            return None
        known.operation.settle(now)
        return known.operation

    def _remember(self, zone: str, request_id: str, operation: Operation) -> Operation:
        if request_id:
            until = self.clock() + self.settings.request_seconds
            self._requests[zone, request_id] = _Remembered(operation, until)
        return operation
