"""A pretend cloud that accepts first and makes machines afterwards, or fails to.

It keeps a record of each creation, in stores that fill up, and parts that may outlive their
machine.  Where to read next: ``fake_steps``, the providers over it.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from worker_manager.core.model import MachineStatus
from worker_manager.providers.fake_cloud import FakeCloud, Machine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from worker_manager.core.errors import CloudError
    from worker_manager.core.model import LaunchOrder, Sighting, WorkerKey


class OverflowingStoreError(Exception):
    """A store of records got more than it has room for; no code under test may let that happen."""


@dataclass(frozen=True, slots=True)
class Creation:
    """How the making of a machine goes.

    ``over`` is when it ends, ``None`` if never; ``failure`` why it comes to nothing, and ``stays``
    whether there is a machine all the same.
    """

    over: datetime | None
    failure: CloudError | None = None
    stays: bool = False


@dataclass
class SlowCloud(FakeCloud):
    """Machines that take ``creation_time`` from acceptance until they are made.

    ``is_hidden`` is whether lists show a machine only once it is made.  ``most`` records fit into
    a store.  ``outliving`` are the kinds of parts that stay when their machine goes.
    """

    creation_time: timedelta = timedelta()
    is_hidden: bool = False
    most: int = 800
    outliving: frozenset[str] = frozenset()
    creations: dict[WorkerKey, Creation] = field(default_factory=dict)
    records: dict[str, dict[str, WorkerKey]] = field(default_factory=dict)
    """store → record → whose"""
    fullest: Counter[str] = field(default_factory=Counter)
    """store → the most records that it ever held"""
    parts: dict[str, tuple[str, WorkerKey]] = field(default_factory=dict)
    """resource id → kind, and whose it is; those of machines that go with all they have are not
    mentioned"""
    remade: list[WorkerKey] = field(default_factory=list)
    """machines that were gone and asked for again"""
    to_come: deque[Creation] = field(default_factory=deque)
    """how the next creations go; ``over`` counts from when they begin"""

    def fail_next(self, error: CloudError, *, times: int = 1, stays: bool = False) -> None:
        """Let the next ``times`` creations end with an error after they were accepted."""
        self.to_come.extend([Creation(self.clock(), error, stays)] * times)

    def stall_next(self, *, times: int = 1) -> None:
        """Let the next ``times`` creations never end."""
        self.to_come.extend([Creation(None)] * times)

    def accept(self, order: LaunchOrder, machine: Machine) -> None:
        """Begin to make a machine; harmless if it is there, or being made."""
        known = self.machines.get(machine.key)
        if known is not None:
            if self.status(known) is not MachineStatus.GONE:
                return
            self.remade.append(machine.key)
        now = self.clock()
        given = self.to_come.popleft() if self.to_come else Creation(now)
        over = now + self.creation_time if given.over is not None else None
        self.creations[machine.key] = replace(given, over=over)
        if given.failure is not None and not given.stays:
            machine.gone = over
        self.machines[machine.key] = machine
        for kind in sorted(self.outliving):
            self.parts[f"{machine.key.worker_id}-{kind}"] = kind, machine.key

    def begin_record(self, store: str, name: str, key: WorkerKey) -> None:
        """Keep a record of a machine's creation; raises ``OverflowingStoreError``."""
        records = self.records.setdefault(store, {})
        records[name] = key
        self.fullest[store] = max(self.fullest[store], len(records))
        if len(records) > self.most:
            raise OverflowingStoreError(f"{store} has {len(records)} records")

    def is_over(self, key: WorkerKey) -> bool:
        """Whether a machine's creation has ended, well or not."""
        creation = self.creations.get(key)
        if creation is None:
            return True
        return creation.over is not None and creation.over <= self.clock()

    def failure(self, key: WorkerKey) -> CloudError | None:
        """Why a creation that is over came to nothing."""
        return self.creations[key].failure if key in self.creations and self.is_over(key) else None

    def ended_records(self) -> Iterator[tuple[str, str, WorkerKey]]:
        """Store, name and owner of each record whose creation is over."""
        for store, records in self.records.items():
            for name, key in records.items():
                if self.is_over(key):
                    yield store, name, key

    def unused_parts(self) -> Iterator[tuple[str, str, WorkerKey]]:
        """Kind, id and owner of each part whose machine is gone."""
        for resource_id, (kind, key) in self.parts.items():
            if self.status(self.machines[key]) is MachineStatus.GONE:
                yield kind, resource_id, key

    def is_visible(self, machine: Machine) -> bool:
        """Whether answers show the machine already."""
        if self.is_hidden and not self.is_over(machine.key):
            return False
        return super().is_visible(machine)

    def sighting(self, machine: Machine) -> Sighting:
        """The machine as an answer shows it."""
        return replace(super().sighting(machine), failure=self.failure(machine.key))
