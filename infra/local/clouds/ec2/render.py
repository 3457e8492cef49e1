"""How things look on the wire: EC2's XML, shaped as in the examples of the EC2 API Reference.

An instance's XML is kept until its state or tags change: lists of thousands are mere joins.
Read next: ``actions``.
"""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from infra.local.clouds.ec2.instances import Instance, InstanceState, Reservation, Volume

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from infra.local.clouds.ec2.errors import Ec2Error
    from infra.local.clouds.ec2.estate import Change

_NAMESPACE = "http://ec2.amazonaws.com/doc/2016-11-15/"


def response(action: str, request_id: str, body: str) -> str:
    """A successful answer."""
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<{action}Response xmlns="{_NAMESPACE}">'
        f"<requestId>{request_id}</requestId>{body}</{action}Response>"
    )


def refusal(error: Ec2Error, request_id: str) -> str:
    """An error answer."""
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<Response><Errors><Error>'
        f"<Code>{escape(error.code)}</Code><Message>{escape(error.message)}</Message>"
        f"</Error></Errors><RequestID>{request_id}</RequestID></Response>"
    )


def reservations(instances: Iterable[Instance]) -> str:
    """The ``reservationSet`` of a list; a reservation that a page cuts shows on both pages."""
    items = [
        f"<item>{reservation(group, list(members))}</item>"
        for group, members in groupby(instances, key=lambda i: i.reservation)
    ]
    return f"<reservationSet>{''.join(items)}</reservationSet>"


def reservation(made: Reservation, instances: Sequence[Instance]) -> str:
    """One reservation with (some of) its instances."""
    return (
        f"<reservationId>{made.reservation_id}</reservationId><ownerId>{made.owner_id}</ownerId>"
        f"<groupSet/><instancesSet>{''.join(map(instance, instances))}</instancesSet>"
    )


def instance(machine: Instance) -> str:
    """One settled instance as an ``item``."""
    if not machine.rendered:
        machine.rendered = _instance(machine)
    return machine.rendered


def statuses(instances: Iterable[Instance]) -> str:
    """The ``instanceStatusSet`` of a list."""
    return f"<instanceStatusSet>{''.join(map(_status, instances))}</instanceStatusSet>"


def changes(made: Iterable[Change]) -> str:
    """What TerminateInstances, StopInstances and StartInstances tell of each instance."""
    items = [
        f"<item><instanceId>{change.instance.instance_id}</instanceId>"
        f"{_state('currentState', change.after)}{_state('previousState', change.before)}</item>"
        for change in made
    ]
    return f"<instancesSet>{''.join(items)}</instancesSet>"


def volume(disk: Volume, owner: Instance | None) -> str:
    """One volume as an ``item``: attached to its instance, or available."""
    status = "available" if owner is None else "in-use"
    return (
        f"<item><volumeId>{disk.volume_id}</volumeId><size>{disk.size_gib}</size><snapshotId/>"
        f"<availabilityZone>{disk.zone}</availabilityZone><status>{status}</status>"
        f"<createTime>{timestamp(disk.created_at)}</createTime>"
        f"<attachmentSet>{'' if owner is None else _attachment(disk, owner)}</attachmentSet>"
        f"{tags(disk.tags)}<volumeType>gp3</volumeType><encrypted>false</encrypted></item>"
    )


def _attachment(disk: Volume, owner: Instance) -> str:
    ends = "false" if disk.outlives else "true"
    return (
        f"<item><volumeId>{disk.volume_id}</volumeId><instanceId>{owner.instance_id}</instanceId>"
        f"<device>{escape(disk.device)}</device><status>attached</status>"
        f"<attachTime>{timestamp(owner.launched_at)}</attachTime>"
        f"<deleteOnTermination>{ends}</deleteOnTermination></item>"
    )


def tags(pairs: Mapping[str, str]) -> str:
    """A ``tagSet``."""
    items = [
        f"<item><key>{escape(key)}</key><value>{escape(value)}</value></item>"
        for key, value in pairs.items()
    ]
    return f"<tagSet>{''.join(items)}</tagSet>"


def next_token(token: str) -> str:
    """Where the list goes on; nothing after its last page."""
    return f"<nextToken>{token}</nextToken>" if token else ""


def timestamp(seconds: float) -> str:
    """A moment as EC2 writes it, in UTC and whole seconds."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def _state(element: str, state: InstanceState) -> str:
    return f"<{element}><code>{state.code}</code><name>{state}</name></{element}>"


def _status(machine: Instance) -> str:
    state = machine.state
    health = "ok" if state is InstanceState.RUNNING else "not-applicable"
    if state is InstanceState.PENDING:
        health = "initializing"
    return (
        f"<item><instanceId>{machine.instance_id}</instanceId>"
        f"<availabilityZone>{machine.zone}</availabilityZone>{_state('instanceState', state)}"
        f"<systemStatus><status>{health}</status><details/></systemStatus>"
        f"<instanceStatus><status>{health}</status><details/></instanceStatus></item>"
    )


def _instance(machine: Instance) -> str:
    ended = machine.state is InstanceState.TERMINATED
    return (
        f"<item><instanceId>{machine.instance_id}</instanceId>"
        f"<imageId>{escape(machine.image_id)}</imageId>"
        f"{_state('instanceState', machine.state)}"
        f"{'<privateDnsName/>' if ended else _address(machine)}<dnsName/>"
        f"{_reason(machine)}<amiLaunchIndex>{machine.launch_index}</amiLaunchIndex>"
        f"<productCodes/><instanceType>{machine.instance_type}</instanceType>"
        f"<launchTime>{timestamp(machine.launched_at)}</launchTime>"
        f"<placement><availabilityZone>{machine.zone}</availabilityZone><groupName/>"
        "<tenancy>default</tenancy></placement><monitoring><state>disabled</state></monitoring>"
        f"{'' if ended else _network(machine)}"
        f"<architecture>{machine.architecture}</architecture>"
        "<rootDeviceType>ebs</rootDeviceType><rootDeviceName>/dev/xvda</rootDeviceName>"
        f"<blockDeviceMapping>{'' if ended else _devices(machine)}</blockDeviceMapping>"
        "<virtualizationType>hvm</virtualizationType>"
        f"<clientToken>{escape(machine.client_token)}</clientToken>{tags(machine.tags)}"
        "<hypervisor>xen</hypervisor><ebsOptimized>false</ebsOptimized>"
        f"<enaSupport>true</enaSupport>{_lifecycle(machine)}"
        "<metadataOptions><state>applied</state><httpTokens>required</httpTokens>"
        "<httpPutResponseHopLimit>2</httpPutResponseHopLimit>"
        "<httpEndpoint>enabled</httpEndpoint></metadataOptions></item>"
    )


def _address(machine: Instance) -> str:
    name = f"ip-{machine.private_ip.replace('.', '-')}.{machine.region}.compute.internal"
    return (
        f"<privateDnsName>{name}</privateDnsName>"
        f"<privateIpAddress>{machine.private_ip}</privateIpAddress>"
    )


def _network(machine: Instance) -> str:
    suffix = machine.instance_id.removeprefix("i-")
    return (
        f"<subnetId>subnet-{suffix}</subnetId><vpcId>vpc-0123456789abcdef0</vpcId>"
        "<sourceDestCheck>true</sourceDestCheck><groupSet/><networkInterfaceSet><item>"
        f"<networkInterfaceId>eni-{suffix}</networkInterfaceId>"
        f"<ownerId>{machine.reservation.owner_id}</ownerId><status>in-use</status>"
        f"<privateIpAddress>{machine.private_ip}</privateIpAddress>"
        f"<attachment><attachmentId>eni-attach-{suffix}</attachmentId>"
        "<deviceIndex>0</deviceIndex><status>attached</status>"
        "<deleteOnTermination>true</deleteOnTermination></attachment></item>"
        "</networkInterfaceSet>"
    )


def _devices(machine: Instance) -> str:
    attached = timestamp(machine.launched_at)
    return "".join(
        f"<item><deviceName>{escape(disk.device)}</deviceName><ebs>"
        f"<volumeId>{disk.volume_id}</volumeId><status>attached</status>"
        f"<attachTime>{attached}</attachTime><deleteOnTermination>true</deleteOnTermination>"
        "</ebs></item>"
        for disk in machine.volumes
    )


def _reason(machine: Instance) -> str:
    if machine.reason is None:
        return "<reason/>"
    return (
        f"<reason>{machine.reason.message}</reason><stateReason>"
        f"<code>{machine.reason.code}</code><message>{machine.reason.message}</message>"
        "</stateReason>"
    )


def _lifecycle(machine: Instance) -> str:
    if not machine.spot:
        return ""
    request = machine.instance_id.removeprefix("i-")[:8]
    return (
        "<instanceLifecycle>spot</instanceLifecycle>"
        f"<spotInstanceRequestId>sir-{request}</spotInstanceRequestId>"
    )
