"""The instances of all regions: made, looked up, moved from state to state, and forgotten.

Nothing here refuses for want of capacity or quota; that is ``cloud``'s part, and so is the lock.
Read next: ``instances`` (one of them).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import count as counting
from typing import TYPE_CHECKING, Any

from infra.local.clouds.ec2.errors import Ec2Error, unknown_instances
from infra.local.clouds.ec2.instances import (
    Instance,
    InstanceState,
    Reservation,
    StateReason,
    Volume,
)
from infra.local.clouds.ec2.notices import state_change

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from random import Random

    from infra.local.clouds.ec2.launches import LaunchRequest
    from infra.local.clouds.ec2.settings import Settings

_HOLDING_NOTHING = (InstanceState.STOPPED, InstanceState.TERMINATED)


@dataclass(frozen=True, slots=True)
class Change:
    """What a call did to one instance's state."""

    instance: Instance
    before: InstanceState
    after: InstanceState


class Estate:
    """What exists.  Not thread-safe: the cloud's lock guards it."""

    def __init__(self, settings: Settings, clock: Callable[[], float], rng: Random) -> None:
        self.settings = settings
        self._clock = clock
        self._rng = rng
        self._sequence = counting(1)
        self._instances: dict[str, Instance] = {}
        self._regions: dict[str, dict[str, Instance]] = {}
        self._graves: deque[Instance] = deque()
        self._left_over: dict[str, dict[str, Volume]] = {}
        self.announce: Callable[[float, dict[str, Any]], None] | None = None
        """Hears of events and when they are due; see ``notices``."""

    def visible(self, region: str) -> Iterator[Instance]:
        """The settled instances of a region that lists show now, in order of launch."""
        now = self._clock()
        self._bury(now)
        for instance in list(self._in(region).values()):
            if instance.is_visible(now):
                instance.settle(now)
                yield instance

    def find(self, region: str, instance_ids: Iterable[str]) -> list[Instance]:
        """Exactly these instances; one unknown id spoils it all (``Ec2Error``)."""
        now = self._clock()
        self._bury(now)
        wanted = list(dict.fromkeys(instance_ids))
        for instance_id in wanted:
            if not instance_id.startswith("i-"):
                message = f'Invalid id: "{instance_id}"'
                raise Ec2Error("InvalidInstanceID.Malformed", message)
        known = self._in(region)
        found = [known[i] for i in wanted if i in known and known[i].is_visible(now)]
        if len(found) != len(wanted):
            raise unknown_instances(set(wanted) - {i.instance_id for i in found})
        for instance in found:
            instance.settle(now)
        return found

    def instance(self, instance_id: str) -> Instance:
        """One instance of any region, settled, shown in lists or not yet.

        Raises ``Ec2Error`` InvalidInstanceID.NotFound when it is gone or never was.
        """
        now = self._clock()
        self._bury(now)
        if (instance := self._instances.get(instance_id)) is None:
            raise unknown_instances([instance_id])
        instance.settle(now)
        return instance

    def instances(self) -> list[Instance]:
        """Every instance of every region, settled, in order of launch."""
        now = self._clock()
        self._bury(now)
        for instance in self._instances.values():
            instance.settle(now)
        return list(self._instances.values())

    def holding_capacity(self, region: str) -> list[Instance]:
        """The instances of a region that take up capacity: neither stopped nor terminated."""
        now = self._clock()
        instances = self._in(region).values()
        return [i for i in instances if i.settle(now) not in _HOLDING_NOTHING]

    def build(
        self, region: str, zone: str, request: LaunchRequest, *, count: int
    ) -> tuple[Instance, ...]:
        """Make ``count`` instances in one reservation; they are pending."""
        now = self._clock()
        reservation = Reservation(self._new_id("r"), self.settings.account_id)
        built = []
        for index in range(count):
            number = next(self._sequence)
            instance = Instance(
                instance_id=self._new_id("i"),
                sequence=number,
                region=region,
                zone=zone,
                reservation=reservation,
                launch_index=index,
                image_id=request.image_id,
                instance_type=request.instance_type,
                spot=request.spot,
                private_ip=f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}",
                launched_at=now,
                visible_at=now + self.settings.list_lag_seconds,
                client_token=request.client_token,
                user_data=request.user_data,
                stops_on_shutdown=request.stops_on_shutdown,
                tags=dict(request.instance_tags),
                volumes=tuple(
                    Volume(
                        self._new_id("vol"),
                        device,
                        size,
                        dict(request.volume_tags),
                        zone=zone,
                        created_at=now,
                        outlives=outlives,
                    )
                    for device, size, outlives in request.devices
                ),
            )
            self.awake(instance)
            self._instances[instance.instance_id] = instance
            self._in(region)[instance.instance_id] = instance
            built.append(instance)
        return tuple(built)

    def awake(self, instance: Instance) -> Change:
        """Let a new or stopped instance become running."""
        now = self._clock()
        before = instance.settle(now)
        if before is not InstanceState.RUNNING:
            instance.launched_at, instance.reason = now, None
            self._move(
                instance,
                now,
                through=InstanceState.PENDING,
                to=InstanceState.RUNNING,
                seconds=self.settings.pending_seconds,
            )
        return Change(instance, before, instance.state)

    def halt(self, instance: Instance, reason: StateReason) -> Change:
        """Let a running instance become stopped."""
        now = self._clock()
        before = instance.settle(now)
        if before in (InstanceState.RUNNING, InstanceState.PENDING):
            instance.reason = reason
            self._move(
                instance,
                now,
                through=InstanceState.STOPPING,
                to=InstanceState.STOPPED,
                seconds=self.settings.stopping_seconds,
            )
        return Change(instance, before, instance.state)

    def end(self, instance: Instance, reason: StateReason) -> Change:
        """Let an instance become terminated, and some time later unknown."""
        now = self._clock()
        before = instance.settle(now)
        if not before.is_over:
            stopped = before is InstanceState.STOPPED
            seconds = 0.0 if stopped else self.settings.shutting_down_seconds
            instance.reason = reason
            self._move(
                instance,
                now,
                through=InstanceState.SHUTTING_DOWN,
                to=InstanceState.TERMINATED,
                seconds=seconds,
            )
            instance.gone_at = now + seconds + self.settings.gone_after_seconds
            self._leave_volumes(instance)
            self._graves.append(instance)
        return Change(instance, before, instance.state)

    def forget(self, instance_id: str) -> None:
        """Make an instance vanish without a trace.  Raises ``Ec2Error`` for an unknown id."""
        instance = self.instance(instance_id)
        instance.gone_at = self._clock()
        self._leave_volumes(instance)
        self._drop(instance)

    def clear(self) -> None:
        """Forget everything."""
        self._instances.clear()
        self._regions.clear()
        self._graves.clear()
        self._left_over.clear()

    def left_over(self, region: str) -> dict[str, Volume]:
        """The disks of a region that outlived their instances, by id."""
        return self._left_over.setdefault(region, {})

    def _leave_volumes(self, instance: Instance) -> None:
        kept = {volume.volume_id: volume for volume in instance.volumes if volume.outlives}
        self.left_over(instance.region).update(kept)
        instance.volumes = tuple(v for v in instance.volumes if not v.outlives)

    def _move(
        self,
        instance: Instance,
        now: float,
        *,
        through: InstanceState,
        to: InstanceState,
        seconds: float,
    ) -> None:
        instance.move(now, through=through, to=to, seconds=seconds)
        if self.announce is not None:
            self.announce(now, state_change(instance, through.value))
            self.announce(now + seconds, state_change(instance, to.value))

    def _in(self, region: str) -> dict[str, Instance]:
        return self._regions.setdefault(region, {})

    def _bury(self, now: float) -> None:
        while self._graves and self._graves[0].gone_at <= now:
            self._drop(self._graves.popleft())

    def _drop(self, instance: Instance) -> None:
        self._instances.pop(instance.instance_id, None)
        self._in(instance.region).pop(instance.instance_id, None)

    def _new_id(self, prefix: str) -> str:
        return f"{prefix}-{self._rng.getrandbits(68):017x}"
