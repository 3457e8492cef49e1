"""What AWS's rules for sound stacks (cdk-nag, AwsSolutions) object to, and why we do it anyway.

``checked`` makes a synthesis fail for every finding that has no reason here.  Rules that speak of
permissions name the very resource, and for ``*`` the function, so that a new wildcard needs a new
reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Acknowledgment, CfnElement, Stack, Validations
from aws_cdk import aws_sqs as sqs
from cdk_nag import AwsSolutionsChecks

from infra.constructs.cloud_access import REFERRED_TO_BY_LAUNCHES
from infra.constructs.function import ServiceFunction

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aws_cdk import App
    from constructs import IConstruct

    from infra.stack import WorkerManagerStack

STAGE = {
    "SMG4": "What secrets hold is another service's to rotate: clients of Taskcluster, an access "
    "key of another account, a broker's user. They are read anew by every new container.",
    "L1": "The runtime is one constant, which layers are resolved and byte-compiled for; it moves "
    "with them, not with the newest that CDK knows.",
    "S1": "Lists of machines, written and read by our own functions and gone after a day.",
}
"""Rule → reason, wherever it is found in the stage."""

FRONT_DOOR = {
    "APIG1": "Functions log who is refused and what fails, with the request's id. Workers poll: a "
    "log line for each request would cost more than the requests.",
    "APIG2": "Requests are checked in the functions, whose answers name the field and are "
    "Taskcluster's; the gateway's models could only repeat a part of that, in other words.",
    "APIG3": "Every request is signed, or registers a machine that proves who it is; the stage "
    "throttles. A firewall can be attached to the stage's ARN where a fleet needs one.",
    "APIG4": "Hawk signatures are checked in the functions (Taskcluster's protocol), which saves a "
    "call for each request; some methods are public.",
    "APIG6": "As APIG1.",
    "COG4": "As APIG4: clients are Taskcluster's, no Cognito knows them.",
    "ELB2": "As APIG1; access logs can be turned on for an incident, into any bucket.",
    "EC23": "The API is public, on port 443 only, as clients and workers are anywhere.",
    "VPC7": "Nothing but the load balancer is in the VPC that is made for it.",
}
"""Rule → reason, for the gateway or the load balancer."""

TICKS = (
    "A tick's later slots, repeated by the next minute: a lost one is worth nothing after its time."
)
COPIES = "Copies of events for whoever reads along, gone after a day; nobody handles them."
DEAD = "Takes what EventBridge could not deliver, and is watched by an alarm."
INDEX = "The indexes of one table; their names are ours."
OBJECTS = "Any object of one bucket of ours: each list has a name of its own."
DESCRIBE = "EC2 knows no narrower resource than * for describing; only reading is allowed so."
DESCRIBERS = ("scan_tick", "scan_pool", "advance", "notices", "sweep")
"""The functions with that reason, by their folders."""
MACHINES = (
    "Machines are launched, rebooted and ended in any region, and have no names before they exist; "
    "the statement's condition holds them to our deployment's tag, or to the launch itself."
)
REFERRED_TO = (
    "What pools' launch configs refer to when they launch is their owners' to choose; nothing of "
    "it is changed."
)


def checked(app: App) -> None:
    """Have a synthesis of ``app`` fail for findings that nobody gave a reason for."""
    Validations.of(app).add_plugins(AwsSolutionsChecks(app, verbose=True))


def acknowledge(stack: WorkerManagerStack) -> None:
    """Give each known finding of a stage its reason."""
    _give(stack, STAGE)
    _give(stack.front_door, FRONT_DOOR)
    for queue, reason in _queues_without_dead_letters(stack):
        _give(queue, {"SQS3": reason})
    for resource, reason in _wildcards(stack):
        _give(stack, {f"IAM5[Resource::{resource}]": reason})
    for found in stack.node.find_all():
        if isinstance(found, ServiceFunction) and found.folder in DESCRIBERS:
            _give(found, {"IAM5[Resource::*]": DESCRIBE})


def _give(where: IConstruct, reasons: dict[str, str]) -> None:
    Validations.of(where).acknowledge(
        *(
            Acknowledgment(id=f"AwsSolutions-{rule}", reason=reason)
            for rule, reason in reasons.items()
        )
    )


def _queues_without_dead_letters(stack: Stack) -> Iterator[tuple[IConstruct, str]]:
    for found in stack.node.find_all():
        if isinstance(found, sqs.CfnQueue):
            name = (found.queue_name or "").removesuffix(".fifo")
            if name.endswith("-dead"):
                yield found, DEAD
            elif "-ticks-" in name:
                yield found, TICKS
            elif name.endswith("-event-copies"):
                yield found, COPIES


def _wildcards(stack: WorkerManagerStack) -> Iterator[tuple[str, str]]:
    """Names of resources with a star in them, as the rules write them, and each one's reason."""
    workers = stack.get_logical_id(_inner(stack.tables.workers.table))
    bucket = stack.get_logical_id(_inner(stack.bucket))
    yield f"<{workers}.Arn>/index/*", INDEX
    yield f"<{bucket}.Arn>/*", OBJECTS
    ec2 = "arn:<AWS::Partition>:ec2:*:*"
    for kind in ("instance", "volume"):
        yield f"{ec2}:{kind}/*", MACHINES
    for kind in REFERRED_TO_BY_LAUNCHES:
        yield f"{ec2}:{kind}/*", REFERRED_TO


def _inner(construct: IConstruct) -> CfnElement:
    """The resource inside a construct."""
    inner = construct.node.default_child
    assert isinstance(inner, CfnElement)
    return inner
