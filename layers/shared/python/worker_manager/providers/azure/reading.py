"""Looking at a few machines and records among many, with as few calls as that takes.

Up to ``FEW`` in one resource group are asked for one by one; more are read from one list of the
group, and only those that it lacks are asked for; nobody asks once more for a machine that was told
to go and is on no list.  Where to read next: ``following`` and
``looking``, which conclude from what is read here.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from worker_manager.core.errors import CloudError
from worker_manager.core.model import State
from worker_manager.providers.azure.arm import deployment_path, raw, read, resource_group_of
from worker_manager.providers.azure.errors import cloud_errors, unless_missing
from worker_manager.providers.azure.listing import list_machines
from worker_manager.providers.azure.machines import FAILED, provisioning_state

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from worker_manager.core.model import Json, Worker, WorkerKey
    from worker_manager.providers.azure.arm import Arm
    from worker_manager.providers.visit import Visit

FEW = 3

Found: TypeAlias = "Json | CloudError | None"
"""What Azure shows of something; ``None`` if it does not exist; an error if nobody knows."""


def sure(found: Found) -> Json | None:
    """What was found; raises the error if nobody knows."""
    if isinstance(found, CloudError):
        raise found
    return found


def by_address(workers: Sequence[Worker]) -> tuple[list[Worker], list[Worker]]:
    """Workers that know their resource group, and those that do not."""
    at_home = [worker for worker in workers if "resourceGroup" in worker.identity]
    homeless = [worker for worker in workers if "resourceGroup" not in worker.identity]
    return at_home, homeless


def find(arm: Arm, visit: Visit, workers: Sequence[Worker]) -> list[Worker]:
    """Workers that do not know their resource group, with it, as far as their machines exist.

    They are looked for in one list; raises a ``CloudError`` if that fails.
    """
    if not workers:
        return []
    with cloud_errors():
        listed = list_machines(arm, timeout=visit.timeout)
        homes = {vm["name"].lower(): resource_group_of(vm["id"]) for vm in listed}
    return [
        replace(worker, identity={**worker.identity, "resourceGroup": homes[worker.key.worker_id]})
        for worker in workers
        if worker.key.worker_id in homes
    ]


def is_settled(worker: Worker) -> bool:
    """Whether no record of a deployment has anything more to tell of a worker.

    A record that is deleted is no longer named; one that is kept was seen through.
    """
    return "deployment" not in worker.identity or worker.identity.get("isSeenThrough") is True


def machines(arm: Arm, visit: Visit, workers: Iterable[Worker]) -> dict[WorkerKey, Found]:
    """The virtual machines of these workers; with their instance views where they are of interest.

    Those are the failed ones, whose provisioning alone does not tell whether they run.
    """

    def ask(worker: Worker) -> Found:
        group = worker.identity["resourceGroup"]
        return unless_missing(
            lambda: arm.compute.virtual_machines.get(
                group,
                worker.key.worker_id,
                expand="instanceView",
                cls=raw,
                read_timeout=visit.timeout().total_seconds(),
            )
        )

    def all_of(group: str) -> dict[str, Json | None]:
        return {
            vm["name"].lower(): None if provisioning_state(vm) in FAILED else vm
            for vm in list_machines(arm, resource_group=group, timeout=visit.timeout)
        }

    return _look(
        visit,
        workers,
        one=ask,
        many=all_of,
        name=lambda worker: worker.key.worker_id,
        is_gone=lambda worker: worker.state is State.STOPPING,
    )


def records(arm: Arm, visit: Visit, workers: Iterable[Worker]) -> dict[WorkerKey, Found]:
    """The deployment records of these workers, each of which names one."""

    def ask(worker: Worker) -> Found:
        path = deployment_path(worker.identity["resourceGroup"], worker.identity["deployment"])
        return unless_missing(lambda: read(arm.send("GET", path, timeout=visit.timeout())))

    def all_of(group: str) -> dict[str, Json | None]:
        pages = arm.pages(deployment_path(group), timeout=visit.timeout)
        return {record["name"].lower(): record for page in pages for record in page}

    return _look(
        visit, workers, one=ask, many=all_of, name=lambda worker: worker.identity["deployment"]
    )


def _look(
    visit: Visit,
    workers: Iterable[Worker],
    *,
    one: Callable[[Worker], Found],
    many: Callable[[str], Mapping[str, Json | None]],
    name: Callable[[Worker], str],
    is_gone: Callable[[Worker], bool] = lambda _: False,
) -> dict[WorkerKey, Found]:
    """What was found of each worker, by lists where they are many, else one by one.

    ``many`` gives ``None`` for what has to be asked for although it is listed; ``is_gone`` tells
    for whom it is enough to be on no list.
    """
    groups: defaultdict[str, list[Worker]] = defaultdict(list)
    for worker in workers:
        groups[worker.identity["resourceGroup"]].append(worker)
    found: dict[WorkerKey, Found] = {}
    crowded = [group for group, those in groups.items() if len(those) > FEW]

    def listed(group: str) -> Mapping[str, Json | None] | None:
        return unless_missing(lambda: many(group))

    for group, answer in zip(crowded, visit.each(listed, crowded), strict=True):
        for worker in groups[group]:
            if answer is None or isinstance(answer, CloudError):
                found[worker.key] = answer
            elif (known := answer.get(name(worker).lower())) is not None:
                found[worker.key] = known
            elif name(worker).lower() not in answer and is_gone(worker):
                found[worker.key] = None
    rest = [worker for those in groups.values() for worker in those if worker.key not in found]
    found.update(_zipped(rest, visit.each(one, rest)))
    return found


def _zipped(workers: Sequence[Worker], answers: Sequence[Found]) -> dict[WorkerKey, Found]:
    return {worker.key: answer for worker, answer in zip(workers, answers, strict=True)}
