"""The simulated Azure itself: what it has, and what a test or a demonstration does to it.

What it has in common with other clouds (clock, chance, faults, counts) is in
``infra.local.clouds.cloud``.  Read next: ``estate`` (what exists), ``building`` and
``deployments`` (how it comes to exist), ``actions`` (the API on top).
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from datetime import UTC, datetime
from random import Random
from typing import TYPE_CHECKING, Any

from infra.local.clouds.arm.building import Builder
from infra.local.clouds.arm.deployments import Deployments
from infra.local.clouds.arm.estate import Estate, Group
from infra.local.clouds.arm.faults import ArmFault
from infra.local.clouds.arm.identity import Attestation, document_of
from infra.local.clouds.arm.lifecycle import Lifecycle
from infra.local.clouds.arm.resources import Kind, Machine, Power, Provisioning, Resource
from infra.local.clouds.arm.settings import Settings
from infra.local.clouds.cloud import SimulatedCloud
from infra.local.clouds.keys import SigningKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping


class ArmCloud(SimulatedCloud[Settings, ArmFault]):
    """One subscription.  Every method may be called from any thread."""

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        clock: Callable[[], float] = time.time,
        rng: Random | None = None,
        key: SigningKey | None = None,
    ) -> None:
        super().__init__(settings or Settings(), clock=clock, rng=rng or Random(), fault=ArmFault)
        self.estate = Estate()
        self.lifecycle = Lifecycle(self.estate, settings=lambda: self.settings, rng=self.rng)
        self.fates = self.lifecycle.fates
        self.builder = Builder(
            self.estate,
            self.lifecycle,
            settings=lambda: self.settings,
            capacity=self.capacity,
        )
        self.quotas = self.builder.quotas
        self.deployments = Deployments(
            self.estate, self.lifecycle, self.builder, settings=lambda: self.settings
        )
        self._key = key
        self._attestation: Attestation | None = None
        self._found_groups()

    @contextmanager
    def present(self) -> Iterator[float]:
        """Hold the lock and let happen what is due; gives the time, which is now."""
        with self.lock:
            now = self.clock()
            self.lifecycle.agenda.run(now)
            yield now

    # What a test or a demonstration does to the cloud.

    def change_settings(self, **changes: Any) -> None:
        """Replace some settings.  Raises ``TypeError`` for an unknown one."""
        with self.lock:
            super().change_settings(**changes)
            self._found_groups()

    def seed(
        self,
        group: str,
        number: int,
        *,
        tags: Mapping[str, str],
        location: str = "eastus",
        size: str = "Standard_D2s_v5",
        spot: bool = False,
        prefix: str = "vm-seed",
        with_parts: bool = True,
    ) -> list[str]:
        """Put many running machines into a group at once, with NIC and disk; their names."""
        with self.present() as now:
            home = self.estate.group(group).name
            common: dict[str, Any] = {"location": location, "now": now, "tags": dict(tags)}
            properties = {
                "hardwareProfile": {"vmSize": size},
                "priority": "Spot" if spot else "Regular",
            }
            names = []
            for _ in range(number):
                sequence = next(self.estate.numbers)
                name = f"{prefix}{sequence}"
                machine = Machine(
                    kind=Kind.VM,
                    group=home,
                    name=name,
                    location=location,
                    sequence=sequence,
                    created_at=now,
                    visible_at=now,
                    tags=common["tags"],
                    properties=properties,
                    state=Provisioning.SUCCEEDED,
                    vm_id=self.lifecycle.new_id(),
                    size=size,
                    spot=spot,
                    power=Power.RUNNING,
                    is_seeded=True,
                )
                self.estate.add(machine)
                names.append(name)
                for kind in (Kind.NIC, Kind.DISK) if with_parts else ():
                    part = self.lifecycle.make(kind, home, f"{name}-{kind.value[:4]}", **common)
                    part.state, part.visible_at = Provisioning.SUCCEEDED, now
                    self.lifecycle.attach(part, machine, deleted_with_holder=True)
            return names

    def warn(self, names: Iterable[str]) -> None:
        """Tell Spot machines that they will be evicted; ``evict`` does it."""
        with self.present():
            for name in names:
                self.estate.machine(name).is_warned = True

    def evict(self, names: Iterable[str]) -> None:
        """Take Spot machines back: deleted or deallocated, as their eviction policy says."""
        with self.present() as now:
            for name in names:
                machine = self.estate.machine(name)
                if machine.properties.get("evictionPolicy") == "Delete":
                    self.lifecycle.delete(machine, now)
                else:
                    self.switch(machine, Power.DEALLOCATING, Power.DEALLOCATED, now)

    def forget(self, names: Iterable[str], kind: Kind = Kind.VM) -> None:
        """Make resources vanish at once, also from lists; what they held stays."""
        with self.present() as now:
            for name in names:
                self.lifecycle.vanish(self.estate.named(kind, name), now)

    def delete(self, names: Iterable[str]) -> None:
        """Delete machines by hand, as somebody in the portal does."""
        with self.present() as now:
            for name in names:
                self.lifecycle.delete(self.estate.machine(name), now)

    def shut_down_from_inside(self, name: str) -> None:
        """What the operating system does to its machine: it stops, and stays allocated."""
        with self.present():
            self.estate.machine(name).power = Power.STOPPED

    def switch(self, machine: Machine, through: Power, to: Power, now: float) -> Any:
        """Let a machine's power become another; the operation."""
        seconds = self.settings.vm_power_seconds
        return self.lifecycle.switch(machine, now, through=through, to=to, seconds=seconds)

    def reset(self) -> None:
        """Drop everything that was made, set up or counted; settings, groups and key stay."""
        with self.lock:
            super().reset()
            self.lifecycle.clear()
            self.estate.clear()
            self.deployments.clear()
            self.quotas.clear()

    # What is known of it.

    def resources(self, kind: Kind) -> list[Resource]:
        """All resources of a kind that exist now, in order of creation."""
        with self.present():
            return list(self.estate.all_of(kind))

    def machines(self) -> list[Machine]:
        """All machines that exist now, in order of creation."""
        with self.present():
            return list(self.estate.machines())

    def machine(self, name: str) -> Machine:
        """One machine.  Raises ``ArmError`` ResourceNotFound when it is gone or never was."""
        with self.present():
            return self.estate.machine(name)

    def root_key(self) -> SigningKey:
        """The key of the root under which attested data are signed; made when first asked for."""
        with self.lock:
            if self._key is None:
                self._key = SigningKey.generate()
            return self._key

    def attestation(self, issuer_url: str = "http://127.0.0.1/") -> Attestation:
        """The chain that signs attested data; the first who asks says where its issuer is."""
        with self.lock:
            if self._attestation is None:
                now = datetime.fromtimestamp(self.clock(), UTC)
                root = self.root_key()
                self._attestation = Attestation(root, issuer_url=issuer_url, now=now)
            return self._attestation

    def attest(self, name: str, *, nonce: str, issuer_url: str) -> str:
        """The signed attested document of a machine, base64."""
        with self.present() as now:
            document = document_of(
                self.estate.machine(name),
                subscription=self.settings.subscription_id,
                nonce=nonce,
                now=now,
                seconds=self.settings.attested_seconds,
            )
            return self.attestation(issuer_url).sign(document)

    def _found_groups(self) -> None:
        for name in self.settings.resource_groups:
            self.estate.groups.setdefault(name.lower(), Group(name, self.settings.locations[0]))
