"""A real boto3 client whose requests are caught before they leave, and answered from a script."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from io import BytesIO
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs
from xml.sax.saxutils import escape

import boto3
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders

from tests.providers.orders import DEPLOYMENT
from worker_manager.providers.aws.provider import AwsProvider

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from botocore.awsrequest import AWSPreparedRequest


@dataclass
class Answer:
    """One scripted answer; an exception is raised in place of it."""

    status: int
    body: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Wire:
    """``script`` is used up answer by answer; ``sent`` are the bodies of the requests."""

    script: list[Answer | Exception]
    sent: list[str] = field(default_factory=list)

    def provider(self) -> AwsProvider:
        """The one provider of all these tests, since a client takes long to build."""
        _current[:] = [self]
        return _provider()

    def parameters(self) -> list[dict[str, str]]:
        """The requests' parameters in order."""
        return [{name: values[0] for name, values in parse_qs(body).items()} for body in self.sent]


_current: list[Wire] = []


@cache
def _provider() -> AwsProvider:
    session = boto3.Session("testing", "testing", region_name="us-west-2")
    session.events.register("before-send.ec2", _answer)  # type: ignore[arg-type]
    return AwsProvider(provider_id="aws", deployment=DEPLOYMENT, session=session)


def _answer(request: AWSPreparedRequest, **_: Any) -> AWSResponse:
    (wire,) = _current
    assert isinstance(request.body, str)
    wire.sent.append(request.body)
    answer = wire.script.pop(0)
    if isinstance(answer, Exception):
        raise answer
    headers = HTTPHeaders()
    for name, text in answer.headers.items():
        headers[name] = text
    return AWSResponse(request.url, answer.status, headers, _Raw(answer.body.encode()))


class _Raw(BytesIO):
    """A body as urllib3 hands it out."""

    def stream(self, **_: Any) -> Iterator[bytes]:
        yield self.read()


def refusal(code: str, message: str = "no", *, status: int = 400, **headers: str) -> Answer:
    """An error as EC2 writes it."""
    body = (
        f"<Response><Errors><Error><Code>{escape(code)}</Code><Message>{escape(message)}</Message>"
        "</Error></Errors><RequestID>r-1</RequestID></Response>"
    )
    return Answer(status, body, {name.replace("_", "-"): text for name, text in headers.items()})


def instance(
    worker_id: str,
    *,
    state: str = "running",
    tags: Mapping[str, str] | None = None,
    address: str | None = "10.0.0.7",
) -> str:
    """One instance as EC2 writes it."""
    written = "".join(
        f"<item><key>{escape(key)}</key><value>{escape(value)}</value></item>"
        for key, value in (tags or {}).items()
    )
    private_ip = f"<privateIpAddress>{address}</privateIpAddress>" if address else ""
    return (
        f"<item><instanceId>{worker_id}</instanceId><imageId>ami-1</imageId>"
        f"<instanceState><code>0</code><name>{state}</name></instanceState>{private_ip}"
        "<instanceType>m5.large</instanceType><architecture>x86_64</architecture>"
        "<launchTime>2031-05-17T12:00:00.000Z</launchTime>"
        "<placement><availabilityZone>us-west-2b</availabilityZone></placement>"
        f"<tagSet>{written}</tagSet></item>"
    )


def ran(*instances: str) -> Answer:
    """The answer of RunInstances."""
    return Answer(
        200,
        "<RunInstancesResponse><reservationId>r-1</reservationId><ownerId>123456789012</ownerId>"
        f"<instancesSet>{''.join(instances)}</instancesSet></RunInstancesResponse>",
    )


def described(instances: Iterable[str], *, token: str | None = None) -> Answer:
    """One page of DescribeInstances."""
    more = f"<nextToken>{token}</nextToken>" if token else ""
    return Answer(
        200,
        "<DescribeInstancesResponse><reservationSet><item><reservationId>r-1</reservationId>"
        f"<ownerId>123456789012</ownerId><instancesSet>{''.join(instances)}</instancesSet>"
        f"</item></reservationSet>{more}</DescribeInstancesResponse>",
    )


def terminated() -> Answer:
    """The answer of TerminateInstances; nobody reads what it says of each."""
    return Answer(200, "<TerminateInstancesResponse><instancesSet/></TerminateInstancesResponse>")
