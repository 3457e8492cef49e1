"""Compute Engine as a ``CloudProvider``: one list for a project, one call for each machine.

Retries are nobody's business here: whoever called knows whether repeating is wise, and the next
tick does.  A location is a project, a worker group a zone, a worker's id its instance's number.
Where to read next: ``launch`` (an order as requests), ``following`` (what becomes of an accepted
one), ``listing`` (a project as sightings), ``calls`` (side by side, in time), ``errors`` (what the
codes mean).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from google.api_core.exceptions import Conflict

from worker_manager.core.errors import CloudError
from worker_manager.providers.google.accepted import Accepted
from worker_manager.providers.google.errors import is_about, operation_error
from worker_manager.providers.google.following import (
    delete_machine,
    find_own,
    follow_one,
    look_up,
)
from worker_manager.providers.google.launch import inserts, is_open, launched, new_machine
from worker_manager.providers.google.leftovers import list_unused, remove_disk
from worker_manager.providers.google.listing import list_deployment
from worker_manager.providers.protocol import Removed, Terminated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from google.cloud.compute_v1.types import InsertInstanceRequest

    from worker_manager.core.model import (
        LaunchConfigHead,
        LaunchOrder,
        Location,
        Sighting,
        Worker,
        WorkerKey,
    )
    from worker_manager.providers.google.calls import Calls, TimeLeft
    from worker_manager.providers.google.clients import Clients
    from worker_manager.providers.protocol import Launched, Leftover, Step

Answer = TypeVar("Answer")


class GoogleProvider:
    """Our machines on Compute Engine.

    ``deployment`` is the label value by which our machines are told from everybody else's;
    ``service_account`` the e-mail address of the account that machines act as.
    """

    def __init__(
        self,
        *,
        provider_id: str,
        deployment: str,
        service_account: str,
        clients: Clients,
        calls: Calls,
    ) -> None:
        self.provider_id = provider_id
        self._deployment = deployment
        self._service_account = service_account
        self._clients = clients
        self._calls = calls
        self._accepted = Accepted()

    def locations(self, heads: Iterable[LaunchConfigHead]) -> frozenset[Location]:
        """The projects of these launch configs."""
        return frozenset(head.location for head in heads)

    def instances(self, location: Location) -> Iterator[Sighting]:
        """Every machine of our deployment in a project, in one list."""
        return list_deployment(
            self._clients, location, deployment=self._deployment, timeouts=self._calls.timeouts
        )

    def lookup(
        self, location: Location, workers: Sequence[Worker]
    ) -> Mapping[WorkerKey, Sighting | None]:
        """What Compute Engine knows of these workers; ``None`` for one that is gone.

        Raises the first ``CloudError`` that left a worker's fate unknown.
        """
        found: dict[WorkerKey, Sighting | None] = {}
        for worker, seen in self._each(look_up, workers):
            if isinstance(seen, CloudError):
                raise seen
            found[worker.key] = seen
        return found

    def launch(self, order: LaunchOrder) -> Launched:
        """Insert up to ``order.count`` machines, each with a name and request id of its own.

        What an earlier send of the same order had accepted here is not asked for again.
        """
        asked = inserts(order, service_account=self._service_account)
        known = self._accepted.of(order)
        answers = self._calls.side_by_side(
            lambda request, time_left: self._insert(order, request, time_left),
            [one for one in asked.requests if one.instance_resource.name not in known],
            launching=True,
            hide=asked.hide,
        )
        return self._accepted.keep(order, launched([*known.values(), *answers]))

    def follow(self, location: Location, workers: Sequence[Worker]) -> Mapping[WorkerKey, Step]:
        """How far these machines' creation is; raises the first error if nothing could be asked."""
        steps: dict[WorkerKey, Step] = {}
        errors: list[CloudError] = []
        for worker, step in self._each(follow_one, workers):
            if isinstance(step, CloudError):
                errors.append(step)
            else:
                steps[worker.key] = step
        if errors and not steps:
            raise errors[0]
        return steps

    def terminate(self, workers: Sequence[Worker]) -> Terminated:
        """Delete machines; unknown to Compute Engine is as good as deleted.

        A delete has no request id: with the one of an earlier, failed delete it would be ignored.
        """
        done: set[WorkerKey] = set()
        failed: dict[WorkerKey, CloudError] = {}
        for worker, error in self._each(delete_machine, workers):
            if error is None:
                done.add(worker.key)
            else:
                failed[worker.key] = error
        return Terminated(frozenset(done), failed)

    def leftovers(self, location: Location) -> Iterator[Leftover]:
        """Disks of our deployment that no machine uses."""
        return list_unused(
            self._clients, location, deployment=self._deployment, timeouts=self._calls.timeouts
        )

    def remove(self, location: Location, leftovers: Sequence[Leftover]) -> Removed:
        """Delete disks; already gone counts as done."""
        ids = [leftover.resource_id for leftover in leftovers]
        answers = self._calls.side_by_side(
            lambda name, time_left: remove_disk(self._clients, location, name, time_left), ids
        )
        failed = {name: error for name, error in zip(ids, answers, strict=True) if error}
        return Removed(frozenset(ids) - failed.keys(), failed)

    def _each(
        self, ask: Callable[[Clients, Worker, TimeLeft], Answer], workers: Sequence[Worker]
    ) -> Iterator[tuple[Worker, Answer | CloudError]]:
        """What ``ask`` answers about each worker."""
        answers = self._calls.side_by_side(
            lambda worker, time_left: ask(self._clients, worker, time_left), workers
        )
        return zip(workers, answers, strict=True)

    def _insert(
        self, order: LaunchOrder, request: InsertInstanceRequest, time_left: TimeLeft
    ) -> Sighting:
        """Ask for one machine, or find it where the name is taken because it exists already.

        A machine whose making failed for a reason that leaves it open goes on as one that was
        accepted: who follows it is told the reason.
        """
        try:
            operation = self._clients.instances.insert_unary(
                request, retry=None, timeout=time_left()
            )
        except Conflict as error:
            name = request.instance_resource.name
            if not is_about(error, "instances", name):
                raise
            return find_own(self._clients, order, name, time_left)
        failure = operation_error(operation)
        if failure is not None and (not operation.target_id or not is_open(failure)):
            raise failure
        return new_machine(
            order,
            str(operation.target_id),
            {"name": request.instance_resource.name, "operation": operation.name},
        )
