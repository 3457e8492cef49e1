"""The provider of a pretend cloud that accepts a launch first and makes machines afterwards.

It is in Google's manner: a call a machine, whose id the cloud chooses.  It passes the contract of
every provider.  Where to read next: ``fake`` (faults and crashes), ``fake_slow`` (the cloud),
``fake_names`` (one that takes names from us).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from worker_manager.core.errors import (
    CloudUnavailableError,
    OutOfCapacityError,
    ThrottledError,
)
from worker_manager.core.model import MachineStatus, Sighting
from worker_manager.providers.fake import FakeProvider, Method
from worker_manager.providers.protocol import (
    Failed,
    Launched,
    Made,
    Pending,
    Step,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from worker_manager.core.model import Json, LaunchOrder, Location, Worker, WorkerKey
    from worker_manager.providers.fake_cloud import Machine
    from worker_manager.providers.fake_slow import SlowCloud

LOOK_AGAIN = timedelta(seconds=10)
"""Between two looks at a creation."""


@dataclass(frozen=True, slots=True)
class Part:
    """How an answer falls short: after ``accepted`` machines, some wait and some are unknown.

    ``acted`` is whether the unknown ones are made all the same.
    """

    accepted: int = 0
    throttled: int = 0
    unknown: int = 0
    acted: bool = False
    retry_after: timedelta = timedelta(seconds=5)


@dataclass(slots=True)
class Answer:
    """What the calls of one order have come to so far."""

    machines: list[Machine] = field(default_factory=list)
    refused: list[WorkerKey] = field(default_factory=list)
    throttled: ThrottledError | None = None
    unknown: CloudUnavailableError | None = None


class SteppingFake(FakeProvider):
    """A cloud that accepts one machine a call and makes it afterwards; ids are its own.

    ``partly`` makes the next launches fall short, one after the other.  Of machines in ``silent``
    (worker ids) no look tells anything.
    """

    cloud: SlowCloud

    def __init__(self, *, provider_id: str, deployment: str, cloud: SlowCloud) -> None:
        super().__init__(provider_id=provider_id, deployment=deployment, cloud=cloud)
        self.partly: deque[Part] = deque()
        self.silent: set[str] = set()

    def lookup(
        self, location: Location, workers: Sequence[Worker]
    ) -> Mapping[WorkerKey, Sighting | None]:
        """As every cloud's; one in the making is pending, one that failed is gone and says why."""
        found = dict(super().lookup(location, workers))
        for key, seen in found.items():
            machine = self.cloud.machines.get(key)
            if seen is not None or machine is None or machine.deployment != self._deployment:
                continue
            sighting = self.cloud.sighting(machine)
            if not self.cloud.is_over(key) and sighting.status is not MachineStatus.GONE:
                found[key] = replace(sighting, status=MachineStatus.PENDING)
            elif sighting.failure is not None:
                found[key] = replace(sighting, status=MachineStatus.GONE)
        return found

    def follow(self, location: Location, workers: Sequence[Worker]) -> Mapping[WorkerKey, Step]:
        """How far these machines' creation is."""

        def look() -> dict[WorkerKey, Step]:
            asked = (w for w in workers if w.key.worker_id not in self.silent)
            return {worker.key: self._step(worker) for worker in asked}

        subject = " ".join(worker.key.worker_id for worker in workers)
        return self._answered(Method.FOLLOW, subject, look)

    def _step(self, worker: Worker) -> Step:
        key = worker.key
        if not self.cloud.is_over(key):
            return Pending(LOOK_AGAIN)
        failure = self.cloud.failure(key)
        if failure is not None:
            return Failed(failure)
        if key not in self.cloud.machines:
            return Failed(CloudUnavailableError("its creation is unknown", code="NotFound"))
        return Made(self._made(worker))

    def _made(self, worker: Worker) -> Json:
        """What is known of a machine once it is made."""
        return worker.identity

    def _machine(self, order: LaunchOrder, index: int) -> Machine:
        return self.cloud.machine(order, index)

    def _launched(self, order: LaunchOrder) -> Launched:
        """Ask for each machine by itself, and say what came of all."""
        part = self.partly.popleft() if self.partly else Part(accepted=order.count)
        answer, new = Answer(), 0
        for index in range(order.count):
            machine = self._machine(order, index)
            if order.only is not None and machine.key.worker_id not in order.only:
                continue
            if machine.key in self.cloud.machines and not self._is_gone(machine.key):
                answer.machines.append(self.cloud.machines[machine.key])
                continue
            self._ask(order, machine, part, new=new, answer=answer)
            new += 1
        return self._said(answer)

    def _is_gone(self, key: WorkerKey) -> bool:
        """Whether asking for a machine again would make it anew; ids of requests prevent that."""
        return False

    def _ask(
        self, order: LaunchOrder, machine: Machine, part: Part, *, new: int, answer: Answer
    ) -> None:
        """One machine's call, the ``new``-th of its order."""
        waits = part.accepted <= new < part.accepted + part.throttled
        lost = 0 <= new - part.accepted - part.throttled < part.unknown
        if waits:
            answer.throttled = ThrottledError("too fast", retry_after=part.retry_after)
            return
        if lost:
            answer.unknown = CloudUnavailableError("the connection was reset")
        if lost and not part.acted:
            return
        if self.cloud.room(order.launch_config_id) == 0:
            answer.refused.append(machine.key)
            return
        self._accept(order, machine)
        if not lost:
            answer.machines.append(machine)

    def _accept(self, order: LaunchOrder, machine: Machine) -> None:
        self.cloud.accept(order, machine)

    def _said(self, answer: Answer) -> Launched:
        """All calls of an order as one answer; raises where none of its machines was accepted."""
        refused = len(answer.refused)
        shortage = OutOfCapacityError(f"NoCapacity: {refused} machines", code="NoCapacity")
        unanswered = answer.throttled or answer.unknown
        if answer.throttled and answer.unknown:
            unanswered = answer.throttled.in_doubt()
        if not answer.machines and (unanswered or answer.refused):
            raise unanswered or shortage
        return Launched(
            machines=tuple(self._accepted(machine) for machine in answer.machines),
            refused=refused,
            error=shortage if refused else None,
            unanswered=unanswered,
            not_made=self._not_made(answer),
            follow_after=LOOK_AGAIN if self.cloud.creation_time else None,
        )

    def _accepted(self, machine: Machine) -> Sighting:
        """An accepted machine as the answer tells of it."""
        return self.cloud.sighting(machine)

    def _not_made(self, answer: Answer) -> frozenset[WorkerKey]:
        """Who was refused, where that has a name."""
        return frozenset()
