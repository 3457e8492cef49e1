"""What outlives the machines that it was made for: interfaces, addresses, disks, records.

It is found by list: all of a kind in the subscription, of which those are ours that carry our
deployment's tag (a disk, also by its name: Azure may give it no tags).  Records of deployments
can only be listed by resource group; those groups are looked into in which anything of ours is,
which we made, or which ``groups`` names.  Where to read next: ``ending`` (deleting one thing).
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from worker_manager.providers.azure import deployments
from worker_manager.providers.azure.arm import (
    DISKS_API,
    NETWORK_API,
    deployment_path,
    name_of,
    resource_group_of,
)
from worker_manager.providers.azure.ending import delete_record
from worker_manager.providers.azure.errors import cloud_errors, unless_missing
from worker_manager.providers.azure.machines import moment
from worker_manager.providers.azure.naming import machine_of_disk
from worker_manager.providers.azure.tags import (
    DEPLOYMENT_TAG,
    KEEP_TAG,
    MACHINE_TAG,
    POOL_TAG,
    key_of,
    ordered,
    tags_of,
)
from worker_manager.providers.azure.together import Together
from worker_manager.providers.protocol import Leftover, Removed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from worker_manager.core.errors import CloudError
    from worker_manager.core.model import Json
    from worker_manager.providers.azure.arm import Arm
    from worker_manager.providers.visit import TimeLeft, Visit

NICS = "/providers/Microsoft.Network/networkInterfaces"
IPS = "/providers/Microsoft.Network/publicIPAddresses"
DISKS = "/providers/Microsoft.Compute/disks"
GROUPS = "/resourcegroups"

PAUSE = timedelta(seconds=2)
"""Before an address is tried again that hangs on an interface which is just being deleted."""
MOST_TRIES = 5


class _Owned(NamedTuple):
    """Everything of ours, in use or not."""

    nics: list[Json]
    ips: list[Json]
    disks: list[Json]
    groups: set[str]


def leftovers(arm: Arm, *, deployment: str, groups: Collection[str]) -> Iterator[Leftover]:
    """Everything of a deployment that no machine uses and nobody deletes, or a ``CloudError``."""
    with cloud_errors():
        owned = _owned(arm, deployment)
    loose = [nic for nic in owned.nics if not nic["properties"].get("virtualMachine")]
    ids = {nic["id"].lower() for nic in loose}
    yield from (_leftover("nic", nic) for nic in loose)
    yield from (_leftover("ip", ip) for ip in owned.ips if _interface_of(ip) in {"", *ids})
    yield from (
        _leftover("disk", disk, machine=machine_of_disk(disk["name"], deployment=deployment))
        for disk in owned.disks
        if not (disk.get("managedBy") or disk.get("managedByExtended"))
    )
    for group in sorted({*owned.groups, *groups}):
        yield from (_leftover("deployment", one) for one in _records(arm, group, deployment))


def remove(
    arm: Arm, visit: Visit, found: Sequence[Leftover], *, sleep: Callable[[float], None]
) -> Removed:
    """Delete leftovers side by side, addresses after the interfaces that they hang on."""
    ips = [one for one in found if one.kind == "ip"]
    others = [one for one in found if one.kind != "ip"]
    done: set[str] = set()
    failed: dict[str, CloudError] = {}

    def delete(those: Sequence[Leftover]) -> None:
        answers = visit.each(lambda one: _delete(arm, visit, one), those)
        for one, error in zip(those, answers, strict=True):
            failed.pop(one.resource_id, None)
            if error is None:
                done.add(one.resource_id)
            else:
                failed[one.resource_id] = error

    delete(others)
    for tries in range(MOST_TRIES):
        if tries:
            sleep(PAUSE.total_seconds())
        delete(ips)
        ips = [one for one in ips if _hangs(failed.get(one.resource_id))]
        if not ips:
            break
    return Removed(frozenset(done), failed)


def _owned(arm: Arm, deployment: str) -> _Owned:
    """All of ours that nobody deletes already, kind by kind, read side by side."""

    def of_kind(path: str, version: str) -> Callable[[TimeLeft], list[Json]]:
        def read(timeout: TimeLeft) -> list[Json]:
            pages = arm.pages(path, timeout=timeout, version=version)
            return [one for page in pages for one in page if _is_ours(one, deployment)]

        return read

    lists = Together(arm.read_timeout)
    owned = [
        lists.begin(of_kind(NICS, NETWORK_API)),
        lists.begin(of_kind(IPS, NETWORK_API)),
        lists.begin(of_kind(DISKS, DISKS_API)),
    ]
    groups = lists.begin(lambda timeout: _groups_made(arm, deployment, timeout))
    lists.wait()
    kinds = [kind.result() for kind in owned]
    seen = {resource_group_of(one["id"]) for kind in kinds for one in kind}
    nics, addresses, volumes = ([one for one in kind if not _is_going(one)] for kind in kinds)
    return _Owned(nics, addresses, volumes, groups.result() | seen)


def _groups_made(arm: Arm, deployment: str, timeout: TimeLeft) -> set[str]:
    """The resource groups that we made, in lower case."""
    ours = f"tagName eq '{DEPLOYMENT_TAG}' and tagValue eq '{deployment}'"
    pages = arm.pages(GROUPS, timeout=timeout, params={"$filter": ours})
    groups = (group for page in pages for group in page)
    return {group["name"].lower() for group in groups if _is_ours(group, deployment)}


def _records(arm: Arm, group: str, deployment: str) -> list[Json]:
    """Records of ours in a resource group that are over and that nobody wants kept."""

    def read() -> list[Json]:
        return [
            record
            for page in arm.pages(deployment_path(group), timeout=lambda: arm.read_timeout)
            for record in page
            if tags_of(record).get(DEPLOYMENT_TAG) == deployment
            and deployments.has_ended(record)
            and KEEP_TAG not in tags_of(record)
        ]

    return unless_missing(read) or []


def _is_ours(resource: Json, deployment: str) -> bool:
    """Whether it is our deployment's, by its tag, or without one by the name that we gave it."""
    tagged = tags_of(resource).get(DEPLOYMENT_TAG)
    if tagged is not None:
        return bool(tagged == deployment)
    return machine_of_disk(resource["name"], deployment=deployment) is not None


def _is_going(resource: Json) -> bool:
    """Whether it is being deleted."""
    return str(resource["properties"].get("provisioningState", "")).lower() == "deleting"


def _interface_of(ip: Json) -> str:
    """Id of the interface that an address hangs on, in lower case; empty if on none."""
    at: Json = ip["properties"].get("ipConfiguration") or ip["properties"].get("natGateway") or {}
    return str(at.get("id", "")).lower().partition("/ipconfigurations/")[0]


def _leftover(kind: str, resource: Json, *, machine: str | None = None) -> Leftover:
    """One leftover, with whose it was, as far as it tells."""
    tags = tags_of(resource)
    name = tags.get(MACHINE_TAG) or machine
    made = moment(resource["properties"].get("timeCreated"))
    return Leftover(
        kind=kind,
        resource_id=resource["id"],
        since=made or ordered(resource),
        worker=key_of(resource, name=name) if name else None,
        pool_id=tags.get(POOL_TAG),
    )


def _delete(arm: Arm, visit: Visit, leftover: Leftover) -> None:
    """Delete one leftover; gone is as good."""
    group, name = resource_group_of(leftover.resource_id), name_of(leftover.resource_id)
    if leftover.kind == "deployment":
        delete_record(arm, visit, group, name)
        return
    seconds = visit.timeout().total_seconds()
    begin: dict[str, Callable[[], Any]] = {
        "nic": lambda: arm.network.network_interfaces.begin_delete,
        "ip": lambda: arm.network.public_ip_addresses.begin_delete,
        "disk": lambda: arm.compute.disks.begin_delete,
    }
    delete = begin[leftover.kind]()
    unless_missing(lambda: delete(group, name, polling=False, read_timeout=seconds))


def _hangs(error: CloudError | None) -> bool:
    """Whether an address could not be deleted because something still holds it."""
    return error is not None and error.code == "PublicIPAddressCannotBeDeleted"
