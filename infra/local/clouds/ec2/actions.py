"""The actions of the query API: parameters in, the body of the XML answer out.

Each follows its page in the EC2 API Reference, as far as this cloud goes; the cloud's lock is held
while one runs.  Read next: ``service``, which finds the action of a call.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from infra.local.clouds.ec2 import render
from infra.local.clouds.ec2.cloud import Ec2Cloud
from infra.local.clouds.ec2.errors import Ec2Error, missing
from infra.local.clouds.ec2.filters import INSTANCE_READERS, VOLUME_READERS, predicate_of
from infra.local.clouds.ec2.instances import Instance, InstanceState, Volume
from infra.local.clouds.ec2.launches import read_launch, read_tags
from infra.local.clouds.ec2.parameters import Parameters

if TYPE_CHECKING:
    from infra.local.clouds.ec2.estate import Change

Action = Callable[[Ec2Cloud, str, Parameters], str]
"""Takes the cloud, the region and the parameters; raises ``Ec2Error`` for a refusal."""

MAX_PAGE = 1000


def run_instances(cloud: Ec2Cloud, region: str, parameters: Parameters) -> str:
    """RunInstances."""
    launched = cloud.run(region, read_launch(parameters))
    return render.reservation(launched[0].reservation, launched)


def describe_instances(cloud: Ec2Cloud, region: str, parameters: Parameters) -> str:
    """DescribeInstances: by id, or by filter and page; pages count instances."""
    wanted = predicate_of(parameters, INSTANCE_READERS)
    if ids := _ids_without_paging(parameters):
        found = [i for i in cloud.estate.find(region, ids) if wanted(i)]
        return render.reservations(found)
    page, token = _page(filter(wanted, cloud.estate.visible(region)), parameters)
    return render.reservations(page) + render.next_token(token)


def describe_instance_status(cloud: Ec2Cloud, region: str, parameters: Parameters) -> str:
    """DescribeInstanceStatus: only running instances unless all are asked for."""
    wanted = predicate_of(parameters, INSTANCE_READERS)
    every = parameters.flag("IncludeAllInstances")

    def shown(instance: Instance) -> bool:
        return (every or instance.state is InstanceState.RUNNING) and wanted(instance)

    if ids := _ids_without_paging(parameters):
        return render.statuses(filter(shown, cloud.estate.find(region, ids)))
    page, token = _page(filter(shown, cloud.estate.visible(region)), parameters)
    return render.statuses(page) + render.next_token(token)


def terminate_instances(cloud: Ec2Cloud, region: str, parameters: Parameters) -> str:
    """TerminateInstances: all or none, repeatable."""
    return _change(cloud.terminate, region, parameters)


def stop_instances(cloud: Ec2Cloud, region: str, parameters: Parameters) -> str:
    """StopInstances."""
    return _change(cloud.stop, region, parameters)


def start_instances(cloud: Ec2Cloud, region: str, parameters: Parameters) -> str:
    """StartInstances."""
    return _change(cloud.start, region, parameters)


def reboot_instances(cloud: Ec2Cloud, region: str, parameters: Parameters) -> str:
    """RebootInstances: all or none, each time it is asked."""
    ids = parameters.texts("InstanceId")
    if not ids:
        raise missing("InstanceId")
    cloud.reboot(region, ids)
    return "<return>true</return>"


def create_tags(cloud: Ec2Cloud, region: str, parameters: Parameters) -> str:
    """CreateTags on instances and volumes: adds, or overwrites values."""
    tags = read_tags(parameters)
    resource_ids = parameters.texts("ResourceId")
    if not resource_ids:
        raise missing("ResourceId")
    instances = cloud.estate.find(region, [r for r in resource_ids if r.startswith("i-")])
    volume_ids = [r for r in resource_ids if not r.startswith("i-")]
    disks = _volumes(cloud, region, volume_ids) if volume_ids else []
    for instance in instances:
        instance.tags.update(tags)
        instance.rendered = ""
    for disk, _ in disks:
        disk.tags.update(tags)
    return "<return>true</return>"


def describe_volumes(cloud: Ec2Cloud, region: str, parameters: Parameters) -> str:
    """DescribeVolumes: disks of instances that are not terminated, and left over; in one page."""
    left = cloud.estate.left_over(region)

    def status(disk: Volume) -> str:
        return "available" if disk.volume_id in left else "in-use"

    wanted = predicate_of(parameters, {**VOLUME_READERS, "status": status})
    disks = _volumes(cloud, region, parameters.texts("VolumeId"))
    items = [render.volume(disk, owner) for disk, owner in disks if wanted(disk)]
    return f"<volumeSet>{''.join(items)}</volumeSet>"


def delete_volume(cloud: Ec2Cloud, region: str, parameters: Parameters) -> str:
    """DeleteVolume: of a disk that no instance uses."""
    volume_id = parameters.required("VolumeId")
    _volumes(cloud, region, [volume_id])
    if cloud.estate.left_over(region).pop(volume_id, None) is None:
        raise Ec2Error("VolumeInUse", f"Volume {volume_id} is currently attached")
    return "<return>true</return>"


def describe_regions(cloud: Ec2Cloud, _region: str, _parameters: Parameters) -> str:
    """DescribeRegions."""
    items = [
        f"<item><regionName>{name}</regionName>"
        f"<regionEndpoint>ec2.{name}.amazonaws.com</regionEndpoint>"
        "<optInStatus>opt-in-not-required</optInStatus></item>"
        for name in cloud.settings.regions
    ]
    return f"<regionInfo>{''.join(items)}</regionInfo>"


def describe_instance_attribute(cloud: Ec2Cloud, region: str, parameters: Parameters) -> str:
    """DescribeInstanceAttribute, for ``userData`` and ``instanceInitiatedShutdownBehavior``."""
    attribute = parameters.required("Attribute")
    instance = cloud.estate.find(region, [parameters.required("InstanceId")])[0]
    values = {
        "userData": instance.user_data,
        "instanceInitiatedShutdownBehavior": (
            "stop" if instance.stops_on_shutdown else "terminate"
        ),
    }
    if attribute not in values:
        message = f"Value ( {attribute} ) for parameter attribute is invalid."
        raise Ec2Error("InvalidParameterValue", message)
    value = f"<value>{values[attribute]}</value>" if values[attribute] else ""
    return f"<instanceId>{instance.instance_id}</instanceId><{attribute}>{value}</{attribute}>"


ACTIONS: Mapping[str, Action] = {
    "RunInstances": run_instances,
    "DescribeInstances": describe_instances,
    "DescribeInstanceStatus": describe_instance_status,
    "DescribeInstanceAttribute": describe_instance_attribute,
    "DescribeRegions": describe_regions,
    "DescribeVolumes": describe_volumes,
    "DeleteVolume": delete_volume,
    "TerminateInstances": terminate_instances,
    "StopInstances": stop_instances,
    "StartInstances": start_instances,
    "RebootInstances": reboot_instances,
    "CreateTags": create_tags,
}


def _change(
    change: Callable[[str, Sequence[str]], list[Change]], region: str, parameters: Parameters
) -> str:
    ids = parameters.texts("InstanceId")
    if not ids:
        raise missing("InstanceId")
    return render.changes(change(region, ids))


def _ids_without_paging(parameters: Parameters) -> list[str]:
    ids = parameters.texts("InstanceId")
    if ids and "MaxResults" in parameters:
        message = "The parameter instancesSet cannot be used with the parameter maxResults"
        raise Ec2Error("InvalidParameterCombination", message)
    return ids


def _page(instances: Iterable[Instance], parameters: Parameters) -> tuple[list[Instance], str]:
    """One page of a list, and the token of the next: the last instance's place in the order."""
    size = parameters.integer("MaxResults", default=MAX_PAGE, low=5, high=MAX_PAGE)
    after = _read_token(parameters.text("NextToken"))
    rest = (instance for instance in instances if instance.sequence > after)
    page = list(islice(rest, size + 1))
    if len(page) <= size:
        return page, ""
    del page[size:]
    return page, base64.urlsafe_b64encode(f"after:{page[-1].sequence}".encode()).decode()


def _read_token(token: str) -> int:
    if not token:
        return 0
    try:
        kind, _, sequence = base64.urlsafe_b64decode(token).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        kind, sequence = "", ""
    if kind != "after" or not sequence.isdecimal():
        raise Ec2Error("InvalidPaginationToken", "The specified pagination token is invalid")
    return int(sequence)


def _volumes(
    cloud: Ec2Cloud, region: str, volume_ids: Sequence[str]
) -> list[tuple[Volume, Instance | None]]:
    """The named disks of a region with their instances, or all where none is named."""
    known: dict[str, tuple[Volume, Instance | None]] = {
        disk.volume_id: (disk, instance)
        for instance in cloud.estate.visible(region)
        if instance.state is not InstanceState.TERMINATED
        for disk in instance.volumes
    }
    known |= {name: (disk, None) for name, disk in cloud.estate.left_over(region).items()}
    if unknown := [volume_id for volume_id in volume_ids if volume_id not in known]:
        message = f"The volume '{', '.join(unknown)}' does not exist."
        raise Ec2Error("InvalidVolume.NotFound", message)
    return [known[v] for v in volume_ids] if volume_ids else list(known.values())
