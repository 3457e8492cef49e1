"""The simulated EC2 itself: what may be done to instances, and what stands in the way.

What it has in common with other clouds (clock, chance, faults, counts) is in
``infra.local.clouds.cloud``.  Read next: ``estate`` (the instances), ``launches`` (a launch
request), ``actions`` (the query API on top).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any
from zlib import crc32

from infra.local.clouds.cloud import SimulatedCloud
from infra.local.clouds.ec2.buckets import take_resources
from infra.local.clouds.ec2.errors import Ec2Error, invalid_value
from infra.local.clouds.ec2.estate import Change, Estate
from infra.local.clouds.ec2.faults import Fault
from infra.local.clouds.ec2.identity import document_of, signature_of
from infra.local.clouds.ec2.instances import (
    GUEST_SHUT_DOWN,
    SPOT_INTERRUPTED,
    USER_TERMINATED,
    Instance,
    InstanceState,
)
from infra.local.clouds.ec2.launches import LaunchRequest
from infra.local.clouds.ec2.limits import Limits
from infra.local.clouds.ec2.notices import interruption_warning
from infra.local.clouds.ec2.settings import Settings
from infra.local.clouds.keys import SigningKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class _Remembered:
    fingerprint: str
    instances: tuple[Instance, ...]
    until: float


class Ec2Cloud(SimulatedCloud[Settings, Fault]):
    """All regions of one account.  Every method may be called from any thread."""

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
        self._key = key
        self._tokens: dict[tuple[str, str], _Remembered] = {}

    # What the query API does.

    def run(self, region: str, request: LaunchRequest) -> tuple[Instance, ...]:
        """Launch, in part where there is not room for all; a known token repeats its answer.

        Raises ``Ec2Error`` when nothing was launched.
        """
        with self.lock:
            if (known := self._remembered(region, request)) is not None:
                return known
            if request.image_id in self.bad_images:
                message = f"The image id '[{request.image_id}]' does not exist"
                raise Ec2Error("InvalidAMIID.NotFound", message)
            self._pay("RunInstances", region, request.maximum)
            grant = self.limits.grant(
                self._zones(region, request),
                lambda: self.estate.holding_capacity(region),
                region=region,
                instance_type=request.instance_type,
                spot=request.spot,
                minimum=request.minimum,
                maximum=request.maximum,
            )
            launched = self.estate.build(region, grant.zone, request, count=grant.count)
            if request.client_token:
                until = self.clock() + self.settings.token_seconds
                key = (region, request.client_token)
                self._tokens[key] = _Remembered(request.fingerprint, launched, until)
            return launched

    def terminate(self, region: str, instance_ids: Sequence[str]) -> list[Change]:
        """End instances for good; those that are ending already stay as they are."""
        with self.lock:
            found = self.estate.find(region, instance_ids)
            self._pay("TerminateInstances", region, len(found))
            return [self.estate.end(instance, USER_TERMINATED) for instance in found]

    def stop(self, region: str, instance_ids: Sequence[str]) -> list[Change]:
        """Stop running instances; any other state but stopped is refused."""
        with self.lock:
            found = self.estate.find(region, instance_ids)
            _expect(found, "stopped", (InstanceState.RUNNING, InstanceState.STOPPED))
            self._pay("StopInstances", region, len(found))
            return [self.estate.halt(instance, USER_TERMINATED) for instance in found]

    def start(self, region: str, instance_ids: Sequence[str]) -> list[Change]:
        """Start stopped instances; any other state but running is refused."""
        with self.lock:
            found = self.estate.find(region, instance_ids)
            _expect(found, "started", (InstanceState.STOPPED, InstanceState.RUNNING))
            self._pay("StartInstances", region, len(found))
            return [self.estate.awake(instance) for instance in found]

    def reboot(self, region: str, instance_ids: Sequence[str]) -> None:
        """Let running instances boot anew; terminated ones are passed over, stopped ones refused.

        They stay running all the time.
        """
        with self.lock:
            found = [i for i in self.estate.find(region, instance_ids) if not i.state.is_over]
            _expect(found, "rebooted", (InstanceState.RUNNING, InstanceState.PENDING))
            for instance in found:
                instance.reboots += 1

    # What a test or a demonstration does to the cloud.

    def change_settings(self, **changes: Any) -> None:
        """Replace some settings.  Raises ``TypeError`` for an unknown one."""
        with self.lock:
            super().change_settings(**changes)
            self.estate.settings = self.settings

    def seed(
        self,
        region: str,
        number: int,
        *,
        tags: Mapping[str, str],
        volume_tags: Mapping[str, str] | None = None,
        instance_type: str = "m5.large",
        image_id: str = "ami-0123456789abcdef0",
        zone: str = "",
        spot: bool = False,
    ) -> list[str]:
        """Put many running instances into a region at once; their ids."""
        request = LaunchRequest(
            image_id=image_id,
            instance_type=instance_type,
            minimum=number,
            maximum=number,
            spot=spot,
            instance_tags=dict(tags),
            volume_tags=dict(volume_tags or {}),
        )
        with self.lock:
            now = self.clock()
            zone = zone or f"{region}{self.settings.zone_letters[0]}"
            seeded = self.estate.build(region, zone, request, count=number)
            for instance in seeded:
                instance.is_seeded, instance.visible_at = True, now
                instance.move(
                    now, through=InstanceState.PENDING, to=InstanceState.RUNNING, seconds=0
                )
            return [instance.instance_id for instance in seeded]

    def warn(self, instance_ids: Iterable[str]) -> None:
        """Tell that spot instances will be taken back; ``interrupt`` takes them."""
        with self.lock:
            for instance_id in instance_ids:
                entry = interruption_warning(self.estate.instance(instance_id))
                if self.estate.announce is not None:
                    self.estate.announce(self.clock(), entry)

    def interrupt(self, instance_ids: Iterable[str]) -> None:
        """Take spot instances back, as EC2 does when it needs them."""
        with self.lock:
            for instance_id in instance_ids:
                self.estate.end(self.estate.instance(instance_id), SPOT_INTERRUPTED)

    def forget(self, instance_ids: Iterable[str]) -> None:
        """Make instances vanish without a trace, even from the lists."""
        with self.lock:
            for instance_id in instance_ids:
                self.estate.forget(instance_id)

    def shut_down_from_inside(self, instance_id: str) -> None:
        """What the machine's own operating system does to its instance when it shuts down."""
        with self.lock:
            instance = self.estate.instance(instance_id)
            if instance.stops_on_shutdown and not instance.spot:
                self.estate.halt(instance, GUEST_SHUT_DOWN)
            else:
                self.estate.end(instance, GUEST_SHUT_DOWN)

    def reset(self) -> None:
        """Drop all instances, tokens, limits, faults and counts; settings and key stay."""
        with self.lock:
            self.estate.clear()
            self._tokens.clear()
            self.bad_images.clear()
            self.limits = Limits(self.capacity)
            super().reset()

    # What is known of it.

    def instance(self, instance_id: str) -> Instance:
        """One instance of any region, settled, shown in lists or not yet.

        Raises ``Ec2Error`` InvalidInstanceID.NotFound when it is gone or never was.
        """
        with self.lock:
            return self.estate.instance(instance_id)

    def instances(self) -> list[Instance]:
        """Every instance of every region, settled, in order of launch."""
        with self.lock:
            return self.estate.instances()

    def signing_key(self) -> SigningKey:
        """The key that signs identity documents; made when first asked for."""
        with self.lock:
            if self._key is None:
                self._key = SigningKey.generate()
            return self._key

    def identity(self, instance_id: str) -> dict[str, str]:
        """The ``document`` and ``signature`` that a machine reads from its metadata service."""
        document = document_of(self.instance(instance_id))
        return {"document": document, "signature": signature_of(self.signing_key(), document)}

    def _pay(self, action: str, region: str, count: int) -> None:
        take_resources(self.buckets, action, region=region, count=count, now=self.clock())

    def _remembered(self, region: str, request: LaunchRequest) -> tuple[Instance, ...] | None:
        now = self.clock()
        known = self._tokens.get((region, request.client_token))
        if known is None or known.until <= now:
            return None
        if known.fingerprint != request.fingerprint:
            raise Ec2Error(
                "IdempotentParameterMismatch",
                "Arguments on this idempotent request are inconsistent with arguments used in "
                "previous request(s).",
            )
        for instance in known.instances:
            instance.settle(now)
        return known.instances

    def _zones(self, region: str, request: LaunchRequest) -> list[str]:
        """Zones to try, the one whose turn it is first."""
        zones = [f"{region}{letter}" for letter in self.settings.zone_letters]
        if request.zone:
            if request.zone not in zones:
                raise invalid_value(request.zone, "availabilityZone")
            return [request.zone]
        if request.subnet_id:
            return [zones[crc32(request.subnet_id.encode()) % len(zones)]]
        turn = self.calls["RunInstances", region] % len(zones)
        return zones[turn:] + zones[:turn]


def _expect(instances: Iterable[Instance], verb: str, allowed: Sequence[InstanceState]) -> None:
    for instance in instances:
        if instance.state not in allowed:
            raise Ec2Error(
                "IncorrectInstanceState",
                f"The instance '{instance.instance_id}' is not in a state from which it can be "
                f"{verb}.",
            )
