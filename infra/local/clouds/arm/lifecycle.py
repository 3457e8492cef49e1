"""How resources come to be and cease: creations and deletions that take time, with cascades.

Read next: ``machines`` (requests for machines), ``agenda``, ``fates``.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from infra.local.clouds.arm.agenda import Agenda
from infra.local.clouds.arm.fates import Fate, Fates, Outcome, Step
from infra.local.clouds.arm.operations import Operation, Operations
from infra.local.clouds.arm.resources import Kind, Machine, Power, Provisioning, Resource

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from infra.local.clouds.arm.errors import ArmError
    from infra.local.clouds.arm.estate import Estate
    from infra.local.clouds.arm.settings import Settings

Json = dict[str, Any]
_PREEMPTED = {
    "code": "OperationPreempted",
    "message": "The operation has been preempted by a more recent operation.",
}


class Lifecycle:
    """Begins what takes time, and lets it end.  Not thread-safe: the cloud's lock guards it."""

    def __init__(self, estate: Estate, *, settings: Callable[[], Settings], rng: Random) -> None:
        self.agenda = Agenda()
        self.operations = Operations()
        self.fates = Fates(rng)
        self._estate = estate
        self._settings = settings
        self._rng = rng

    def new_id(self) -> str:
        """A random UUID."""
        return str(uuid.UUID(int=self._rng.getrandbits(128), version=4))

    def suffix(self) -> str:
        """Eight letters that make a name unique."""
        return f"{self._rng.getrandbits(32):08x}"

    def make(
        self,
        kind: Kind,
        group: str,
        name: str,
        *,
        location: str,
        now: float,
        tags: dict[str, str] | None = None,
        properties: Json | None = None,
        envelope: Json | None = None,
    ) -> Resource:
        """A new NIC, address or disk that exists from now on, in state Creating."""
        made = Resource(
            kind=kind,
            group=self._estate.group(group).name,
            name=name,
            location=location,
            sequence=next(self._estate.numbers),
            created_at=now,
            visible_at=now + self._settings().list_lag_seconds,
            tags=dict(tags or {}),
            properties=dict(properties or {}),
            envelope=dict(envelope or {}),
        )
        self._estate.add(made)
        return made

    def create(
        self, resource: Resource, now: float, *, refusal: ArmError | None = None
    ) -> Operation:
        """Let a new resource become Succeeded, or Failed with a refusal or by its fate."""
        fate = self._fate(Step.CREATE, resource)
        operation = self._begin(resource, Provisioning.CREATING, now)
        resource.creation = operation
        if fate is not None and fate.outcome is Outcome.NEVER_ENDS:
            operation.is_stuck = True
            return operation
        seconds = self._create_seconds(resource.kind)
        if isinstance(resource, Machine):
            resource.failure = None
            self._plan_boot(resource, now, seconds, fails=fate is not None or refusal is not None)
        self._plan_end(
            resource,
            operation,
            now + seconds,
            lambda at: self._created(resource, operation, at, fate=fate, refusal=refusal),
        )
        return operation

    def succeed(self, resource: Resource, now: float) -> Operation:
        """An operation that changed the resource and is over at once."""
        operation = self.operations.begin(
            self.new_id(), resource.kind.provider, resource.location, now
        )
        operation.end(now)
        return operation

    def delete(self, resource: Resource, now: float, *, force: bool = False) -> Operation:
        """Let a resource cease; one that is ceasing already goes on doing so."""
        running = resource.deletion
        if running is not None and not running.is_over and not running.is_stuck:
            return running
        fate = self._fate(Step.DELETE, resource)
        is_going = resource.state is Provisioning.DELETING
        before = Provisioning.SUCCEEDED if is_going else resource.state
        operation = self._begin(resource, Provisioning.DELETING, now)
        resource.deletion = operation
        if fate is not None and fate.outcome is Outcome.NEVER_ENDS:
            operation.is_stuck = True
            return operation
        self._plan_end(
            resource,
            operation,
            now + self._delete_seconds(resource.kind, force=force),
            lambda at: self._deleted(resource, operation, at, fate=fate, before=before),
        )
        return operation

    def vanish(self, resource: Resource, now: float) -> None:
        """Let a resource be gone at once; what it held is detached and stays."""
        resource.turn += 1
        for held in self._let_go(resource):
            held.holder = None
        self._estate.drop(resource, now, listed_until=now)

    def switch(
        self, machine: Machine, now: float, *, through: Power, to: Power, seconds: float
    ) -> Operation:
        """Let a machine's power become another."""
        operation = self._begin(machine, machine.state, now)
        machine.power = through

        def arrive(at: float) -> None:
            machine.power = to
            operation.end(at)

        self._plan_end(machine, operation, now + seconds, arrive)
        return operation

    def attach(self, held: Resource, holder: Resource, *, deleted_with_holder: bool) -> None:
        """Let a resource be held by another."""
        held.holder, held.deleted_with_holder = holder, deleted_with_holder
        holder.attached.append(held)

    def clear(self) -> None:
        """Let nothing be going on."""
        self.agenda.clear()
        self.operations.clear()
        self.fates.clear()

    def _begin(self, resource: Resource, state: Provisioning, now: float) -> Operation:
        resource.turn += 1
        resource.state = state
        return self.operations.begin(self.new_id(), resource.kind.provider, resource.location, now)

    def _plan_end(
        self, resource: Resource, operation: Operation, due: float, end: Callable[[float], None]
    ) -> None:
        turn = resource.turn

        def happen(at: float) -> None:
            if resource.turn == turn:
                end(at)
            else:
                operation.end(at, _PREEMPTED)

        self.agenda.plan(due, happen)

    def _plan_boot(self, machine: Machine, now: float, seconds: float, *, fails: bool) -> None:
        boot = self._settings().vm_boot_seconds
        if fails or boot is None or boot >= seconds:
            return
        turn = machine.turn

        def power_on(_: float) -> None:
            if machine.turn == turn:
                machine.power = Power.RUNNING

        self.agenda.plan(now + boot, power_on)

    def _created(
        self,
        resource: Resource,
        operation: Operation,
        at: float,
        *,
        fate: Fate | None,
        refusal: ArmError | None,
    ) -> None:
        error = fate.error if fate else refusal.content() if refusal else None
        resource.state = Provisioning.FAILED if error else Provisioning.SUCCEEDED
        if isinstance(resource, Machine):
            resource.failure = (error["code"], error["message"]) if error else None
            is_up = error is None or (fate is not None and fate.outcome is Outcome.RUNS_ANYWAY)
            if is_up and resource.power is Power.NONE:
                resource.power = Power.RUNNING
        operation.end(at, error)

    def _deleted(
        self,
        resource: Resource,
        operation: Operation,
        at: float,
        *,
        fate: Fate | None,
        before: Provisioning,
    ) -> None:
        if fate is not None:
            resource.state = before
            operation.end(at, fate.error if fate.outcome is Outcome.FAIL else None)
            return
        for held in self._let_go(resource):
            held.holder = None
            if held.deleted_with_holder and self._fate(Step.CASCADE, held) is None:
                self.delete(held, at)
        self._estate.drop(resource, at, listed_until=at + self._settings().list_lag_seconds)
        operation.end(at)

    def _let_go(self, resource: Resource) -> list[Resource]:
        if resource.holder is not None:
            resource.holder.attached.remove(resource)
            resource.holder = None
        held = list(resource.attached)
        resource.attached.clear()
        return held

    def _fate(self, step: Step, resource: Resource) -> Fate | None:
        size = resource.size if isinstance(resource, Machine) else ""
        return self.fates.draw(
            step,
            resource.kind.value,
            name=resource.name,
            location=resource.location,
            instance_type=size,
        )

    def _create_seconds(self, kind: Kind) -> float:
        settings = self._settings()
        return {
            Kind.VM: settings.vm_create_seconds,
            Kind.NIC: settings.nic_create_seconds,
            Kind.IP: settings.ip_create_seconds,
            Kind.DISK: settings.disk_create_seconds,
        }[kind]

    def _delete_seconds(self, kind: Kind, *, force: bool) -> float:
        settings = self._settings()
        if kind is Kind.VM and force and settings.vm_force_delete_seconds is not None:
            return settings.vm_force_delete_seconds
        return {
            Kind.VM: settings.vm_delete_seconds,
            Kind.NIC: settings.nic_delete_seconds,
            Kind.IP: settings.ip_delete_seconds,
            Kind.DISK: settings.disk_delete_seconds,
        }[kind]
