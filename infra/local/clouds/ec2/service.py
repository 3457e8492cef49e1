"""One call of the query API from its form to its answer, with everything that may befall it.

Order: known action, count, request bucket, fault, action.  Read next: ``server``, which carries
answers over HTTP.
"""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING

from infra.local.clouds.ec2 import render
from infra.local.clouds.ec2.actions import ACTIONS
from infra.local.clouds.ec2.buckets import take_request
from infra.local.clouds.ec2.errors import Ec2Error, missing
from infra.local.clouds.ec2.faults import Fault, FaultKind
from infra.local.clouds.ec2.filters import has_filters
from infra.local.clouds.ec2.parameters import Parameters
from infra.local.clouds.server import Answer

if TYPE_CHECKING:
    from infra.local.clouds.ec2.cloud import Ec2Cloud

_SCOPE = re.compile(r"Credential=[^/]+/\d{8}/(?P<region>[^/]+)/ec2/aws4_request")


def answer(cloud: Ec2Cloud, authorization: str, form: str) -> Answer:
    """Carry out one call.  The region is that of the signature's credential scope."""
    with cloud.lock:
        request_id = str(uuid.UUID(int=cloud.rng.getrandbits(128), version=4))
        region = "-"
        try:
            region = _region(cloud, authorization)
            return _perform(cloud, region, Parameters.parse(form), request_id)
        except Ec2Error as error:
            cloud.refusals[error.code, region] += 1
            return Answer(error.status, render.refusal(error, request_id))


def action_of(form: str) -> str:
    """The name of the action that a form calls."""
    return Parameters.parse(form).text("Action")


def _region(cloud: Ec2Cloud, authorization: str) -> str:
    scope = _SCOPE.search(authorization)
    if scope is None:
        raise Ec2Error("AuthFailure", "AWS was not able to validate the provided credentials")
    if scope["region"] not in cloud.settings.regions:
        raise Ec2Error("AuthFailure", "Credential should be scoped to a valid region.")
    return scope["region"]


def _perform(cloud: Ec2Cloud, region: str, parameters: Parameters, request_id: str) -> Answer:
    name = parameters.text("Action")
    if not name:
        raise missing("Action")
    action = ACTIONS.get(name)
    if action is None:
        raise Ec2Error("InvalidAction", f"The action {name} is not valid for this web service.")
    cloud.calls[name, region] += 1
    narrowed = has_filters(parameters) or "MaxResults" in parameters
    take_request(cloud.buckets, name, region=region, narrowed=narrowed, now=cloud.clock())
    fault = _fault(cloud, name, region, parameters)
    if fault is not None and fault.kind is not FaultKind.LOST:
        return _suffer(fault)
    if parameters.flag("DryRun"):
        message = "Request would have succeeded, but DryRun flag is set."
        raise Ec2Error("DryRunOperation", message)
    body = render.response(name, request_id, action(cloud, region, parameters))
    if fault is not None:
        return Answer(hang_up=True, wait_seconds=fault.seconds)
    return Answer(200, body)


def _fault(cloud: Ec2Cloud, name: str, region: str, parameters: Parameters) -> Fault | None:
    return cloud.faults.draw(
        action=name,
        region=region,
        image_id=parameters.text("ImageId"),
        instance_type=parameters.text("InstanceType"),
    )


def _suffer(fault: Fault) -> Answer:
    if fault.kind is FaultKind.ERROR:
        raise Ec2Error(fault.code, fault.message)
    return Answer(hang_up=True, wait_seconds=fault.seconds)
