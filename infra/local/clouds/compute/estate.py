"""The instances, disks and operations of all zones: made, looked up, moved on, and forgotten.

Nothing here refuses for want of room; that is ``cloud``'s part, and so is the lock.  Read next:
``instances`` (one of them).
"""

from __future__ import annotations

import heapq
from collections import deque
from itertools import count as counting
from typing import TYPE_CHECKING

from infra.local.clouds.compute.disks import Disk
from infra.local.clouds.compute.errors import ComputeError, Failure, not_found
from infra.local.clouds.compute.instances import Attachment, Instance, Status
from infra.local.clouds.compute.operations import Operation
from infra.local.clouds.compute.shelf import Shelf

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from random import Random

    from infra.local.clouds.compute.inserts import AskedDisk, InsertRequest
    from infra.local.clouds.compute.settings import Settings

_DELETED_MEANWHILE = Failure("", "", status=409, reason="CONFLICT")


class Estate:
    """What exists.  Not thread-safe: the cloud's lock guards it."""

    def __init__(self, settings: Settings, clock: Callable[[], float], rng: Random) -> None:
        self.settings = settings
        self._clock = clock
        self._rng = rng
        self._sequence = counting(1)
        self.instances: Shelf[Instance] = Shelf()
        self.disks: Shelf[Disk] = Shelf()
        self.operations: Shelf[Operation] = Shelf()
        self._by_name: dict[tuple[str, str], Instance] = {}
        self._by_id: dict[str, Instance] = {}
        self._disks: dict[tuple[str, str], Disk] = {}
        self._operations: dict[tuple[str, str], Operation] = {}
        self._graves: list[tuple[float, int, Instance]] = []
        self._old: deque[Operation] = deque()

    # Looking.

    def tidy(self) -> float:
        """Forget what is over, and tell the time; called before anything is looked at."""
        now = self._clock()
        while self._graves and self._graves[0][0] <= now:
            _, _, instance = heapq.heappop(self._graves)
            self._remove(instance)
        while self._old and self._old[0].began_at + self.settings.operations_seconds <= now:
            operation = self._old.popleft()
            self.operations.take(operation)
            self._operations.pop((operation.zone, operation.name), None)
        return now

    def instance(self, zone: str, name_or_id: str) -> Instance:
        """One instance, settled.  Raises ``ComputeError`` notFound."""
        now = self.tidy()
        found = self._by_name.get((zone, name_or_id)) or self._by_id.get(name_or_id)
        if found is None or found.zone != zone:
            raise not_found(f"{self._scope(zone)}/instances/{name_or_id}")
        found.settle(now)
        return found

    def instance_anywhere(self, instance_id: str) -> Instance:
        """One instance of any zone by its id, settled.  Raises ``ComputeError`` notFound."""
        now = self.tidy()
        if (found := self._by_id.get(instance_id)) is None:
            raise not_found(f"projects/{self.settings.project}/instances/{instance_id}")
        found.settle(now)
        return found

    def every_instance(self) -> list[Instance]:
        """Every instance of every zone, settled, in order of making."""
        now = self.tidy()
        found = list(self.instances.after(0))
        for instance in found:
            instance.settle(now)
        return found

    def holding_capacity(self, region: str) -> list[Instance]:
        """The instances of a region that take up room: all that are not TERMINATED."""
        return [
            instance
            for instance in self.every_instance()
            if instance.region == region and instance.status is not Status.TERMINATED
        ]

    def disk(self, zone: str, name: str) -> Disk:
        """One disk.  Raises ``ComputeError`` notFound."""
        self.tidy()
        if (found := self._disks.get((zone, name))) is None:
            raise not_found(f"{self._scope(zone)}/disks/{name}")
        return found

    def operation(self, zone: str, name: str) -> Operation:
        """One operation, settled.  Raises ``ComputeError`` notFound."""
        now = self.tidy()
        if (found := self._operations.get((zone, name))) is None:
            raise not_found(f"{self._scope(zone)}/operations/{name}")
        found.settle(now)
        return found

    # Making.

    def plan(self, zone: str, request: InsertRequest) -> Instance:
        """The instance that a request would make, in nobody's list yet.

        Raises ``ComputeError`` alreadyExists when its name or that of a disk is taken.
        """
        now = self.tidy()
        if (zone, request.name) in self._by_name:
            raise self._taken(zone, f"instances/{request.name}")
        for disk in request.disks:
            if (zone, disk.name) in self._disks:
                raise self._taken(zone, f"disks/{disk.name}")
        number = next(self._sequence)
        return Instance(
            instance_id=self._new_id(),
            sequence=number,
            project=self.settings.project,
            name=request.name,
            zone=zone,
            instance_type=request.machine_type,
            spot=request.spot,
            body=request.body,
            private_ip=f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}",
            created_at=now,
            visible_at=now + self.settings.list_lag_seconds,
            labels=dict(request.labels),
            disks=tuple(
                Attachment(self._disk(zone, disk, now, user=request.name), disk.auto_delete)
                for disk in request.disks
            ),
        )

    def keep(self, instance: Instance) -> None:
        """Let a planned instance exist."""
        self.instances.put(instance)
        self._by_name[instance.zone, instance.name] = instance
        self._by_id[instance.instance_id] = instance
        for attachment in instance.disks:
            self._keep_disk(attachment.disk)

    def add_disk(self, zone: str, name: str, labels: Mapping[str, str]) -> Disk:
        """Make a disk that is attached to nothing."""
        disk = Disk(
            name=name,
            sequence=next(self._sequence),
            disk_id=self._new_id(),
            project=self.settings.project,
            zone=zone,
            size_gb=10,
            disk_type="pd-standard",
            created_at=self._clock(),
            labels=dict(labels),
        )
        self._keep_disk(disk)
        return disk

    def begin(
        self,
        kind: str,
        *,
        zone: str,
        target: str,
        target_id: str,
        seconds: float,
        failure: Failure | None = None,
    ) -> Operation:
        """Begin an operation that ends in so many seconds, badly if there is a failure."""
        now = self._clock()
        stamp = f"{self._rng.getrandbits(52):013x}-{self._rng.getrandbits(32):08x}"
        operation = Operation(
            name=f"operation-{int(now * 1000)}-{stamp}",
            sequence=next(self._sequence),
            operation_id=self._new_id(),
            project=self.settings.project,
            zone=zone,
            kind=kind,
            target=target,
            target_id=target_id,
            began_at=now,
            ends_at=now + seconds,
            failure=failure,
        )
        operation.settle(now)
        self.operations.put(operation)
        self._operations[zone, operation.name] = operation
        self._old.append(operation)
        return operation

    # Moving on.

    def start(self, instance: Instance) -> None:
        """Let a new instance become RUNNING."""
        now = self._clock()
        instance.change(
            Status.PROVISIONING,
            (
                (now + self.settings.provisioning_seconds, Status.STAGING),
                (now + self.settings.insert_seconds, Status.RUNNING),
            ),
        )
        instance.settle(now)

    def doom(self, instance: Instance, *, seconds: float) -> None:
        """Let an instance that could not be made vanish again, its disks with it."""
        kept = instance.disks
        instance.disks = tuple(Attachment(a.disk, auto_delete=True) for a in kept)
        self._bury(instance, seconds)

    def end(self, instance: Instance, seconds: float) -> None:
        """Let an instance stop, and be gone in so many seconds."""
        now = self._clock()
        if instance.making is not None and not instance.making.settle(now):
            instance.making.ends_at, instance.making.failure = now, _DELETED_MEANWHILE
        instance.change(Status.STOPPING)
        self._bury(instance, seconds)

    def halt(self, instance: Instance) -> None:
        """Let an instance stop and stay, TERMINATED."""
        now = self._clock()
        if instance.settle(now) is not Status.TERMINATED:
            ends_at = now + self.settings.stopping_seconds
            instance.change(Status.STOPPING, ((ends_at, Status.TERMINATED),))
            instance.settle(now)

    def forget(self, instance: Instance, *, leave_disks: bool) -> None:
        """Make an instance vanish without a trace, but for its disks if they are to be left."""
        if leave_disks:
            instance.disks = tuple(Attachment(a.disk, auto_delete=False) for a in instance.disks)
        instance.gone_at = self._clock()
        self._remove(instance)

    def drop_disk(self, disk: Disk) -> None:
        """Remove a disk."""
        self.disks.take(disk)
        self._disks.pop((disk.zone, disk.name), None)

    def clear(self) -> None:
        """Forget everything."""
        for shelf in (self.instances, self.disks, self.operations):
            shelf.clear()
        for index in (self._by_name, self._by_id, self._disks, self._operations):
            index.clear()
        self._graves.clear()
        self._old.clear()

    def _bury(self, instance: Instance, seconds: float) -> None:
        instance.gone_at = self._clock() + seconds
        heapq.heappush(self._graves, (instance.gone_at, instance.sequence, instance))

    def _remove(self, instance: Instance) -> None:
        if self._by_id.pop(instance.instance_id, None) is None:
            return
        self.instances.take(instance)
        self._by_name.pop((instance.zone, instance.name), None)
        for attachment in instance.disks:
            attachment.disk.user = ""
            if attachment.auto_delete:
                self.drop_disk(attachment.disk)

    def _disk(self, zone: str, asked: AskedDisk, now: float, *, user: str) -> Disk:
        return Disk(
            name=asked.name,
            sequence=next(self._sequence),
            disk_id=self._new_id(),
            project=self.settings.project,
            zone=zone,
            size_gb=asked.size_gb,
            disk_type=asked.disk_type,
            created_at=now,
            labels=dict(asked.labels),
            user=user,
        )

    def _keep_disk(self, disk: Disk) -> None:
        self.disks.put(disk)
        self._disks[disk.zone, disk.name] = disk

    def _scope(self, zone: str) -> str:
        return f"projects/{self.settings.project}/zones/{zone}"

    def _taken(self, zone: str, target: str) -> ComputeError:
        message = f"The resource '{self._scope(zone)}/{target}' already exists"
        return ComputeError("alreadyExists", message)

    def _new_id(self) -> str:
        return str(10**18 + self._rng.randrange(8 * 10**18))
