"""The provider of a pretend cloud that takes names from us, in Azure's manner.

Each creation leaves a record in a store that pools share, and parts may outlive their machines.
It passes the contract of every provider.  Where to read next: ``fake_steps`` (what it adds to).
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING

from worker_manager.core.errors import CloudError, InvalidLaunchConfigError
from worker_manager.core.model import MachineStatus, Sighting, WorkerKey
from worker_manager.providers.fake import Method
from worker_manager.providers.fake_steps import SteppingFake
from worker_manager.providers.protocol import Failed, Leftover, Removed, SlotsOf, Step

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from worker_manager.core.model import Json, LaunchOrder, Location, Worker
    from worker_manager.providers.fake_cloud import Machine
    from worker_manager.providers.fake_slow import SlowCloud
    from worker_manager.providers.fake_steps import Answer


class NamingFake(SteppingFake):
    """A cloud that takes names from us, keeps records of creations and lets parts outlive them.

    ``store`` is where the records of all pools go, ``None`` for nowhere, and ``most`` how many we
    let it hold.  ``unusable`` launch configs could make nothing; ``stubborn`` resources cannot be
    removed.
    """

    def __init__(self, *, provider_id: str, deployment: str, cloud: SlowCloud) -> None:
        super().__init__(provider_id=provider_id, deployment=deployment, cloud=cloud)
        self.store: str | None = "records"
        self.most = 750
        self.unusable: set[str] = set()
        self.stubborn: dict[str, CloudError] = {}

    def machines(self, order: LaunchOrder) -> tuple[Sighting, ...]:
        """What an order is going to make, by name."""
        if order.launch_config_id in self.unusable:
            raise InvalidLaunchConfigError("it has no template", code="InvalidTemplate")
        machines = (self._machine(order, index) for index in range(order.count))
        return tuple(
            Sighting(
                key=machine.key,
                location=order.location,
                status=MachineStatus.PENDING,
                launch_config_id=order.launch_config_id,
                order_id=order.order_id,
                identity=self._announced(machine.key),
            )
            for machine in machines
        )

    def slots(self, order: LaunchOrder) -> SlotsOf | None:
        """Where the records of an order go."""
        return SlotsOf(self.store, self.most) if self.store is not None else None

    def slots_of(self, worker: Worker) -> str | None:
        """Where a worker's record stands, as its row says."""
        store: str | None = worker.identity.get("store")
        return store

    def leftovers(self, location: Location, places: Collection[str] = ()) -> Iterator[Leftover]:
        """Parts whose machine is gone, and records of what is over."""
        return iter(self._answered(Method.LEFTOVERS, location, lambda: self._left(location)))

    def remove(self, location: Location, leftovers: Sequence[Leftover]) -> Removed:
        """Delete parts and records; stubborn ones fail, unknown ones are done."""
        names = [leftover.resource_id for leftover in leftovers]

        def delete() -> Removed:
            failed = {name: self.stubborn[name] for name in names if name in self.stubborn}
            done = frozenset(names) - failed.keys()
            for name in done:
                self.cloud.parts.pop(name, None)
                for records in self.cloud.records.values():
                    records.pop(name, None)
            return Removed(done, failed)

        return self._answered(Method.REMOVE, " ".join(names), delete)

    def _left(self, location: Location) -> list[Leftover]:
        records = (("record", name, key) for _, name, key in self.cloud.ended_records())
        return [
            Leftover(kind, name, machine.launched, key, key.pool_id)
            for kind, name, key in (*self.cloud.unused_parts(), *records)
            for machine in [self.cloud.machines[key]]
            if machine.location == location and machine.deployment == self._deployment
        ]

    def _announced(self, key: WorkerKey) -> Json:
        """What is known of a machine before it exists."""
        if self.store is None:
            return {}
        return {"store": self.store, "record": _record_of(key)}

    def _accepted(self, machine: Machine) -> Sighting:
        return replace(super()._accepted(machine), identity=self._announced(machine.key))

    def _made(self, worker: Worker) -> Json:
        """Its address, and no record any more: that is deleted with the look that finds it over."""
        self._forget(worker)
        known = {k: v for k, v in worker.identity.items() if k not in ("store", "record")}
        return {**known, **self.cloud.machines[worker.key].identity}

    def _step(self, worker: Worker) -> Step:
        step = super()._step(worker)
        if isinstance(step, Failed):
            self._forget(worker)
        return step

    def _forget(self, worker: Worker) -> None:
        for records in self.cloud.records.values():
            records.pop(_record_of(worker.key), None)

    def _machine(self, order: LaunchOrder, index: int) -> Machine:
        machine = super()._machine(order, index)
        digest = sha256(f"{order.order_id}/{index}".encode()).hexdigest()
        machine.key = WorkerKey(order.pool_id, order.location, f"vm-{digest[:35]}")
        return machine

    def _is_gone(self, key: WorkerKey) -> bool:
        return self.cloud.status(self.cloud.machines[key]) is MachineStatus.GONE

    def _accept(self, order: LaunchOrder, machine: Machine) -> None:
        super()._accept(order, machine)
        if self.store is not None:
            self.cloud.begin_record(self.store, _record_of(machine.key), machine.key)

    def _not_made(self, answer: Answer) -> frozenset[WorkerKey]:
        return frozenset(answer.refused)


def _record_of(key: WorkerKey) -> str:
    """Name of the record of a machine's creation."""
    return key.worker_id.replace("vm-", "make-")
