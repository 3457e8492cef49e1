"""Compute Engine as a ``CloudProvider``: one list for a project, one call for each machine.

Retries are nobody's business here: whoever called knows whether repeating is wise, and the next
tick does.  A location is a project, a worker group a zone, a worker's id its instance's number.
Where to read next: ``launch`` (an order as requests), ``following`` (what becomes of an accepted
one), ``listing`` (a project as sightings), ``errors`` (what the codes mean).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from google.api_core.exceptions import Conflict

from worker_manager.core.errors import CloudError
from worker_manager.providers.answers import failures, is_open, launched, learned
from worker_manager.providers.google.accepted import Accepted
from worker_manager.providers.google.clients import time_left
from worker_manager.providers.google.errors import cloud_errors, is_about, operation_error
from worker_manager.providers.google.following import (
    delete_machine,
    find_own,
    follow_one,
    look_up,
    reset_machine,
)
from worker_manager.providers.google.launch import FIRST_LOOK_AFTER, inserts, new_machine
from worker_manager.providers.google.leftovers import list_unused, remove_disk
from worker_manager.providers.google.listing import list_deployment
from worker_manager.providers.protocol import Rebooted, Removed, Terminated
from worker_manager.providers.visit import CONNECT_TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from google.cloud.compute_v1.types import InsertInstanceRequest

    from worker_manager.core.model import (
        LaunchConfigHead,
        LaunchOrder,
        Location,
        Sighting,
        Worker,
        WorkerKey,
    )
    from worker_manager.providers.google.clients import Clients
    from worker_manager.providers.google.listing import Timeouts
    from worker_manager.providers.protocol import Launched, Leftover, Step
    from worker_manager.providers.visit import Visit, Visits

Item = TypeVar("Item")
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
        visits: Visits,
    ) -> None:
        self.provider_id = provider_id
        self._deployment = deployment
        self._service_account = service_account
        self._clients = clients
        self._visits = visits
        self._accepted = Accepted()

    def locations(self, heads: Iterable[LaunchConfigHead]) -> frozenset[Location]:
        """The projects of these launch configs."""
        return frozenset(head.location for head in heads)

    def instances(self, location: Location) -> Iterator[Sighting]:
        """Every machine of our deployment in a project, in one list."""
        return list_deployment(
            self._clients, location, deployment=self._deployment, timeouts=self._timeouts
        )

    def lookup(
        self, location: Location, workers: Sequence[Worker]
    ) -> Mapping[WorkerKey, Sighting | None]:
        """What Compute Engine knows of these workers; ``None`` for one that is gone.

        Raises the first ``CloudError`` that left a worker's fate unknown.
        """
        found: dict[WorkerKey, Sighting | None] = {}
        for worker, seen in zip(workers, self._each(look_up, workers), strict=True):
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
        visit = self._visits.begin()

        def insert(request: InsertInstanceRequest) -> Sighting:
            with cloud_errors(launching=True, hide=asked.hide):
                return self._insert(order, request, visit)

        missing = [one for one in asked.requests if one.instance_resource.name not in known]
        answers = [*known.values(), *visit.each(insert, missing)]
        return self._accepted.keep(order, launched(answers, follow_after=FIRST_LOOK_AFTER))

    def follow(self, location: Location, workers: Sequence[Worker]) -> Mapping[WorkerKey, Step]:
        """How far these machines' creation is; raises the first error if nothing could be asked."""
        return learned((worker.key for worker in workers), self._each(follow_one, workers))

    def terminate(self, workers: Sequence[Worker]) -> Terminated:
        """Delete machines; unknown to Compute Engine is as good as deleted.

        A delete has no request id: with the one of an earlier, failed delete it would be ignored.
        """
        keys = [worker.key for worker in workers]
        failed = failures(keys, self._each(delete_machine, workers))
        return Terminated(frozenset(keys) - failed.keys(), failed)

    def reboot(self, workers: Sequence[Worker]) -> Rebooted:
        """Reset machines, each by one call."""
        keys = [worker.key for worker in workers]
        failed = failures(keys, self._each(reset_machine, workers))
        return Rebooted(frozenset(keys) - failed.keys(), failed)

    def leftovers(self, location: Location, places: Collection[str] = ()) -> Iterator[Leftover]:
        """Disks of our deployment that no machine uses; Compute Engine has no other ``places``."""
        return list_unused(
            self._clients, location, deployment=self._deployment, timeouts=self._timeouts
        )

    def remove(self, location: Location, leftovers: Sequence[Leftover]) -> Removed:
        """Delete disks; already gone counts as done."""
        ids = [leftover.resource_id for leftover in leftovers]

        def remove(clients: Clients, name: str, visit: Visit) -> None:
            remove_disk(clients, location, name, visit)

        failed = failures(ids, self._each(remove, ids))
        return Removed(frozenset(ids) - failed.keys(), failed)

    @property
    def _timeouts(self) -> Timeouts:
        """Seconds that a page of a list may take to connect, and for each read."""
        return CONNECT_TIMEOUT.total_seconds(), self._visits.read_timeout.total_seconds()

    def _each(
        self, ask: Callable[[Clients, Item, Visit], Answer], items: Sequence[Item]
    ) -> list[Answer | CloudError]:
        """What ``ask`` answers about each item, in one visit."""
        visit = self._visits.begin()

        def call(item: Item) -> Answer:
            with cloud_errors():
                return ask(self._clients, item, visit)

        return visit.each(call, items)

    def _insert(self, order: LaunchOrder, request: InsertInstanceRequest, visit: Visit) -> Sighting:
        """Ask for one machine, or find it where the name is taken because it exists already.

        A machine whose making failed for a reason that leaves it open goes on as one that was
        accepted: who follows it is told the reason.
        """
        try:
            operation = self._clients.instances.insert_unary(
                request, retry=None, timeout=time_left(visit)
            )
        except Conflict as error:
            name = request.instance_resource.name
            if not is_about(error, "instances", name):
                raise
            return find_own(self._clients, order, name, visit)
        failure = operation_error(operation)
        if failure is not None and (not operation.target_id or not is_open(failure)):
            raise failure
        return new_machine(
            order,
            str(operation.target_id),
            {"name": request.instance_resource.name, "operation": operation.name},
        )
