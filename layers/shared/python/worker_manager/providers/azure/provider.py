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
from worker_manager.providers.azure import ending, following, looking, rebooting
from worker_manager.providers.azure import leftovers as sweeping
from worker_manager.providers.azure.deployments import MOST_RECORDS
from worker_manager.providers.azure.errors import cloud_errors
from worker_manager.providers.azure.launching import Launcher
from worker_manager.providers.azure.listing import list_deployment
from worker_manager.providers.protocol import SlotsOf

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from worker_manager.core.model import LaunchConfigHead, LaunchOrder, Sighting, Worker, WorkerKey
    from worker_manager.providers.azure.arm import Arm
    from worker_manager.providers.protocol import (
        Launched,
        Leftover,
        Rebooted,
        Removed,
        Step,
        Terminated,
    )
    from worker_manager.providers.visit import Visit, Visits


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
        visits: Visits,
        resource_group: str,
        secret: bytes,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.provider_id = provider_id
        self._deployment = deployment
        self._arm = arm
        self._location = Location(arm.subscription)
        self._launcher = Launcher(arm, self._location, resource_group, secret)
        self._visits = visits
        self._resource_group = resource_group.lower()
        self._sleep = sleep

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
        return looking.look_up(self._arm, self._visit(), workers, location=location)

    def machines(self, order: LaunchOrder) -> Sequence[Sighting]:
        """What an order is going to make; nothing is asked of Azure."""
        return self._launcher.machines(order)

    def launch(self, order: LaunchOrder) -> Launched:
        """Have Azure begin to make the machines of an order, each by one request."""
        return self._launcher.launch(self._visit(), order)

    def follow(self, location: Location, workers: Sequence[Worker]) -> Mapping[WorkerKey, Step]:
        """How far the creation of these machines is; records of what is over are deleted."""
        return following.follow(self._arm, self._visit(), workers)

    def terminate(self, workers: Sequence[Worker]) -> Terminated:
        """Delete machines, each by one request; unknown to Azure is as good as deleted."""
        return ending.terminate(self._arm, self._visit(), workers)

    def reboot(self, workers: Sequence[Worker]) -> Rebooted:
        """Restart machines, each by one request."""
        return rebooting.reboot(self._arm, self._visit(), workers)

    def slots(self, order: LaunchOrder) -> SlotsOf | None:
        """The records of a resource group, for machines that a template makes."""
        place = self._launcher.place(order)
        return SlotsOf(place.resource_group, MOST_RECORDS) if place.is_deployment else None

    def slots_of(self, worker: Worker) -> str | None:
        """The resource group that has the record of a worker's deployment."""
        identity = worker.identity
        return identity["resourceGroup"] if "deployment" in identity else None

    def leftovers(self, location: Location, places: Collection[str] = ()) -> Iterator[Leftover]:
        """Interfaces, addresses, disks, and records in ``places``, of ours that no machine uses."""
        groups = {self._resource_group, *places}
        return sweeping.leftovers(self._arm, deployment=self._deployment, groups=groups)

    def remove(self, location: Location, leftovers: Sequence[Leftover]) -> Removed:
        """Delete leftovers, addresses last."""
        return sweeping.remove(self._arm, self._visit(), leftovers, sleep=self._sleep)

    def _visit(self) -> Visit:
        """A visit whose calls need not wait for a token, though it may have to."""
        visit = self._visits.begin()
        with cloud_errors():
            self._arm.sign_in()
        return visit
