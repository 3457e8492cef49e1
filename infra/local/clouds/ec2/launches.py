"""Reading a RunInstances call: everything that can be judged without knowing the cloud's state.

Parameters and constraints follow "RunInstances" in the EC2 API Reference.  Read next: ``cloud``,
which fulfils the request.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from infra.local.clouds.ec2.errors import Ec2Error, invalid_value, missing

if TYPE_CHECKING:
    from infra.local.clouds.ec2.parameters import Parameters

MAX_USER_DATA_BYTES = 16_384
"""Raw, before base64."""
MAX_TAGS = 50
_OUTSIDE_FINGERPRINT = frozenset({"Action", "Version", "ClientToken"})


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """A well-formed RunInstances call."""

    image_id: str
    instance_type: str
    minimum: int
    maximum: int
    spot: bool = False
    zone: str = ""
    """Empty where the cloud may choose."""
    subnet_id: str = ""
    user_data: str = ""
    """Base64."""
    client_token: str = ""
    fingerprint: str = ""
    stops_on_shutdown: bool = True
    instance_tags: dict[str, str] = field(default_factory=dict)
    volume_tags: dict[str, str] = field(default_factory=dict)
    devices: tuple[tuple[str, int, bool], ...] = (("/dev/xvda", 8, False),)
    """Name, size in GiB, and whether the disk outlives its instance."""
    """Name and size in GiB of every disk."""


def read_launch(parameters: Parameters) -> LaunchRequest:
    """Check and read the call; raises ``Ec2Error`` as EC2 refuses it."""
    minimum, maximum = _counts(parameters)
    tags = _tag_specifications(parameters)
    subnets = [n.text("SubnetId") for n in parameters.structures("NetworkInterface")]
    return LaunchRequest(
        image_id=_image(parameters),
        instance_type=_type(parameters),
        minimum=minimum,
        maximum=maximum,
        spot=parameters.below("InstanceMarketOptions").text("MarketType") == "spot",
        zone=parameters.below("Placement").text("AvailabilityZone"),
        subnet_id=parameters.text("SubnetId") or next(iter(subnets), ""),
        user_data=_user_data(parameters),
        client_token=_token(parameters),
        fingerprint=parameters.fingerprint(leaving_out=_OUTSIDE_FINGERPRINT),
        stops_on_shutdown=parameters.text("InstanceInitiatedShutdownBehavior") != "terminate",
        instance_tags=tags.get("instance", {}),
        volume_tags=tags.get("volume", {}),
        devices=_devices(parameters),
    )


def read_tags(parameters: Parameters) -> dict[str, str]:
    """The ``Tag.N.Key`` and ``Tag.N.Value`` of a structure, checked."""
    tags = {tag.required("Key"): tag.text("Value") for tag in parameters.structures("Tag")}
    if len(tags) > MAX_TAGS:
        raise Ec2Error("TagLimitExceeded", f"More than {MAX_TAGS} tags specified")
    for key, value in tags.items():
        if key.startswith("aws:"):
            message = "Tag keys starting with 'aws:' are reserved for internal use"
            raise Ec2Error("InvalidParameterValue", message)
        if len(key) > 128 or len(value) > 256:
            message = "Tag key exceeds 128 or tag value exceeds 256 characters"
            raise Ec2Error("InvalidParameterValue", message)
    return tags


def _counts(parameters: Parameters) -> tuple[int, int]:
    for name in ("MinCount", "MaxCount"):
        parameters.required(name)
    minimum = parameters.integer("MinCount", default=1, low=1, high=100_000)
    maximum = parameters.integer("MaxCount", default=1, low=1, high=100_000)
    if minimum > maximum:
        message = "The value of MinCount must not be greater than that of MaxCount"
        raise Ec2Error("InvalidParameterCombination", message)
    return minimum, maximum


def _image(parameters: Parameters) -> str:
    image_id = parameters.text("ImageId")
    if not image_id:
        raise missing("ImageId")
    if not image_id.startswith("ami-"):
        message = f'Invalid id: "{image_id}" (expecting "ami-...")'
        raise Ec2Error("InvalidAMIID.Malformed", message)
    return image_id


def _type(parameters: Parameters) -> str:
    instance_type = parameters.text("InstanceType", "m1.small")
    if not re.fullmatch(r"[a-z0-9-]+\.[a-z0-9-]+", instance_type):
        raise invalid_value(instance_type, "InstanceType")
    return instance_type


def _token(parameters: Parameters) -> str:
    token = parameters.text("ClientToken")
    if len(token) > 64 or not token.isascii():
        raise invalid_value(token, "ClientToken")
    return token


def _user_data(parameters: Parameters) -> str:
    encoded = parameters.text("UserData")
    try:
        raw = base64.b64decode(encoded, validate=True)
    except binascii.Error:
        message = "Invalid BASE64 encoding of user data."
        raise Ec2Error("InvalidUserData.Malformed", message) from None
    if len(raw) > MAX_USER_DATA_BYTES:
        message = f"User data is limited to {MAX_USER_DATA_BYTES} bytes"
        raise Ec2Error("InvalidParameterValue", message)
    return encoded


def _tag_specifications(parameters: Parameters) -> dict[str, dict[str, str]]:
    specifications = parameters.structures("TagSpecification")
    kinds = Counter(specification.text("ResourceType") for specification in specifications)
    if any(count > 1 for count in kinds.values()):
        message = "Tag specification resource types must be unique"
        raise Ec2Error("InvalidParameterValue", message)
    return {s.required("ResourceType"): read_tags(s) for s in specifications}


def _devices(parameters: Parameters) -> tuple[tuple[str, int, bool], ...]:
    mapped = [
        (
            mapping.text("DeviceName", "/dev/xvda"),
            mapping.below("Ebs").integer("VolumeSize", default=8, low=1, high=65_536),
            "DeleteOnTermination" in mapping.below("Ebs")
            and not mapping.below("Ebs").flag("DeleteOnTermination"),
        )
        for mapping in parameters.structures("BlockDeviceMapping")
        if "Ebs" in mapping
    ]
    return tuple(mapped) or (("/dev/xvda", 8, False),)
