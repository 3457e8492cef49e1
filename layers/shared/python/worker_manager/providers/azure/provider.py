"""Azure as a ``CloudProvider``: one location, which is the subscription; names are ours.

Azure accepts a launch and makes the machine afterwards, so launches are followed; it keeps records
of deployments, for which there is limited room; and things outlive the machines that they were
made for.  Retries are nobody's business here: whoever called knows whether repeating is wise, and
the next tick does.  Where to read next: ``launching`` (an order as requests), ``listing`` (the
subscription as sightings), ``following`` (what becomes of launches), ``ending``, ``leftovers``,
``errors`` (what Azure's codes mean).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from worker_manager.core.model import Location
from worker_manager.providers.azure import ending, following, leftovers, looking
from worker_manager.providers.azure.deployments import MOST_RECORDS
from worker_manager.providers.azure.launching import Launcher
from worker_manager.providers.azure.listing import list_deployment
from worker_manager.providers.azure.visit import Visit
from worker_manager.providers.protocol import SlotsOf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from worker_manager.core.model import LaunchConfigHead, LaunchOrder, Sighting, Worker, WorkerKey
    from worker_manager.providers.azure.arm import Arm
    from worker_manager.providers.protocol import Launched, Leftover, Removed, Step, Terminated


class AzureProvider:
    """Our machines in a subscription.  A worker's group is its Azure location.

    ``deployment`` is the tag value by which our machines are told from everybody else's,
    ``resource_group`` where they go that no launch config puts elsewhere, ``secret`` what their
    passwords are derived with.
    """

    def __init__(
        self,
        *,
        provider_id: str,
        deployment: str,
        arm: Arm,
        resource_group: str,
        secret: bytes,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.provider_id = provider_id
        self._deployment = deployment
        self._arm = arm
        self._location = Location(arm.subscription)
        self._launcher = Launcher(arm, self._location, resource_group, secret)
        self._monotonic = monotonic
        self._sleep = sleep
        self._groups = {resource_group.lower()}

    def locations(self, heads: Iterable[LaunchConfigHead]) -> frozenset[Location]:
        """The subscription, if there are any launch configs."""
        return frozenset({self._location} if any(True for _ in heads) else ())

    def instances(self, location: Location) -> Iterator[Sighting]:
        """Every machine of our deployment in the subscription, by two lists side by side."""
        return list_deployment(self._arm, location, deployment=self._deployment)

    def lookup(
        self, location: Location, workers: Sequence[Worker]
    ) -> Mapping[WorkerKey, Sighting | None]:
        """What Azure knows of these workers; ``None`` for one that exists in no way.

        Raises the first ``CloudError`` that left a worker's fate unknown.
        """
        self._remember(workers)
        return looking.look_up(self._arm, self._visit(), workers, location=location)

    def machines(self, order: LaunchOrder) -> Sequence[Sighting]:
        """What an order is going to make; nothing is asked of Azure."""
        return self._launcher.machines(order)

    def launch(self, order: LaunchOrder) -> Launched:
        """Have Azure begin to make the machines of an order, each by one request."""
        self._groups.add(self._launcher.place(order).resource_group)
        return self._launcher.launch(self._visit(), order)

    def follow(self, location: Location, workers: Sequence[Worker]) -> Mapping[WorkerKey, Step]:
        """How far the creation of these machines is; records of what is over are deleted."""
        self._remember(workers)
        return following.follow(self._arm, self._visit(), workers)

    def terminate(self, workers: Sequence[Worker]) -> Terminated:
        """Delete machines, each by one request; unknown to Azure is as good as deleted."""
        self._remember(workers)
        return ending.terminate(self._arm, self._visit(), workers)

    def slots(self, order: LaunchOrder) -> SlotsOf | None:
        """The records of a resource group, for machines that a template makes."""
        place = self._launcher.place(order)
        return SlotsOf(place.resource_group, MOST_RECORDS) if place.is_deployment else None

    def slots_of(self, worker: Worker) -> str | None:
        """The resource group that has the record of a worker's deployment."""
        identity = worker.identity
        return identity["resourceGroup"] if "deployment" in identity else None

    def leftovers(self, location: Location) -> Iterator[Leftover]:
        """Interfaces, addresses, disks and records of ours that no machine uses."""
        return leftovers.leftovers(self._arm, deployment=self._deployment, groups=self._groups)

    def remove(self, location: Location, leftovers_: Sequence[Leftover]) -> Removed:
        """Delete leftovers, addresses last."""
        return leftovers.remove(self._arm, self._visit(), leftovers_, sleep=self._sleep)

    def _visit(self) -> Visit:
        return Visit(read_timeout=self._arm.read_timeout, monotonic=self._monotonic)

    def _remember(self, workers: Iterable[Worker]) -> None:
        """Note the resource groups of workers: their records can be listed only there."""
        self._groups.update(
            worker.identity["resourceGroup"]
            for worker in workers
            if "resourceGroup" in worker.identity
        )
