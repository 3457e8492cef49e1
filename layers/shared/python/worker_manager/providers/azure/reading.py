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

from azure.core.exceptions import HttpResponseError

from worker_manager.core.errors import CloudError
from worker_manager.core.model import State
from worker_manager.providers.azure.arm import deployment_path, raw, read, resource_group_of
from worker_manager.providers.azure.errors import cloud_errors
from worker_manager.providers.azure.listing import list_machines
from worker_manager.providers.azure.machines import provisioning_state

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from worker_manager.core.model import Json, Worker, WorkerKey
    from worker_manager.providers.azure.arm import Arm
    from worker_manager.providers.azure.visit import Visit

FEW = 3

Found: TypeAlias = "Json | CloudError | None"
"""What Azure shows of something; ``None`` if it does not exist; an error if nobody knows."""


def sure(found: Found) -> Json | None:
    """What was found; raises the error if nobody knows."""
    if isinstance(found, CloudError):
        raise found
    return found


def find(arm: Arm, workers: Sequence[Worker]) -> list[Worker]:
    """Workers that do not know their resource group, with it, as far as their machines exist.

    They are looked for in one list; raises a ``CloudError`` if that fails.
    """
    if not workers:
        return []
    with cloud_errors():
        homes = {vm["name"].lower(): resource_group_of(vm["id"]) for vm in list_machines(arm)}
    return [
        replace(worker, identity={**worker.identity, "resourceGroup": homes[worker.key.worker_id]})
        for worker in workers
        if worker.key.worker_id in homes
    ]


def is_settled(worker: Worker) -> bool:
    """Whether no record of a deployment has anything more to tell of a worker.

    A list may tell a machine's ``vmId`` before its deployment was seen through, so that alone
    settles nothing but where the record is kept.
    """
    is_kept = worker.identity.get("keepDeployment") and "vmId" in worker.identity
    return bool(is_kept) or "deployment" not in worker.identity


def machines(arm: Arm, visit: Visit, workers: Iterable[Worker]) -> dict[WorkerKey, Found]:
    """The virtual machines of these workers; with their instance views where they are of interest.

    Those are the failed ones, whose provisioning alone does not tell whether they run.
    """

    def ask(worker: Worker) -> Found:
        group = worker.identity["resourceGroup"]
        return _unless_missing(
            lambda: arm.compute.virtual_machines.get(
                group, worker.key.worker_id, expand="instanceView", cls=raw
            )
        )

    def all_of(group: str) -> dict[str, Json | None]:
        return {
            vm["name"].lower(): None if provisioning_state(vm) == "failed" else vm
            for vm in list_machines(arm, resource_group=group)
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
        return _unless_missing(lambda: read(arm.send("GET", path)))

    def all_of(group: str) -> dict[str, Json | None]:
        pages = arm.pages(deployment_path(group))
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

    def listed(group: str) -> Mapping[str, Json | None]:
        with cloud_errors():
            return many(group)

    for group, answer in zip(crowded, visit.each(listed, crowded), strict=True):
        for worker in groups[group]:
            if isinstance(answer, CloudError):
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


def _unless_missing(call: Callable[[], Json]) -> Json | None:
    """What a call answers, ``None`` for what does not exist; ``CloudError`` if nobody knows."""
    with cloud_errors():
        try:
            return call()
        except HttpResponseError as error:
            if error.status_code != 404:
                raise
            return None
