"""What a provider's functions may do in EC2: the smallest statements that do the job.

In other clouds it is the account in the provider's secret that may; the README says what.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Aws

from worker_manager.providers.aws.listing import DEPLOYMENT_TAG

if TYPE_CHECKING:
    from infra.constructs.function import ServiceFunction
    from infra.settings import ProviderSettings

REFERRED_TO_BY_LAUNCHES = [
    "capacity-reservation",
    "image",
    "key-pair",
    "launch-template",
    "network-interface",
    "placement-group",
    "security-group",
    "snapshot",
    "spot-instances-request",
    "subnet",
]


def _in_any_region(kind: str) -> str:
    """The ARN of every EC2 resource of a kind; images and snapshots may be another account's."""
    return f"arn:{Aws.PARTITION}:ec2:*:*:{kind}/*"


_MACHINES = [_in_any_region("instance"), _in_any_region("volume")]


def may_list(function: ServiceFunction) -> ServiceFunction:
    """See machines.  EC2 knows no narrower resource than ``*`` for this action."""
    return function.allow(["ec2:DescribeInstances"], resources=["*"])


def may_terminate(function: ServiceFunction, *, deployment: str) -> ServiceFunction:
    """Take away machines that carry our deployment's tag, and nobody else's."""
    return function.allow(
        ["ec2:TerminateInstances"],
        resources=[_in_any_region("instance")],
        conditions={"StringEquals": {f"aws:ResourceTag/{DEPLOYMENT_TAG}": deployment}},
    )


def may_reboot(function: ServiceFunction, *, deployment: str) -> ServiceFunction:
    """See machines, and let those that carry our deployment's tag boot anew."""
    return may_list(function).allow(
        ["ec2:RebootInstances"],
        resources=[_in_any_region("instance")],
        conditions={"StringEquals": {f"aws:ResourceTag/{DEPLOYMENT_TAG}": deployment}},
    )


def may_sweep(function: ServiceFunction, *, deployment: str) -> ServiceFunction:
    """See volumes, and delete those that carry our deployment's tag."""
    function.allow(["ec2:DescribeVolumes"], resources=["*"])
    return function.allow(
        ["ec2:DeleteVolume"],
        resources=[_in_any_region("volume")],
        conditions={"StringEquals": {f"aws:ResourceTag/{DEPLOYMENT_TAG}": deployment}},
    )


def may_launch(
    function: ServiceFunction, *, deployment: str, provider: ProviderSettings
) -> ServiceFunction:
    """Launch machines that carry our tag from their first moment; tag nothing that exists."""
    function.allow(
        ["ec2:RunInstances"],
        resources=_MACHINES,
        conditions={"StringEquals": {f"aws:RequestTag/{DEPLOYMENT_TAG}": deployment}},
    )
    function.allow(
        ["ec2:RunInstances"],
        resources=[_in_any_region(kind) for kind in REFERRED_TO_BY_LAUNCHES],
    )
    function.allow(
        ["ec2:CreateTags"],
        resources=_MACHINES,
        conditions={"StringEquals": {"ec2:CreateAction": "RunInstances"}},
    )
    if provider.instance_roles:
        function.allow(
            ["iam:PassRole"],
            resources=provider.instance_roles,
            conditions={"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}},
        )
    return function
