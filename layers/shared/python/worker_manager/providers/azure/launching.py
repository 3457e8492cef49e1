"""From a launch order to machines: one request each, side by side.

The same order gives the same requests, and each request makes nothing that exists: a machine is
put only if there is none of its name, a deployment that is under way goes on.  Where to read next:
``inline`` and ``deployments`` (the two shapes of a request), ``following`` (what comes of them).
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError

from worker_manager.core.errors import CloudError, InvalidLaunchConfigError
from worker_manager.core.model import (
    Location,
    MachineStatus,
    Sighting,
    WorkerKey,
    canonical_json,
)
from worker_manager.providers.answers import launched
from worker_manager.providers.azure.arm import deployment_path, group_path, raw
from worker_manager.providers.azure.deployments import ACTIVE_CODE, deployment, keeps_record
from worker_manager.providers.azure.errors import cloud_errors, has_code
from worker_manager.providers.azure.following import FOLLOW_AFTER
from worker_manager.providers.azure.inline import virtual_machine
from worker_manager.providers.azure.machines import identity
from worker_manager.providers.azure.naming import admin_password, machine_names
from worker_manager.providers.azure.places import Place, place_of
from worker_manager.providers.azure.tags import DEPLOYMENT_TAG, order_tags

if TYPE_CHECKING:
    from worker_manager.core.model import LaunchOrder
    from worker_manager.providers.azure.arm import Arm
    from worker_manager.providers.azure.naming import MachineNames
    from worker_manager.providers.protocol import Launched
    from worker_manager.providers.visit import Visit


@dataclass(slots=True)
class Launcher:
    """``resource_group`` is where machines go that no launch config puts elsewhere.

    ``secret`` is the key that passwords are derived with.
    """

    arm: Arm
    location: Location
    resource_group: str
    secret: bytes = field(repr=False)

    def machines(self, order: LaunchOrder) -> tuple[Sighting, ...]:
        """What an order is going to make; ``InvalidLaunchConfigError`` if nothing can be made."""
        place = self.place(order)
        return tuple(self._sighting(order, place, names) for _, names in _wanted(order))

    def place(self, order: LaunchOrder) -> Place:
        """Where an order goes."""
        return place_of(order, resource_group=self.resource_group)

    def launch(self, visit: Visit, order: LaunchOrder) -> Launched:
        """Make the machines of an order.

        Raises a ``CloudError`` if none was accepted.
        """
        place = self.place(order)
        wanted = _wanted(order)

        def make(numbered: tuple[int, MachineNames]) -> Sighting:
            index, names = numbered
            return self._make(visit, order, place, index=index, names=names)

        answers = visit.each(make, wanted)
        lacking = [at for at, answer in enumerate(answers) if _lacks_group(answer, place)]
        if lacking:
            (refusal,) = visit.each(lambda _: self._make_group(visit, order, place), [place])
            again = visit.each(make, [wanted[at] for at in lacking]) if refusal is None else ()
            for number, at in enumerate(lacking):
                answers[at] = refusal or again[number]
        keys = [self._key(order, place, names) for _, names in wanted]
        return launched(answers, keys=keys, follow_after=FOLLOW_AFTER)

    def _make(
        self, visit: Visit, order: LaunchOrder, place: Place, *, index: int, names: MachineNames
    ) -> Sighting:
        """Make one machine, or begin to."""
        password = admin_password(self.secret, order.order_id, index)
        custom_data = _custom_data(order, place)
        tags = order_tags(order, group=place.group, machine=names.machine)
        shape = deployment if place.is_deployment else virtual_machine
        try:
            body = shape(order, names, tags=tags, password=password, custom_data=custom_data)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            code = type(error).__name__
            raise InvalidLaunchConfigError(
                f"{code}: a value is of a wrong kind", code=code
            ) from None
        with cloud_errors(launching=True, hide=(password, custom_data)):
            send = self._deploy if place.is_deployment else self._put_machine
            known = send(visit, place, names, body)
        return self._sighting(order, place, names, known)

    def _put_machine(
        self, visit: Visit, place: Place, names: MachineNames, body: Any
    ) -> dict[str, Any]:
        """Put a machine where there is none; what is known of it then."""
        try:
            vm = self.arm.compute.virtual_machines.begin_create_or_update(
                place.resource_group,
                names.machine,
                body,
                match_condition=MatchConditions.IfMissing,
                polling=False,
                read_timeout=visit.timeout().total_seconds(),
                cls=raw,
            ).result()
        except HttpResponseError as error:
            if error.status_code != 412:
                raise
            return {}
        return identity(place.resource_group, vm)

    def _deploy(self, visit: Visit, place: Place, names: MachineNames, body: Any) -> dict[str, Any]:
        """Begin a deployment, unless it is under way."""
        path = deployment_path(place.resource_group, names.deployment)
        try:
            self.arm.send("PUT", path, body=body, timeout=visit.timeout())
        except HttpResponseError as error:
            if not has_code(error, ACTIVE_CODE):
                raise
        return {}

    def _make_group(self, visit: Visit, order: LaunchOrder, place: Place) -> None:
        """Make the resource group of an order, unless somebody made it elsewhere meanwhile."""
        tags = {"managed-by": "taskcluster", DEPLOYMENT_TAG: order.inputs["deployment"]}
        body = {"location": place.region, "tags": tags}
        with cloud_errors(launching=True):
            try:
                path = group_path(place.resource_group)
                self.arm.send("PUT", path, body=body, timeout=visit.timeout())
            except HttpResponseError as error:
                if not has_code(error, "InvalidResourceGroupLocation"):
                    raise

    def _key(self, order: LaunchOrder, place: Place, names: MachineNames) -> WorkerKey:
        return WorkerKey(order.pool_id, place.group, names.machine)

    def _sighting(
        self,
        order: LaunchOrder,
        place: Place,
        names: MachineNames,
        known: dict[str, Any] | None = None,
    ) -> Sighting:
        """One machine as it is going to be; ``known`` is what Azure said of it."""
        facts: dict[str, Any] = {"resourceGroup": place.resource_group, **(known or {})}
        if place.is_deployment:
            facts["deployment"] = names.deployment
            facts |= {"keepDeployment": True} if keeps_record(order) else {}
        return Sighting(
            key=self._key(order, place, names),
            location=self.location,
            status=MachineStatus.PENDING,
            launch_config_id=order.launch_config_id,
            order_id=order.order_id,
            identity=facts,
        )


def _wanted(order: LaunchOrder) -> list[tuple[int, MachineNames]]:
    """The machines of an order that are still wanted, with their numbers."""
    deployment = order.inputs["deployment"]
    numbered = [
        (index, machine_names(order.order_id, index, deployment=deployment))
        for index in range(order.count)
    ]
    return [one for one in numbered if order.only is None or one[1].machine in order.only]


def _custom_data(order: LaunchOrder, place: Place) -> str:
    """What a machine is told at birth, as a stock worker-runner reads it."""
    told = {
        "workerPoolId": order.pool_id,
        "workerGroup": place.group,
        "providerId": order.provider_id,
        "rootUrl": order.inputs["rootUrl"],
        "workerConfig": {},
    }
    return base64.b64encode(canonical_json(told).encode()).decode()


def _lacks_group(answer: Sighting | CloudError, place: Place) -> bool:
    """Whether a machine was refused because its resource group is missing, which we may make.

    A template may miss other groups, which are nobody's but its own.
    """
    return (
        place.is_own
        and isinstance(answer, CloudError)
        and answer.code == "ResourceGroupNotFound"
        and f"'{place.resource_group}'" in str(answer).lower()
    )
