"""A provider in memory: what the others promise, this one keeps.

It passes the contract that every real cloud passes, and adds what a test wants to decide: when a
call fails, and whether it acted first.  A test that kills its subject raises from ``on_call``;
one that breaks the cloud calls ``fail``.  Where to read next: ``fake_cloud`` (the machines),
``fake_steps`` (clouds that accept first and make machines afterwards).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

from worker_manager.core.errors import CloudError, CloudUnavailableError, OutOfCapacityError
from worker_manager.core.model import MachineStatus
from worker_manager.providers.answers import gone
from worker_manager.providers.protocol import Launched, Rebooted, Terminated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from worker_manager.core.model import (
        LaunchConfigHead,
        LaunchOrder,
        Location,
        Sighting,
        Worker,
        WorkerKey,
    )
    from worker_manager.providers.fake_cloud import FakeCloud

Result = TypeVar("Result")


class Method(StrEnum):
    """The provider methods that ask the cloud; the last three only where there are such."""

    INSTANCES = "instances"
    LOOKUP = "lookup"
    RECOGNISE = "recognise"
    LAUNCH = "launch"
    TERMINATE = "terminate"
    REBOOT = "reboot"
    FOLLOW = "follow"
    LEFTOVERS = "leftovers"
    REMOVE = "remove"


class Moment(StrEnum):
    """When ``on_call`` hears of a call: before anything happened, or after everything did."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True)
class Call:
    """One call as it was made; ``subject`` is the order id, location or worker ids it named."""

    method: Method
    subject: str
    at: datetime


@dataclass(slots=True)
class _Fault:
    method: Method
    error: Exception
    after_acting: bool
    times: int
    subject: str | None


class FakeProvider:
    """A ``CloudProvider`` over a ``FakeCloud``; the worker group is the location.

    ``calls`` is what was asked, in order.  ``on_call``, when set, hears of every call before and
    after it acted, and may raise.
    """

    def __init__(self, *, provider_id: str, deployment: str, cloud: FakeCloud) -> None:
        self.provider_id = provider_id
        self.cloud = cloud
        self.calls: list[Call] = []
        self.on_call: Callable[[Moment, Call], None] | None = None
        self._deployment = deployment
        self._faults: list[_Fault] = []

    def fail(
        self,
        method: Method,
        error: Exception,
        *,
        after_acting: bool = False,
        times: int = 1,
        subject: str | None = None,
    ) -> None:
        """Let the next ``times`` calls of a method raise.

        ``after_acting``: the cloud does what it was asked, then its answer is lost (a list breaks
        off after its first half).  ``subject`` limits this to calls that name it.
        """
        self._faults.append(_Fault(method, error, after_acting, times, subject))

    def locations(self, heads: Iterable[LaunchConfigHead]) -> frozenset[Location]:
        """The locations of these launch configs."""
        return frozenset(head.location for head in heads)

    def instances(self, location: Location) -> Iterator[Sighting]:
        """Every visible machine of our deployment there that is not gone."""
        try:
            yield from self._asked(Method.INSTANCES, location, lambda: self._listed(location))
        except _AnswerLostError as lost:
            seen = self._listed(location)
            yield from seen[: len(seen) // 2]
            raise lost.error from None

    def lookup(
        self, location: Location, workers: Sequence[Worker]
    ) -> Mapping[WorkerKey, Sighting | None]:
        """What the cloud shows of these workers; ``None`` when it shows nothing."""
        keys = [worker.key for worker in workers]

        def look() -> dict[WorkerKey, Sighting | None]:
            shown = {seen.key: seen for seen in self._listed(location)}
            return {key: shown.get(key) for key in keys}

        return self._answered(Method.LOOKUP, _names(keys), look)

    def recognise(self, location: Location, worker_ids: Sequence[str]) -> Sequence[Sighting]:
        """Those of these machines that are our deployment's, gone ones included."""

        def look() -> list[Sighting]:
            return [
                self.cloud.sighting(machine)
                for machine in self.cloud.machines.values()
                if machine.key.worker_id in worker_ids
                and machine.location == location
                and machine.deployment == self._deployment
                and self.cloud.is_visible(machine)
            ]

        return self._answered(Method.RECOGNISE, " ".join(worker_ids), look)

    def launch(self, order: LaunchOrder) -> Launched:
        """Launch what capacity allows; a known order gives the machines it gave before.

        Raises ``OutOfCapacityError`` when there is none, ``CloudUnavailableError`` when the
        order's id came before with other content.
        """
        return self._answered(Method.LAUNCH, order.order_id, lambda: self._launched(order))

    def terminate(self, workers: Sequence[Worker]) -> Terminated:
        """Begin to take machines away; protected ones fail, unknown ones are done."""
        keys = [worker.key for worker in workers]

        def end() -> Terminated:
            failed: dict[WorkerKey, CloudError] = {}
            for key in keys:
                machine = self.cloud.machines.get(key)
                if machine is not None and machine.protected:
                    failed[key] = CloudUnavailableError(
                        f"OperationNotPermitted: {key.worker_id} is protected",
                        code="OperationNotPermitted",
                    )
                elif machine is not None:
                    self.cloud.terminate(machine)
            return Terminated(frozenset(keys) - failed.keys(), failed)

        return self._answered(Method.TERMINATE, _names(keys), end)

    def reboot(self, workers: Sequence[Worker]) -> Rebooted:
        """Let machines boot anew, each time it is asked; those that are gone fail."""
        keys = [worker.key for worker in workers]

        def boot() -> Rebooted:
            failed: dict[WorkerKey, CloudError] = {}
            for key in keys:
                machine = self.cloud.machines.get(key)
                if machine is None or self.cloud.status(machine) is MachineStatus.GONE:
                    failed[key] = gone(key.worker_id)
                elif machine.stopped is not None:
                    failed[key] = CloudUnavailableError("it is stopped", code="IncorrectState")
                else:
                    machine.reboots += 1
            return Rebooted(frozenset(keys) - failed.keys(), failed)

        return self._answered(Method.REBOOT, _names(keys), boot)

    def _listed(self, location: Location) -> list[Sighting]:
        """What an answer shows of a location."""
        return [
            self.cloud.sighting(machine)
            for machine in self.cloud.machines.values()
            if machine.location == location
            and machine.deployment == self._deployment
            and self.cloud.is_visible(machine)
            and self.cloud.status(machine) is not MachineStatus.GONE
        ]

    def _launched(self, order: LaunchOrder) -> Launched:
        """Carry an order out, or find what it brought when it came first."""
        known = self.cloud.ordered(order.order_id)
        if known and known[0].order != order:
            raise CloudUnavailableError(
                f"IdempotentParameterMismatch: {order.order_id} came with other content",
                code="IdempotentParameterMismatch",
            )
        machines = known or self.cloud.launch(order)
        refused = order.count - len(machines)
        if not refused:
            return Launched(tuple(map(self.cloud.sighting, machines)))
        shortage = OutOfCapacityError(
            f"NoCapacity: launched {len(machines)} of {order.count} machines", code="NoCapacity"
        )
        if not machines:
            raise shortage
        return Launched(tuple(map(self.cloud.sighting, machines)), refused, shortage)

    def _answered(self, method: Method, subject: str, act: Callable[[], Result]) -> Result:
        """As ``_asked``, where a lost answer is simply its error."""
        try:
            return self._asked(method, subject, act)
        except _AnswerLostError as lost:
            raise lost.error from None

    def _asked(self, method: Method, subject: str, act: Callable[[], Result]) -> Result:
        """One call from its log entry to its answer, with the faults that are due."""
        call = Call(method, subject, self.cloud.clock())
        self.calls.append(call)
        self._tell(Moment.BEFORE, call)
        with self.cloud.lock:
            fault = self._due(call)
            if fault is not None and not fault.after_acting:
                raise fault.error
            answer = act()
        self._tell(Moment.AFTER, call)
        if fault is not None:
            raise _AnswerLostError(fault.error)
        return answer

    def _tell(self, moment: Moment, call: Call) -> None:
        if self.on_call is not None:
            self.on_call(moment, call)

    def _due(self, call: Call) -> _Fault | None:
        """The first fault that this call meets, counted down."""
        for fault in self._faults:
            named = fault.subject is None or fault.subject in call.subject
            if fault.method == call.method and named and fault.times > 0:
                fault.times -= 1
                return fault
        return None


class _AnswerLostError(Exception):
    """The cloud acted and its answer was lost; ``error`` is what the caller sees."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


def _names(keys: Sequence[WorkerKey]) -> str:
    """Worker ids as a call's subject."""
    return " ".join(key.worker_id for key in keys)
